"""The optimum on clusters that are nearly right, and the duals that prove it."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.certify import certify
from coterie.solver.whole import polish
from problems import instance, oracle, outside_domain

SMOOTH = [ct.SquaredError(), ct.SquaredError(ridge=0.1), ct.Logistic(ridge=0.05)]
SHAPES = ["all labelled", "few labelled", "few points", "weighted edges"]


def shown_by(problem: ct.Problem, u: np.ndarray) -> DualClusters:
    partition = DualClusters.shown_by(problem.bound, u)
    assert partition is not None
    return partition


@pytest.mark.parametrize("lam", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("loss", [*SMOOTH, ct.Huber(delta=0.3)], ids=repr)
def test_polishing_the_right_clusters_gives_the_optimum(loss: ct.Loss, kind: str, lam: float) -> None:
    """From weights that are roughly right: clusters and signs are what counts."""
    problem = instance(kind, loss, lam=lam)
    solution = ct.solve(problem, 1e-10)
    rough = np.round(solution.w, 4) + 1e-6 * np.random.default_rng(0).standard_normal((12, 3))
    polished = polish.polish(problem.bound, shown_by(problem, solution.u), rough)
    assert polished is not None
    assert problem.objective(polished) <= oracle(problem).value * (1 + 1e-8)
    assert problem.objective(polished) <= solution.objective * (1 + 1e-12)


def test_polishing_stays_inside_the_clusters() -> None:
    problem = instance("few labelled", lam=0.1)
    clusters = shown_by(problem, ct.solve(problem, 1e-3).u)
    polished = polish.polish(problem.bound, clusters, np.random.default_rng(0).standard_normal((12, 3)))
    assert polished is not None
    np.testing.assert_allclose(clusters.average(polished), polished, rtol=1e-12)


@pytest.mark.parametrize("lam", [0.05, 0.5])
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_settling_a_rough_answer_ends_at_the_optimum_and_proves_it(loss: ct.Loss, kind: str, lam: float) -> None:
    problem = instance(kind, loss, lam=lam)
    rough = ct.solve(problem, 1e-3)
    u = rough.u.copy()
    w, clusters = polish.settle(problem.bound, shown_by(problem, u), rough.w, u)
    assert outside_domain(problem, u) <= 1e-12
    assert problem.objective(w) <= rough.objective * (1 + 1e-12)
    if clusters is not None:
        np.testing.assert_allclose(clusters.average(w), w, rtol=1e-12)
        assert problem.objective(w) <= oracle(problem).value * (1 + 1e-7)
        proof = certify(problem, w, u)
        assert proof.objective - proof.dual_bound <= 1e-6 * proof.objective


def test_a_cluster_through_which_the_flow_does_not_fit_is_split() -> None:
    """Two nodes with different labels and a weak edge, taken for one cluster."""
    graph = ct.EmpiricalGraph.from_edges([(0, 1)])
    data = ct.LocalDatasets.from_rows(np.ones((2, 1)), [0.0, 4.0], [0, 1])
    problem = ct.Problem(graph, data, lam=1.0)
    together, u = DualClusters(np.zeros((2, 1), dtype=np.int64), np.array([1])), np.zeros((1, 1))
    w, clusters = polish.settle(problem.bound, together, np.full((2, 1), 2.0), u)
    assert clusters is not None
    assert clusters.counts.tolist() == [2]
    np.testing.assert_allclose(w.ravel(), [0.5, 3.5])
    np.testing.assert_allclose(u, -1.0)


@pytest.mark.parametrize("lam", [0.05, 0.5])
@pytest.mark.parametrize("loss", [ct.SquaredError(ridge=0.01), ct.Logistic(ridge=0.01)], ids=repr)
def test_aiming_at_the_optimum_finds_the_dual_that_proves_it(loss: ct.Loss, lam: float) -> None:
    """Dᵀu = −∇f(w), tight on the cuts: from nothing but w."""
    problem = instance("few labelled", loss, lam=lam)
    solution = ct.solve(problem, 1e-12)
    w, u = solution.w.copy(), np.zeros((problem.graph.n_edges, 3))
    slope = problem.f.gradient(w[problem.M])
    assert polish.aim(problem.bound, shown_by(problem, solution.u), u, w, slope) <= 1e-4
    flow = problem.graph.D.T @ u
    flow[problem.M] += problem.f.gradient(solution.w[problem.M])
    assert np.abs(flow).max() <= 1e-4 * lam
    assert outside_domain(problem, u) <= 0
    i, j = problem.graph.edges.T
    cut = solution.w[i] != solution.w[j]
    tight = problem.c[:, None] * np.sign(solution.w[i] - solution.w[j])
    np.testing.assert_array_equal(u[cut], tight[cut])


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [(ct.Lasso(0.2), ct.TotalVariation()), (ct.SquaredError(), ct.GroupTotalVariation())],
    ids=["not smooth", "not linear"],
)
def test_no_polishing_where_it_is_not_a_smooth_problem(loss: ct.Loss, penalty: ct.Penalty) -> None:
    assert not polish.applies(instance(loss=loss, penalty=penalty))
    assert polish.applies(instance())
