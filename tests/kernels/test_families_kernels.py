"""Every family with a compiled form: its kernels say what its NumPy formulas say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.kernels import kinks, model, node_solvers, rows, vector_buffer
from coterie.kernels.choice import using
from coterie.kernels.reference import kinks as plain_kinks
from coterie.kernels.reference import model as plain_model
from coterie.kernels.reference import node_solvers as plain_solvers
from coterie.kernels.reference import rows as plain_rows
from exactly import SQUARED

STARTS = np.array([0, 4, 9, 10])
FAMILIES = (SQUARED, ct.Logistic(), ct.Poisson(), ct.Huber(delta=0.7), ct.SquaredHinge())


def data(psi: Any, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((10, 3)), rng.standard_normal((3, 3))
    y = {ct.Logistic: rng.integers(0, 2, 10), ct.SquaredHinge: rng.integers(0, 2, 10), ct.Poisson: rng.poisson(1.5, 10)}
    labels = y.get(type(psi), rng.standard_normal(10)).astype(float)
    return X, labels, rng.uniform(0.1, 1.0, 10), STARTS, np.array([0.1, 0.0, 0.0]), w


@pytest.mark.parametrize("psi", FAMILIES, ids=lambda psi: type(psi).__name__)
def test_both_forms_agree(psi: Any) -> None:
    for seed in range(5):
        X, y, s, starts, ridge, w = data(psi, seed)
        found = []
        for one, two, three in ((rows, model, node_solvers), (plain_rows, plain_model, plain_solvers)):
            value, below, a, b, bend = np.empty(3), np.empty(3), np.empty(10), np.empty((3, 3)), np.empty(10)
            one.values(psi, X, y, s, starts, ridge, w, value)
            one.slopes(psi, X, y, s, starts, ridge, w, a, b)
            one.bends(psi, X, y, s, starts, w, bend)
            one.lower_bounds(psi, X, y, s, starts, ridge, w, a, b, below)
            slope, H = np.empty((3, 3)), np.empty((3, 3, 3))
            two.row_model(psi, vector_buffer(3), X, y, s, starts, ridge, w, w + 0.1, slope, H)
            aim = 0 * w, w, np.ones(3), 0 * w, 1e-12, 60
            z = three.newton(psi, vector_buffer(3), X, y, s, starts, ridge, *aim)
            found.append((value, below, a, b, bend, slope, H, z))
        for x, y_ in zip(*found, strict=True):
            np.testing.assert_allclose(x, y_, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("q", [0.5, 0.2])
def test_quantiles_in_both_forms(q: float) -> None:
    psi = ct.Quantile(q=q)
    for seed in range(5):
        X, y, s, starts, ridge, w = data(psi, seed)
        y[0] = X[0] @ w[0]
        found = []
        for module in (rows, plain_rows):
            value, below, a, b, bend = np.empty(3), np.empty(3), np.empty(10), np.empty((3, 3)), np.empty(10)
            module.values(psi, X, y, s, starts, ridge, w, value)
            module.slopes(psi, X, y, s, starts, ridge, w, a, b)
            module.bends(psi, X, y, s, starts, w, bend)
            module.lower_bounds(psi, X, y, s, starts, ridge, w, a, b, below)
            assert (below <= value).all()
            outside = np.empty(3)
            module.lower_bounds(psi, X, y, s, starts, ridge, w, 3 * a, b, outside)
            found.append((value, below, a, b, bend, outside))
        for x, y_ in zip(*found, strict=True):
            np.testing.assert_allclose(x, y_, rtol=1e-12, atol=1e-14)
        assert not np.isfinite(found[0][-1]).any()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("q", [0.3, np.float32(0.3), np.float16(0.7)])
def test_steepest_duals_of_quantiles_prove_something_whatever_float_q_is(q: float, compiled: bool) -> None:
    f = ct.Quantile(q=q).bind_rows(ct.LocalDatasets.from_rows(np.ones((3, 1)), [1.0, 2.0, 4.0], [0, 0, 1]).labelled)
    with using(compiled=compiled):
        for b in f.dual_limits:
            assert np.isfinite(f.design.support(-b, np.zeros((2, 1)), np.zeros((2, 1))).at).all()


@pytest.mark.parametrize("give", [0.0, 0.5])
def test_kinks_in_both_forms(give: float) -> None:
    rng = np.random.default_rng(0)
    X, y, c, D = (
        rng.standard_normal((10, 3)),
        rng.standard_normal(10),
        rng.standard_normal((3, 3)),
        np.full((3, 3), 0.4),
    )
    low, high, gives = np.full(10, -0.3), np.full(10, 0.2), np.full(10, give)
    found = []
    for module in (kinks, plain_kinks):
        b, z = np.zeros(10), np.empty((3, 3))
        module.box_ascent(vector_buffer(3), X, y, STARTS, D, c, low, high, gives, b, z, 1e-13, 3000)
        found.append(z)
        e = y - np.einsum("rk,rk->r", X, np.repeat(z, np.diff(STARTS), axis=0)) - give * b
        assert ((e <= 1e-9) | (b >= 0.2)).all()
        assert ((e >= -1e-9) | (b <= -0.3)).all()
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("starts", [[0, 3, 7, 10], STARTS], ids=["beside others", "alone"])
def test_duals_without_an_end(starts: Any) -> None:
    """Those of a squared hinge; nodes with fewer rows than others in their block of the NumPy form are filled up."""
    rng = np.random.default_rng(1)
    X, y, c = rng.standard_normal((10, 3)), rng.choice([-1.0, 1.0], 10), rng.standard_normal((3, 3))
    low, high = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    found = []
    for module in (kinks, plain_kinks):
        b, z = np.zeros(10), np.empty((3, 3))
        given = vector_buffer(3), X, y, np.asarray(starts), np.full((3, 3), 0.4), c, low, high, np.full(10, 0.5)
        assert module.box_ascent(*given, b, z, 1e-13, 3000).all()
        found.append(z)
        e = y * (y - np.einsum("rk,rk->r", X, np.repeat(z, np.diff(starts), axis=0)))
        np.testing.assert_allclose(y * b, np.maximum(e, 0.0) / 0.5, atol=1e-9)
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [1.0, 50.0, 1e3])
def test_duals_settle_where_rows_are_long_beside_what_they_give(size: float) -> None:
    """Residuals are differences of numbers much larger then, and rounding them may be more than what is asked for."""
    rng = np.random.default_rng(2)
    y = rng.choice([-1.0, 1.0], 60)
    X = np.column_stack([rng.standard_normal((60, 2)), size * (1 + 0.1 * rng.standard_normal(60))])
    starts, low, high = np.arange(0, 61, 5), np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)
    given = vector_buffer(3), X, y, starts, np.full((12, 3), 1.0), np.zeros((12, 3)), low, high, np.full(60, 0.5)
    found = []
    for module in (kinks, plain_kinks):
        b, z = 2 * y, np.empty((12, 3))
        assert module.box_ascent(*given, b, z, 1e-13, 60).all()
        found.append(z)
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)
