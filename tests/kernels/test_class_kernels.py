"""Rows of several classes: compiled kernels say what the NumPy form says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coterie.kernels import classes
from coterie.kernels.reference import classes as plain

STARTS = np.array([0, 4, 9, 9, 10])


def data(K: int, seed: int, size: float) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((10, 2)), rng.integers(0, K, 10).astype(float)
    X[3, 1] = 0.0
    return X, y, rng.uniform(0.1, 1.0, 10), STARTS, np.tile([0.1, 0.0], K), size * rng.standard_normal((4, 2 * K))


def said(module: Any, X: Any, y: Any, s: Any, starts: Any, ridge: Any, w: Any) -> tuple[np.ndarray, ...]:
    K, rows = len(ridge) // 2, (X, y, s, starts)
    value, below, miss, a = np.empty(4), np.empty(4), np.empty(10), np.empty((10, K))
    q, low, size = (np.empty_like(w) for _ in range(3))
    module.values(*rows, ridge, w, value)
    module.misses(X, y, starts, w, miss)
    module.duals(*rows, w, a)
    module.lower_bounds(*rows, ridge, w, a, 2 * ridge * w, below)
    module.forces(X, y, starts, a, 2 * ridge * w, q, low, size)
    return value, below, miss, a, q + low, size


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0])
def test_values_duals_and_bounds_agree(K: int, size: float) -> None:
    for seed in range(5):
        found = [said(module, *data(K, seed, size)) for module in (classes, plain)]
        for x, y in zip(*found, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


def test_no_chances_prove_nothing() -> None:
    X, y, s, starts, ridge, w = data(3, 0, 1.0)
    for module in (classes, plain):
        below = np.empty(4)
        module.lower_bounds(X, y, s, starts, ridge, w, np.ones((10, 3)), 2 * ridge * w, below)
        assert not (below[[0, 1, 3]] > -np.inf).any()
        assert below[2] <= (ridge * w[2] ** 2).sum()


@pytest.mark.parametrize("K", [2, 3])
def test_models_and_newton_agree(K: int) -> None:
    for seed in range(5):
        X, y, s, starts, ridge, w = data(K, seed, 1.0)
        found = []
        for module in (classes, plain):
            out: list[Any] = []
            for before in (w[:0], w + 0.1 * w[::-1], w + 5 * w[::-1]):
                slope, H = np.empty_like(w), np.empty((*w.shape, w.shape[1]))
                out += [module.model(X, y, s, starts, ridge, w, before, slope, H), slope, H]
            for anchor, start in ((w, 0 * w), (w, 40 * w), (None, w)):
                p = 0.1 * ridge * w
                out.append(module.newton(X, y, s, starts, ridge, p, anchor, np.full(4, 0.5), start, 1e-12, 200))
            found.append(out)
        for x, z in zip(*found, strict=True):
            np.testing.assert_allclose(x, z, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("size", [1.0, 30.0, 3000.0])
def test_few_rows_make_up_the_curvature_of_models(K: int, size: float) -> None:
    """Also where all chances but one are zero."""
    X, y, s, starts, ridge, w = data(K, 0, size)
    for before in (w[:0], w, w + 0.1 * w[::-1], w + 5 * w[::-1]):
        slope, H = np.empty_like(w), np.empty((*w.shape, w.shape[1]))
        far = plain.model(X, y, s, starts, ridge, w, before, slope, H)
        for module in (classes, plain):
            found, Z = np.empty_like(w), np.full((4, 5 * (K - 1), 2 * K), np.nan)
            assert module.thin_model(X, y, s, starts, ridge, w, before, found, Z) == pytest.approx(far, rel=1e-12)
            np.testing.assert_allclose(found, slope, rtol=1e-9, atol=1e-11)
            whole = Z.transpose(0, 2, 1) @ Z + 2 * np.diag(ridge)
            np.testing.assert_allclose(whole, H, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ahead", [373.0, 500.0, 700.0])
def test_chances_whose_products_vanish_make_up_curvature(ahead: float) -> None:
    """Two classes far behind a third have chances that are numbers, while their product is zero."""
    w = np.array([[ahead, 0.0, 0.0]])
    rows = np.ones((2, 1)), np.zeros(2), np.ones(2), np.array([0, 2]), np.zeros(3), w, w
    slope, H = np.empty_like(w), np.empty((1, 3, 3))
    plain.model(*rows, slope, H)
    for module in (classes, plain):
        Z = np.empty((1, 4, 3))
        module.thin_model(*rows, slope, Z)
        np.testing.assert_allclose(Z.transpose(0, 2, 1) @ Z, H, rtol=1e-9, atol=1e-9 * H.max())


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_newton_agrees_where_rows_are_few(size: float) -> None:
    """One or two rows of six columns, three classes: steps solve systems of two or four unknowns, not of 18."""
    rng = np.random.default_rng(0)
    X, y, s = rng.standard_normal((5, 6)), np.array([0.0, 2.0, 1.0, 1.0, 2.0]), rng.uniform(0.1, 1.0, 5)
    starts = np.array([0, 2, 3, 3, 5])
    w, ridge, kappa = size * rng.standard_normal((4, 18)), np.tile([0.1, 0.0, 0.2], 6), np.full(4, 0.5)
    for anchor, start in ((w, 0 * w), (w, w[::-1]), (None, w)):
        p = 0.1 * ridge * w
        found = [
            module.newton(X, y, s, starts, ridge, p, anchor, kappa, start, 1e-12, 500) for module in (classes, plain)
        ]
        np.testing.assert_allclose(*found, rtol=1e-8, atol=1e-8)
