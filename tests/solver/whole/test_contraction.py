"""Clusters: what the duals show, weights made exactly equal, and the small problem that is left."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.experiments.settings import PRINTED
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.whole import contraction
from coterie.solver.whole.contraction import contract, contracts, refine
from problems import instance, oracle

SMOOTH = [ct.SquaredError(), ct.SquaredError(ridge=0.1), ct.Logistic(ridge=0.05)]


@pytest.fixture(scope="module")
def paper() -> tuple[ct.Problem, ct.Solution, np.ndarray]:
    network = PRINTED.network(0)
    problem = PRINTED.problem(network)
    return problem, ct.solve(problem, 1e-6), network.cluster


def test_the_clusters_of_the_paper_come_out_exactly(paper: tuple) -> None:
    _, solution, truth = paper
    assert len(np.unique(solution.w, axis=0)) == 2
    clusters = solution.clusters()
    assert len(clusters) == 2
    np.testing.assert_array_equal(clusters.joint, truth)
    assert clusters.sizes.tolist() == [150, 150]


def test_the_paper_is_certified_after_a_few_iterations(paper: tuple) -> None:
    problem, solution, _ = paper
    assert solution.status is ct.Status.OPTIMAL
    assert solution.unconditional
    assert solution.n_iter <= 150
    assert solution.dual_bound <= oracle(problem).value


@pytest.mark.parametrize("penalty", [ct.TotalVariation(), ct.GroupTotalVariation()], ids=repr)
@pytest.mark.parametrize("loss", [*SMOOTH, ct.Lasso(0.2)], ids=repr)
def test_nodes_joined_by_slack_have_equal_weights(loss: ct.Loss, penalty: ct.Penalty) -> None:
    problem = instance("few labelled", loss, penalty, lam=0.1)
    solution = ct.solve(problem, 1e-8)
    clusters = solution.clusters()
    assert len(clusters) < 12
    i, j = problem.graph.edges.T
    if isinstance(penalty, ct.TotalVariation):
        slack = problem.c[:, None] - np.abs(solution.u)
    else:
        slack = np.tile((problem.c - np.linalg.norm(solution.u, axis=1))[:, None], (1, 3))
    joined = slack > 1e-4 * problem.c[:, None]  # duals are repaired: at the cuts, a trace of slack comes in
    assert joined.any()
    assert not (solution.w[i] - solution.w[j])[joined].any()


def test_squared_variation_and_uncoupled_nodes_show_no_clusters() -> None:
    for problem in (instance(penalty=ct.SquaredVariation()), instance(lam=0.0)):
        assert DualClusters.shown_by(problem.bound, np.zeros((problem.graph.n_edges, 3))) is None


def test_averages_stay_what_they_are() -> None:
    problem = instance()
    u = problem.c[:, None] * np.random.default_rng(0).choice([0.0, 1.0, -1.0], (problem.graph.n_edges, 3))
    partition = DualClusters.shown_by(problem.bound, u)
    assert partition is not None
    once = partition.average(np.random.default_rng(1).standard_normal((12, 3)))
    np.testing.assert_allclose(partition.average(once), once, rtol=1e-15)


def test_a_contracted_problem_is_the_problem_on_its_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """On any partition its objective differs by a constant, and its optimum is the best that the partition allows."""
    monkeypatch.setattr(contraction, "MANY", 0)
    monkeypatch.setattr(contraction, "PART", 0.9)
    rng = np.random.default_rng(3)
    side = 12
    node = np.arange(side**2).reshape(side, side)
    pairs = [(node[:, :-1], node[:, 1:]), (node[:-1], node[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    X, y = rng.uniform(0.5, 2.0, (side**2, 1)), np.repeat([0.0, 1.0], side**2 // 2) + 0.1 * rng.standard_normal(side**2)
    graph = ct.EmpiricalGraph.from_edges(edges, rng.lognormal(size=len(edges)))
    problem = ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, np.arange(side**2)), lam=0.2)
    solution = ct.solve(problem, 1e-9)
    partition = DualClusters.shown_by(problem.bound, solution.u)
    assert partition is not None
    assert contracts(problem.bound, partition)
    smaller = contract(problem.bound, partition)
    values = rng.standard_normal((2, partition.counts[0], 1))
    constant = [problem.objective(v[partition.label[:, 0]]) - smaller.objective(v) for v in values]
    assert constant[0] == pytest.approx(constant[1], rel=1e-9)
    w = refine(problem.bound, partition, 1e-9)
    assert problem.objective(w) - solution.dual_bound <= 1e-8 * solution.objective
    assert not contracts(instance(), DualClusters(np.zeros((12, 3), dtype=int), np.ones(3, dtype=int)))
