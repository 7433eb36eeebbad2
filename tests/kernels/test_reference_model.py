"""Quadratic models of the logistic loss in NumPy are those of the compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import model as compiled
from coterie.kernels import vector_buffer
from coterie.kernels.reference import model
from coterie.kernels.reference.cholesky import solve
from exactly import LOGISTIC

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 4, 12]),
    SIZES,
    st.sampled_from([1e-6, 1.0, 300.0]),
    st.booleans(),
)
def test_both_make_the_same_models(seed: int, n: int, sizes: list[int], size: float, first: bool) -> None:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X, y = size * rng.standard_normal((starts[-1], n)), rng.integers(0, 2, starts[-1]).astype(float)
    w, ridge = rng.standard_normal((len(sizes), n)), rng.uniform(0, 0.1, n)
    before = w[:0] if first else w + 0.1 * rng.standard_normal(w.shape)
    results = []
    for module in (model, compiled):
        slope, H = np.empty_like(w), np.empty((len(w), n, n))
        share = np.repeat(1 / np.array(sizes), sizes)
        way = module.row_model(LOGISTIC, vector_buffer(n), X, y, share, starts, ridge, w, before, slope, H)
        results.append((way, slope, H))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11 * np.abs(other).max())
    pull, H = rng.standard_normal(w.shape), results[0][2] + size**2 * np.eye(n)
    falls = [module.model_fall(vector_buffer(n), H.copy(), pull) for module in (model, compiled)]
    assert falls[0] == pytest.approx(falls[1], rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 12])
def test_systems_are_solved(n: int) -> None:
    rng = np.random.default_rng(n)
    B, g = rng.standard_normal((5, n, n)), rng.standard_normal((5, n))
    H = B @ B.transpose(0, 2, 1) + 0.1 * np.eye(n)
    expected = -np.linalg.solve(H, g[:, :, None])[:, :, 0]
    np.testing.assert_allclose(solve(H, g), expected, rtol=1e-9, atol=1e-12)


def test_a_direction_without_curvature_runs_nowhere() -> None:
    x = np.array([0.3, -1.2, 0.7])
    step = solve(np.outer(x, x)[None], -x[None])
    assert x @ step[0] == pytest.approx(1.0, rel=1e-6)
    assert np.isfinite(step).all()
