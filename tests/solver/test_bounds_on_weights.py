"""Elastic nets and bounds on weights: against CVXPY + Clarabel, with certificates that are never false."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.proofs.enclosure import Enclosure
from pairs import in_pairs
from problems import EVERY_PENALTY, instance, oracle

GROUNDS = (
    {"positive": True},
    {"lower": -0.3, "upper": 0.5},
    {"l1": 0.05, "upper": 0.4},
    {"lower": (0.1, -np.inf, -1.0), "upper": (2.0, 0.3, np.inf)},
)
BARE = (
    ct.SquaredError(),
    ct.Logistic(ridge=0.05),
    ct.Poisson(ridge=0.1),
    ct.Huber(delta=0.5),
    ct.SquaredHinge(ridge=0.1),
    ct.Quantile(q=0.7),
)
KINDS = ("all labelled", "few labelled", "few points", "disconnected")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bare", "ground", "penalty", "kind"), in_pairs(BARE, GROUNDS, EVERY_PENALTY, KINDS), ids=lambda one: str(one)[:24]
)
def test_solutions_keep_their_bounds_and_are_optimal(bare: Any, ground: Any, penalty: ct.Penalty, kind: str) -> None:
    given = instance(kind, replace(bare, l1=ground.get("l1", 0.0)), penalty)
    problem = replace(given, loss=replace(bare, **ground))
    h = problem.loss.ground(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)  # rows need not see all that a bound on one side leaves open
        solution = ct.solve(problem, engine="numpy")
    best = oracle(given, (h.lower, h.upper))
    reached = np.delete(solution.w, solution.undetermined, axis=0)
    assert ((h.lower <= reached) & (reached <= h.upper)).all()
    assert solution.gap <= 1e-6
    assert solution.dual_bound <= best.value * (1 + 1e-9)
    assert solution.objective <= best.value * (1 + 2e-6)
    np.testing.assert_allclose(solution.objective, given.objective(solution.w), rtol=1e-10)
    assert np.inf in [problem.objective(solution.w + step) for step in (-1e6, 1e6)]


def test_an_elastic_net_is_the_same_by_either_name() -> None:
    one = instance(loss=ct.Lasso(0.2, ridge=0.1))
    two = replace(one, loss=ct.SquaredError(l1=0.2, ridge=0.1))
    np.testing.assert_array_equal(ct.solve(one, engine="numpy").w, ct.solve(two, engine="numpy").w)


def test_bounds_that_do_not_bind_change_nothing() -> None:
    bare = instance(loss=ct.Logistic(ridge=0.1))
    wide = replace(bare, loss=ct.Logistic(ridge=0.1, lower=-100.0, upper=100.0))
    one, two = (ct.solve(problem, engine="numpy", tol=1e-9) for problem in (bare, wide))
    np.testing.assert_allclose(one.w, two.w, atol=1e-4)
    assert two.unconditional


def test_what_a_bound_on_one_side_leaves_open_is_not_called_optimal() -> None:
    """No row sees the second column, which has a lower bound alone: nothing encloses it, but nothing needs to."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [2.0, 0.0]], [1.0, 3.0], [0, 1])
    pair = ct.EmpiricalGraph.from_edges([(0, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        solution = ct.solve(ct.Problem(pair, data, ct.SquaredError(lower=0.5), lam=0.1), engine="numpy")
    assert (solution.w >= 0.5).all()
    assert solution.dual_bound <= solution.objective


def test_several_classes_with_an_l1_norm() -> None:
    rng = np.random.default_rng(0)
    data = ct.LocalDatasets.from_rows(rng.standard_normal((60, 2)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10))
    path = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(5)])
    for more in ({"l1": 0.1}, {"l1": 0.01, "positive": True}):
        solution = ct.solve(ct.Problem(path, data, ct.Multinomial(3, **more), lam=0.05), engine="numpy")
        assert solution.status is ct.Status.OPTIMAL
        assert (solution.w == 0).any()


def test_a_federation_says_that_it_knows_no_bounds() -> None:
    from coterie.federation.site import Site

    problem = instance(loss=ct.SquaredError(positive=True))
    with pytest.raises(ValueError, match="a federation knows no bounds on weights"):
        Site(problem, np.empty(0, dtype=np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-6, 30.0])
@pytest.mark.parametrize("ground", GROUNDS, ids=str)
@pytest.mark.parametrize("bare", [ct.Huber(), ct.Quantile(q=0.3)], ids=["Huber", "Quantile"])
def test_no_point_proves_more_than_is_true(bare: Any, ground: Any, size: float) -> None:
    """Whatever the weights and duals are that a certificate is asked of."""
    problem = instance("few labelled", ct.SquaredError())
    problem = replace(problem, loss=replace(bare, **ground))
    best, rng = ct.solve(problem, engine="numpy"), np.random.default_rng(0)
    for _ in range(3):
        w = problem.bound.inside(best.w + size * rng.standard_normal(best.w.shape))
        proof = ct.certify(problem, w, best.u + size * problem.lam * rng.standard_normal(best.u.shape))
        assert not proof.unconditional or proof.dual_bound <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("given", [{"lower": (0.0, 0.0, -np.inf)}, {"upper": (0.3, np.inf, np.inf)}], ids=str)
def test_several_classes_with_bounds_on_one_side_are_enclosed(given: dict[str, Any]) -> None:
    """One number more for all classes' intercepts changes nothing; the other columns have a ridge."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((60, 2)), np.ones(60)])
    data = ct.LocalDatasets.from_rows(X, rng.integers(3, size=60).astype(float), np.repeat(np.arange(4), 15))
    loss = ct.Multinomial(3, ridge=0.01, unpenalised=(2,), **given)
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)])
    solution = ct.solve(ct.Problem(graph, data, loss, lam=0.05), engine="numpy")
    assert solution.status is ct.Status.OPTIMAL
    assert solution.unconditional


def test_an_open_direction_with_a_bound_on_one_side_cannot_be_shifted() -> None:
    X = np.column_stack([np.arange(6.0), np.arange(6.0), np.ones(6)])
    data = ct.LocalDatasets.from_rows(X, np.arange(6.0), np.zeros(6, dtype=int))
    for lower, shifted in (((-np.inf, -np.inf, 0.0), False), ((-np.inf, 0.0, -np.inf), False), (None, True)):
        loss = ct.SquaredError(lower=lower)
        assert Enclosure(ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=1), data, loss).bound).shift is shifted


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"lower": "a"}, TypeError, "lower must hold numbers only"),
        ({"upper": [0.0, "x"]}, TypeError, "upper must hold numbers only"),
        ({"lower": 1e300}, ValueError, "lower holds 1e.300; give numbers up to 1e.150, or -inf"),
    ],
)
def test_bounds_that_are_no_numbers_are_refused(given: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        _ = replace(instance("all labelled"), loss=ct.SquaredError(**given)).bound
