"""What is special about one loss: messages, exempt columns, extreme labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.datasets import stochastic_block_model
from coterie.problem.losses import kinked_losses, quadratic
from problems import bound_rows


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "0.1"])
@pytest.mark.parametrize(
    ("make", "name"),
    [(lambda s: ct.SquaredError(ridge=s), "ridge"), (ct.Lasso, "alpha"), (lambda s: ct.Logistic(ridge=s), "ridge")],
    ids=["SquaredError", "Lasso", "Logistic"],
)
def test_strengths_are_finite_and_not_negative(make: Any, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a finite number ≥ 0"):
        make(value)


@pytest.mark.parametrize("loss", [ct.SquaredError, ct.Huber, ct.Quantile, lambda **strength: ct.Lasso(1, **strength)])
def test_strengths_may_be_whole_numbers(loss: Any) -> None:
    network = stochastic_block_model((6, 6), labelled=6)
    one, other = (ct.solve(ct.Problem(network.graph, network.data, loss(ridge=r), lam=0.1)) for r in (2, 2.0))
    assert one.objective == other.objective


def test_reduction_is_mean_or_sum() -> None:
    with pytest.raises(ValueError, match='"mean" or "sum", got \'median\''):
        ct.SquaredError(reduction="median")  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [ct.SquaredError(ridge=1.0, unpenalised=(3,)), ct.Lasso(1.0, unpenalised=(-4,))])
def test_unpenalised_names_columns_that_exist(loss: ct.Loss) -> None:
    with pytest.raises(ValueError, match=r"unpenalised names column -?\d, but there are 3 columns, 0 to 2"):
        loss.bind(bound_rows(loss, (4,)))


@pytest.mark.parametrize("label", [2.0, -1.0, 0.5])
def test_logistic_labels_are_0_or_1(label: float) -> None:
    data = ct.LocalDatasets.from_rows(np.ones((4, 1)), [0, 1, label, 1], [0, 1, 2, 2])
    with pytest.raises(ValueError, match=rf"0 or 1, but node 2 has the label {label:g}"):
        ct.Logistic().validate(data.labelled)


def test_sum_is_mean_times_the_number_of_points() -> None:
    rows = bound_rows(ct.SquaredError(), (2, 5, 3))
    w = np.ones((3, 3))
    mean, total = ct.SquaredError().bind(rows), ct.SquaredError(reduction="sum").bind(rows)
    np.testing.assert_allclose(total.value(w), rows.m * mean.value(w))


WEIGHTED = [
    ct.SquaredError(ridge=0.1),
    ct.SquaredError("sum"),
    ct.Lasso(0.1),
    ct.Logistic(ridge=0.1),
    ct.Poisson(ridge=0.1),
    ct.Huber(ridge=0.1, delta=0.4),
    ct.SquaredHinge(ridge=0.1),
]


@pytest.mark.parametrize("loss", WEIGHTED)
def test_a_row_of_weight_k_counts_like_k_rows(loss: ct.Loss) -> None:
    rng = np.random.default_rng(3)
    X, nodes, count = rng.standard_normal((8, 2)), np.repeat([0, 1, 3], (3, 3, 2)), np.array([1, 2, 0, 3, 1, 1, 0, 0])
    y = rng.integers(0, 2, 8).astype(float)
    weighted = ct.LocalDatasets.from_rows(X, y, nodes, 4, weights=count).labelled
    repeated = ct.LocalDatasets.from_rows(*(np.repeat(a, count, axis=0) for a in (X, y, nodes)), 4).labelled
    assert weighted.M.tolist() == repeated.M.tolist() == [0, 1]
    f, g = loss.bind(weighted), loss.bind(repeated)
    v, p, tau = rng.standard_normal((2, 2)), 0.1 * rng.standard_normal((2, 2)), np.array([0.3, 2.0])
    np.testing.assert_allclose(f.value(v), g.value(v), rtol=1e-12)
    np.testing.assert_allclose(f.prox(v, tau, v), g.prox(v, tau, v), rtol=1e-9)
    np.testing.assert_allclose(f.conjugate(p, v)[1], g.conjugate(p, v)[1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(f.pooled(np.zeros(2, int), 1)[0], g.pooled(np.zeros(2, int), 1)[0], rtol=1e-6)
    if f.smooth:
        np.testing.assert_allclose(f.gradient(v), g.gradient(v), rtol=1e-10)
        np.testing.assert_allclose(f.hessian(v), g.hessian(v), rtol=1e-10)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_row_weights_are_finite_and_not_negative(bad: float) -> None:
    with pytest.raises(ValueError, match=r"weights\[1\] \(node 4\)"):
        ct.LocalDatasets.from_rows(np.ones((2, 1)), [1, 2], [3, 4], weights=[1.0, bad])


def test_the_closed_form_of_the_paper_with_its_missing_factor() -> None:
    """PU(v) = (I + (2τ/m) XᵀX)⁻¹ (v + (2τ/m) Xᵀy)."""
    rows = bound_rows(ct.SquaredError(), (5,))
    v, tau = np.array([[1.0, -2.0, 3.0]]), 0.7
    step = 2 * tau / 5
    expected = np.linalg.solve(np.eye(3) + step * rows.X.T @ rows.X, v[0] + step * rows.X.T @ rows.y)
    np.testing.assert_allclose(ct.SquaredError().bind(rows).prox(v, np.array([tau]), v)[0], expected, rtol=1e-12)


def test_probabilities() -> None:
    X, w = np.array([[0.0], [800.0], [-800.0]]), np.ones((3, 1))
    np.testing.assert_array_equal(ct.Logistic().predict_proba(X, w), [0.5, 1.0, 0.0])


def test_logistic_does_not_overflow() -> None:
    f = ct.Logistic().bind(bound_rows(ct.Logistic(), (4, 4)))
    far = np.full((2, 3), 1e4)
    assert np.isfinite(f.value(far)).all()
    assert np.isfinite(f.gradient(far)).all()
    assert np.isfinite(f.prox(far, np.array([1e-3, 1e3]), far)).all()


def test_lasso_sets_weights_to_exactly_zero() -> None:
    f = ct.Lasso(50.0, unpenalised=(0,)).bind(bound_rows(ct.Lasso(50.0), (5,)))
    z = f.prox(np.ones((1, 3)), np.ones(1), np.ones((1, 3)))[0]
    assert z[0] != 0
    np.testing.assert_array_equal(z[1:], 0.0)


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(1e-3, unpenalised=(0, 1))])
@pytest.mark.parametrize(("offset", "unit"), [(1e8, 1.0), (1.7e9, 3600.0), (0.0, 1e17)])
def test_columns_that_rounding_hides_are_neither_refused_nor_dropped(loss: ct.Loss, offset: float, unit: float) -> None:
    """Bounds are proven of the rows, so that nothing an SVD loses makes them false: weights of the truth reach 0."""
    x = np.random.default_rng(0).standard_normal(20)
    X, nodes = np.column_stack([offset + unit * x, np.ones(20)]), np.zeros(20, int)
    data = ct.LocalDatasets.from_rows(X, X @ [1 / unit, -offset / unit], nodes)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=1), data, loss, lam=0.0)
    reached = problem.objective(np.array([[1 / unit, -offset / unit]]))
    assert ct.solve(problem).dual_bound <= reached


@pytest.mark.parametrize("times", [2.0, 1e9, 0.0])
@pytest.mark.parametrize("offset", [0.0, 32.0])
def test_columns_that_depend_on_each_other_are_no_error(times: float, offset: float) -> None:
    x = np.random.default_rng(0).standard_normal(20)
    X = np.column_stack([x, offset + times * x, np.ones(20)])
    f = ct.SquaredError().bind(ct.LocalDatasets.from_rows(X, 3 * x, np.zeros(20, int)).labelled)
    assert f.value(f.centre)[0] < 1e-10


@pytest.mark.parametrize(("apart", "without_svd"), [(1.0, True), (1e-2, True), (1e-5, False), (0.0, False)])
def test_an_svd_is_made_only_where_rows_may_not_see_a_direction(
    monkeypatch: pytest.MonkeyPatch, apart: float, without_svd: bool
) -> None:
    X = np.random.default_rng(0).standard_normal((20, 2))
    X[:, 1] = 1e6 * (X[:, 0] + apart * X[:, 1])
    data = ct.LocalDatasets.from_rows(X, np.arange(20) % 2.0, np.arange(20) // 5)
    made = []
    monkeypatch.setattr(quadratic, "thin_svd", lambda A, svd=quadratic.thin_svd: made.append(len(A)) or svd(A))
    seen = ct.Logistic().bind(data.labelled).row_space
    assert (seen is None) == (apart > 0)
    assert (not made) == without_svd


def test_what_ascent_leaves_unsettled_an_interior_point_method_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = bound_rows(ct.Quantile(q=0.3), (7, 2, 5))
    v, tau = rng.standard_normal((3, 3)), np.array([0.1, 10.0, 1e4])
    found = []
    for sweeps in (3000, 1):
        monkeypatch.setattr(kinked_losses, "PROX_SWEEPS", sweeps)
        found.append(ct.Quantile(q=0.3).bind(rows).prox(v, tau, np.zeros_like(v)))
    np.testing.assert_allclose(found[1], found[0], atol=1e-7)
