"""Families of scalar functions where they are hard: counts of zero, classes apart, offsets, outliers, bad labels."""

from __future__ import annotations

import warnings
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import coterie as ct
from problems import EVERY_PENALTY, instance, oracle

PAIR = ct.EmpiricalGraph.from_edges([(0, 1)])


def two_nodes(X: list, y: list, nodes: list, **more: list) -> ct.LocalDatasets:
    return ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=2, **more)


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("loss", [ct.Poisson(), ct.Logistic(), ct.SquaredHinge()], ids=repr)
def test_never_optimal_on_a_guess(loss: ct.Loss, penalty: ct.Penalty) -> None:
    """Counts of zero alone, and one class alone, can be fitted ever better: nothing below zero is claimed."""
    data = two_nodes([[1.0], [2.0], [1.5]], [0.0, 0.0, 0.0], [0, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        solution = ct.solve(ct.Problem(PAIR, data, loss, penalty, 0.1), engine="numpy")
    assert 0 <= solution.dual_bound <= solution.objective
    if not isinstance(loss, ct.SquaredHinge):  # which has weights that cost nothing
        assert solution.status is not ct.Status.OPTIMAL


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_counts_of_zero_at_one_node(penalty: ct.Penalty) -> None:
    """The neighbour holds a node whose counts are all zero."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 2))
    y = np.where(np.arange(10) < 5, 0.0, 1.0 + rng.poisson(2.0, 10))
    problem = ct.Problem(PAIR, two_nodes(X, y, [0] * 5 + [1] * 5), ct.Poisson(), penalty, 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        solution = ct.solve(problem, engine="numpy")
    best = oracle(problem).value
    assert solution.objective <= best * (1 + 1e-5) + 1e-9
    assert solution.dual_bound <= best + 1e-8


def test_an_offset_is_an_exposure() -> None:
    """Rates of counts over different times: against CVXPY, and against rows with weights."""
    rng = np.random.default_rng(1)
    X, offset = rng.standard_normal((12, 2)), rng.uniform(-1, 2, 12)
    y, nodes = rng.poisson(np.exp(X @ [0.5, -0.5] + offset)).astype(float), np.arange(12) % 2
    y[:2] = 1.0
    problem = ct.Problem(PAIR, two_nodes(X, y, nodes, offset=offset), ct.Poisson(ridge=0.01), lam=0.1)
    w = cp.Variable((2, 2))
    z = cp.sum(cp.multiply(X, w[nodes]), axis=1) + offset
    full = y * np.log(np.maximum(y, 1.0)) - y
    loss = cp.sum(cp.exp(z) - cp.multiply(y, z) + full) / 6 + 0.01 * cp.sum_squares(w)
    asked = cp.Problem(cp.Minimize(loss + 0.1 * cp.norm1(w[0] - w[1])))
    asked.solve(cp.CLARABEL)
    solution = ct.solve(problem, 1e-8, engine="numpy")
    assert solution.objective == pytest.approx(asked.value, rel=1e-6)


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(0.1), ct.Huber(), ct.Quantile()], ids=repr)
def test_an_offset_of_residuals_is_part_of_the_label(loss: ct.Loss) -> None:
    X, y, offset = [[1.0], [2.0], [3.0]], np.array([1.0, 2.0, 5.0]), np.array([0.5, -1.0, 2.0])
    w = np.array([[0.3], [0.7]])
    with_offset, without = (
        ct.Problem(PAIR, data, loss, lam=0.1)
        for data in (two_nodes(X, y, [0, 0, 1], offset=offset), two_nodes(X, y - offset, [0, 0, 1]))
    )
    assert with_offset.objective(w) == without.objective(w)


@pytest.mark.parametrize("loss", [ct.Logistic(), ct.SquaredHinge()], ids=repr)
def test_classes_take_no_offset(loss: ct.Loss) -> None:
    with pytest.raises(ValueError, match="takes no offsets"):
        ct.Problem(PAIR, two_nodes([[1.0]], [1.0], [0], offset=[0.5]), loss)


def test_an_exposure_is_not_an_offset() -> None:
    with pytest.raises(ValueError, match="logarithm"):
        ct.Problem(PAIR, two_nodes([[1.0]], [1.0], [0], offset=[5000.0]), ct.Poisson())
    with pytest.raises(ValueError, match=r"offset\[0\] \(node 0\) is nan"):
        two_nodes([[1.0]], [1.0], [0], offset=[np.nan])


def test_bad_labels_are_named() -> None:
    data = two_nodes([[1.0]] * 3, [2.0, 3.0, -1.0], [0, 1, 1])
    with pytest.raises(ValueError, match="counts are numbers ≥ 0, but node 1 has the label -1 in row 1 of"):
        ct.Problem(PAIR, data, ct.Poisson())
    with pytest.raises(ValueError, match="0 or 1, but node 0 has the label 2 in row 0"):
        ct.Problem(PAIR, data, ct.SquaredHinge())


@pytest.mark.parametrize("delta", [0.0, -1.0, np.inf, "1"])
def test_parameters_make_sense(delta: float) -> None:
    with pytest.raises(ValueError, match="delta must be a finite number > 0"):
        ct.Huber(delta=delta)
    with pytest.raises(ValueError, match="q must be"):
        ct.Quantile(q=delta)
    with pytest.raises(ValueError, match="q must be below 1"):
        ct.Quantile(q=1.0)


def test_huber_with_a_large_delta_is_squared_error() -> None:
    problem = instance()
    huber, squared = (
        ct.solve(replace(problem, loss=loss), engine="numpy") for loss in (ct.Huber(delta=1e3), ct.SquaredError())
    )
    assert huber.objective == pytest.approx(squared.objective, rel=1e-5)


def test_the_median_ignores_an_outlier() -> None:
    data = two_nodes([[1.0]] * 6, [1.0, 2.0, 3.0, 2.0, 2.0, 1e6], [0, 0, 0, 1, 1, 1])
    solution = ct.solve(ct.Problem(PAIR, data, ct.Quantile(), lam=10.0), engine="numpy")
    np.testing.assert_allclose(solution.w, 2.0, atol=1e-3)


def test_a_quantile_that_fits_every_row() -> None:
    """The ridge is all that is left of the objective, and its bound is as close."""
    a, b, c, d = [-3.0, 1.0, 1.0], [-1.0, -1.0, 1.0], [1.0, 1.0, 1.0], [3.0, -1.0, 1.0]
    data = ct.LocalDatasets.from_rows([a, a, a, b, c, d, d, d], [0, 0, 0, 2, 0, 2, 2, 2], [0] * 8)
    loss = ct.Quantile(1e-3, (2,))
    solution = ct.solve(ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=1), data, loss=loss), max_iter=10)
    assert solution.gap <= 1e-6
    assert solution.w == pytest.approx(np.array([[0.0, -1.0, 1.0]]), abs=1e-9)


def test_quantiles_with_a_small_ridge_and_an_l1_norm_do_not_stall() -> None:
    """Ascent has duals of rows at their ends, with which what an ℓ1 norm leaves of slopes was proven to 2e-5."""
    rng = np.random.default_rng(56)
    nodes = np.repeat(np.arange(8), rng.integers(1, 4, 8))
    X, y, weights = (
        rng.standard_normal((len(nodes), 4)),
        rng.standard_normal(len(nodes)),
        rng.standard_normal(len(nodes)),
    )
    data = ct.LocalDatasets.from_rows(X, y, nodes, weights=np.exp(2 * weights))
    graph = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(7)])
    loss = ct.Quantile(ridge=0.01, l1=0.5, reduction="sum")
    assert ct.solve(ct.Problem(graph, data, loss, lam=0.2), engine="numpy").status is ct.Status.OPTIMAL


@pytest.mark.parametrize("row", [[1.53233486], [0.1, 0.3]], ids=str)
def test_a_single_label_is_fitted_to_rounding(row: list[float]) -> None:
    alone = ct.EmpiricalGraph.from_edges([], n_nodes=1)
    data = ct.LocalDatasets.from_rows([row], [-1.96465485], [0])
    assert ct.solve(ct.Problem(alone, data, ct.Quantile(), lam=0.1), engine="numpy").status is ct.Status.OPTIMAL
