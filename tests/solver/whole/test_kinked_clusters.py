"""The optimum on clusters for losses with kinks, and the duals that prove it."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.certify import certify
from coterie.solver.whole import kinked_clusters, polish
from problems import instance, oracle, outside_domain

LOSSES = [ct.Quantile(), ct.Quantile(q=0.3, ridge=0.05)]


def one_by_one(problem: ct.Problem) -> DualClusters:
    """Every node a cluster of its own."""
    V, n = problem.graph.n_nodes, problem.n_features
    return DualClusters(np.tile(np.arange(V)[:, None], (1, n)), np.full(n, V))


def nothing(problem: ct.Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, duals of edges and duals of rows to begin with."""
    n, rows = problem.n_features, problem.bound.f.rows.y
    return np.zeros((problem.graph.n_nodes, n)), np.zeros((problem.graph.n_edges, n)), np.zeros(len(rows))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("kind", ["all labelled", "few labelled", "few points", "disconnected", "weighted edges"])
def test_best_weights_of_single_nodes_are_the_optimum_and_nodes_that_agree_become_one(kind: str, loss: ct.Loss) -> None:
    problem = instance(kind, loss, lam=0.1)
    clusters = one_by_one(problem)
    found = kinked_clusters.best_on(problem.bound, clusters, *nothing(problem))
    assert found is not None
    w, slope = found
    assert problem.objective(w) <= oracle(problem).value * (1 + 1e-7)
    assert clusters.total < w.size
    u = np.zeros((problem.graph.n_edges, problem.n_features))
    assert polish.aim(problem.bound, clusters, u, w.copy(), slope) <= polish.LEFT
    assert outside_domain(problem, u) <= 1e-12


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_one_cluster_is_split_until_it_is_right(loss: ct.Loss) -> None:
    problem = instance("all labelled", loss, lam=0.05)
    V, n = problem.graph.n_nodes, problem.n_features
    together = DualClusters(np.zeros((V, n), dtype=np.int64), np.ones(n, dtype=np.int64))
    u = np.zeros((problem.graph.n_edges, n))
    w, clusters = polish.settle(problem.bound, together, np.zeros((V, n)), u)
    assert clusters is not None
    assert clusters.total > n
    assert together.total == n
    assert problem.objective(w) <= oracle(problem).value * (1 + 1e-7)
    proof = certify(problem, w, u)
    assert proof.objective - proof.dual_bound <= 1e-6 * proof.objective


def test_too_many_clusters_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = instance("all labelled", ct.Quantile())
    monkeypatch.setattr(kinked_clusters, "MOST", 2)
    assert kinked_clusters.best_on(problem.bound, one_by_one(problem), *nothing(problem)) is None
    w = np.zeros((problem.graph.n_nodes, problem.n_features))
    same, clusters = polish.settle(problem.bound, one_by_one(problem), w, np.zeros((problem.graph.n_edges, 3)))
    assert clusters is None
    assert same is w


def test_a_program_that_comes_to_no_numbers_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere:
        def minimise(self, *given: np.ndarray) -> None:
            given[-2][:] = np.nan

    problem = instance("all labelled", ct.Quantile())
    monkeypatch.setattr(kinked_clusters, "program", Nowhere())
    w, u, _ = nothing(problem)
    same, clusters = polish.settle(problem.bound, one_by_one(problem), w, u)
    assert clusters is None
    assert same is w
    assert not u.any()


def test_quantiles_of_a_network_are_found_exactly_after_few_iterations() -> None:
    """They took thousands of iterations, and ended at the gap that was asked for."""
    rng = np.random.default_rng(0)
    side = 12
    node = np.arange(side * side).reshape(side, side)
    ends = (node[:, :-1], node[:, 1:]), (node[:-1], node[1:])
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])
    X = rng.standard_normal((2 * side**2, 3))
    y = X @ np.ones(3) + (np.arange(2 * side**2) > side**2) * X[:, 0] + 0.3 * rng.standard_normal(len(X))
    data = ct.LocalDatasets.from_rows(X, y, np.repeat(np.arange(side**2), 2))
    problem = ct.Problem(ct.EmpiricalGraph.from_edges(edges), data, ct.Quantile(), lam=0.1)
    solution = ct.solve(problem, 1e-6, engine="numpy", max_iter=600)
    assert solution.status is ct.Status.OPTIMAL
    assert solution.gap <= 1e-6
