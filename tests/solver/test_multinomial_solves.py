"""Several classes on a network: against CVXPY + Clarabel, whatever the penalty, and never a false certificate."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import coterie as ct
from coterie.proofs.enclosure import Enclosure
from pairs import in_pairs
from problems import EVERY_PENALTY, case_of

KINDS = ("all labelled", "few labelled", "few points", "weighted rows", "never seen at a node", "collinear")


def network(kind: str, loss: ct.Multinomial, penalty: ct.Penalty, lam: float = 0.05, seed: int = 0) -> ct.Problem:
    """Ten nodes in two clusters, two features."""
    rng, V, n, K = np.random.default_rng(seed), 10, 2, loss.n_classes
    edges = [(i, i + 1) for i in range(V - 1)] + [(0, 3), (1, 4), (5, 8), (6, 9)]
    truth = rng.standard_normal((2, K, n))[(np.arange(V) >= 5).astype(int)]
    nodes = np.repeat(np.arange(V), 1 if kind == "few points" else 6)
    X = rng.standard_normal((len(nodes), n))
    if kind == "collinear":
        X[:, 1] = 2 * X[:, 0]
    scores = np.einsum("rj,rkj->rk", X, truth[nodes]) + 1.5 * rng.gumbel(size=(len(nodes), K))
    y = scores.argmax(axis=1).astype(float)
    if kind == "never seen at a node":
        y[(nodes == 3) & (y == 0)] = 1.0
    if kind == "few labelled":
        y[~np.isin(nodes, [0, 4, 7, 9])] = np.nan
    weights = rng.uniform(0.2, 3.0, len(y)) if kind == "weighted rows" else None
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V, weights=weights)
    return ct.Problem(ct.EmpiricalGraph.from_edges(edges, n_nodes=V), data, loss, penalty, lam)


def naive_objective(problem: ct.Problem, w: np.ndarray) -> float:
    rows, n, total = problem.data.labelled, problem.data.n_features, 0.0
    for r, i in enumerate(np.repeat(rows.M, rows.m)):
        z = w[i].reshape(-1, n) @ rows.X[r]
        total += rows.shares[r] * (np.log(np.exp(z - z.max()).sum()) + z.max() - z[int(rows.y[r])])
    total += problem.loss.ridge * (w[rows.M] ** 2).sum()
    for (i, j), c in zip(problem.graph.edges, problem.c, strict=True):
        total += c * case_of(problem.penalty).naive(w[i] - w[j])
    return float(total)


def oracle(problem: ct.Problem) -> float:
    rows, n = problem.data.labelled, problem.data.n_features
    w, node = cp.Variable((problem.graph.n_nodes, problem.n_features)), np.repeat(rows.M, rows.m)
    K = problem.n_features // n
    scores = cp.vstack([cp.sum(cp.multiply(rows.X, w[node][:, k * n : (k + 1) * n]), axis=1) for k in range(K)]).T
    own = cp.sum(cp.multiply(np.eye(K)[rows.y.astype(int)], scores), axis=1)
    objective = rows.shares @ (cp.log_sum_exp(scores, axis=1) - own) + problem.loss.ridge * cp.sum_squares(w[rows.M])
    i, j = problem.graph.edges.T
    asked = cp.Problem(cp.Minimize(objective + case_of(problem.penalty).convex(w[i] - w[j], problem.c)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": its value is computed again below
        asked.solve(cp.CLARABEL)
    return naive_objective(problem, np.asarray(w.value))


@pytest.mark.parametrize(
    ("kind", "penalty", "loss"),
    in_pairs(KINDS, EVERY_PENALTY, [ct.Multinomial(3), ct.Multinomial(3, ridge=0.05), ct.Multinomial(4, ridge=0.01)]),
    ids=str,
)
def test_solutions_are_certified_and_optimal(kind: str, penalty: ct.Penalty, loss: ct.Multinomial) -> None:
    problem = network(kind, loss, penalty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)  # one point at a node may be separated, without a ridge
        solution = ct.solve(problem, engine="numpy")
    best = oracle(problem)
    np.testing.assert_allclose(solution.objective, naive_objective(problem, solution.w), rtol=1e-10)
    assert solution.dual_bound <= best * (1 + 1e-9)
    assert solution.objective <= best * (1 + 2e-6)
    if kind != "few points" or loss.ridge:
        assert solution.status is ct.Status.OPTIMAL
        assert solution.gap <= 1e-6


def test_one_vector_for_all_classes_changes_no_loss() -> None:
    """Those are directions that no row sees, so that some minimiser has any value there, and the bound is proven."""
    problem = network("all labelled", ct.Multinomial(3), ct.TotalVariation())
    solution = ct.solve(problem, engine="numpy")
    assert solution.unconditional
    moved = solution.w + np.tile([3.0, -2.0], 3)
    assert abs(problem.objective(moved) - solution.objective) <= 1e-12 * solution.objective
    assert Enclosure(problem.bound).free_weights().sum() == 2
    proof = ct.certify(problem, moved, solution.u)
    assert proof.unconditional
    assert proof.dual_bound <= solution.objective * (1 + 1e-12)
    assert solution.objective - proof.dual_bound <= 1e-5 * solution.objective


@pytest.mark.slow
@pytest.mark.parametrize("lam", [0.0, 0.05])
@pytest.mark.parametrize(
    ("X", "y", "nodes"),
    [
        ([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]], [0.0, 1.0, 2.0], [0, 0, 1]),
        ([[1.0, 0.0]] * 4, [0.0, 1.0, 2.0, 2.0], [0, 0, 1, 1]),  # class 2 at one node, alone
    ],
    ids=["separable", "a class by itself"],
)
def test_infima_that_are_not_attained_are_never_called_optimal(X: Any, y: Any, nodes: Any, lam: float) -> None:
    data = ct.LocalDatasets.from_rows(X, y, nodes)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([(0, 1)]), data, ct.Multinomial(3), lam=lam)
    attained = lam > 0 and y[-2] == 2.0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        solution = ct.solve(problem, engine="numpy", max_iter=2000)
    if attained:
        assert solution.status is ct.Status.OPTIMAL
    else:
        assert not solution.unconditional
        assert solution.status is not ct.Status.OPTIMAL
        assert "a ridge on every column prevents it" in str(told[0].message)


def test_more_classes_and_units_of_their_own() -> None:
    """Columns of other sizes change nothing but the weights."""
    problem = network("all labelled", ct.Multinomial(5), ct.TotalVariation(), lam=0.02)
    data = problem.data
    scaled = ct.LocalDatasets.from_rows(data.X * 1024, data.y, data.nodes)
    other = ct.Problem(problem.graph, scaled, problem.loss, problem.penalty, problem.lam * 1024)
    one, two = (ct.solve(each, engine="numpy") for each in (problem, other))
    np.testing.assert_allclose(one.w, two.w * 1024, rtol=1e-6, atol=1e-9)
    assert two.gap <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-6, 30.0])
@pytest.mark.parametrize(
    "loss", [ct.Multinomial(3), ct.Multinomial(3, ridge=0.1), ct.Multinomial(3, l1=0.05)], ids=repr
)
def test_no_point_proves_more_than_is_true(loss: ct.Multinomial, size: float) -> None:
    """Whatever the weights and duals are that a certificate is asked of."""
    problem = network("few labelled", loss, ct.TotalVariation())
    best, rng = ct.solve(problem, engine="numpy"), np.random.default_rng(0)
    for _ in range(3):
        w = best.w + size * rng.standard_normal(best.w.shape)
        proof = ct.certify(problem, w, best.u + size * problem.lam * rng.standard_normal(best.u.shape))
        assert not proof.unconditional or proof.dual_bound <= best.objective * (1 + 1e-9)


def test_without_any_label_nothing_is_lost() -> None:
    data = ct.LocalDatasets.from_rows([[1.0], [2.0]], [np.nan, np.nan], [0, 1])
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([(0, 1)]), data, ct.Multinomial(3), lam=0.1)
    solution = ct.solve(problem, engine="numpy")
    assert (solution.status, solution.objective, solution.gap) == (ct.Status.OPTIMAL, 0.0, 0.0)
    assert len(ct.solve_path(problem, n_lams=3, engine="numpy")) >= 1
