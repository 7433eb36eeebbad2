"""Newton's method for logistic losses, and the Lasso's first guess, in NumPy: stationary, and as compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from coterie.kernels import node_solvers as compiled
from coterie.kernels import vector_buffer
from coterie.kernels.interruption import allow, interruptible
from coterie.kernels.reference import node_solvers
from coterie.kernels.reference.few_rows import inner_products, step_by_rows
from exactly import LOGISTIC

SEEDS = st.integers(0, 2**32)
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=6)


def logistic(seed: int, n: int, sizes: list[int], size: float = 1.0) -> tuple[Any, ...]:
    """Rows, and forces p that some weights attain."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X, y = size * rng.standard_normal((starts[-1], n)), rng.integers(0, 2, starts[-1]).astype(float)
    share = np.repeat(1 / np.array(sizes), sizes)
    p = np.add.reduceat((share * (rng.uniform(0.1, 0.9, len(y)) - y))[:, None] * X, starts[:-1])
    ridge = np.linspace(0, 0.3, n) * size**2
    return rng, (X, y, share, starts, ridge, p), size**2 * rng.uniform(0.01, 2.0, len(sizes))


def slope(data: tuple[Any, ...], anchor: Any, curvature: Any, z: Any) -> tuple[Any, Any]:
    """The gradient at z, and what it is made of."""
    X, y, share, starts, ridge, p = data
    pull = share * (expit((X * np.repeat(z, np.diff(starts), axis=0)).sum(axis=1)) - y)
    d = 0 if anchor is None else curvature[:, None] * (z - anchor)
    g = np.add.reduceat(pull[:, None] * X, starts[:-1]) + 2 * ridge * z - p + d
    return g, np.add.reduceat(np.abs(pull[:, None] * X), starts[:-1]) + 2 * ridge * np.abs(z) + np.abs(p) + np.abs(d)


@settings(max_examples=60)
@given(
    SEEDS,
    st.sampled_from([1, 2, 4, 12, 24]),
    SIZES,
    st.sampled_from([0.0, 1.0, 30.0]),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_newton_is_stationary_and_where_the_compiled_one_is(
    seed: int, n: int, sizes: list[int], far: float, size: float
) -> None:
    rng, data, curvature = logistic(seed, n, sizes, size)
    anchor, start = 0.1 / size * rng.standard_normal((2, len(sizes), n))
    start *= 10 * far
    before = start.copy()
    z = node_solvers.newton(LOGISTIC, vector_buffer(n), *data, anchor, curvature, start, 1e-12, 60)
    np.testing.assert_array_equal(start, before)
    g, terms = slope(data, anchor, curvature, z)
    assert (np.abs(g).max(axis=1) <= 1e-10 * terms.max(axis=1)).all()
    other = compiled.newton(LOGISTIC, vector_buffer(n), *data, anchor, curvature, start, 1e-12, 60)
    np.testing.assert_allclose(z, other, rtol=1e-7, atol=1e-8 * np.abs(other).max())


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([1, 3, 24]), SIZES, st.sampled_from([0.0, 3.0]))
def test_newton_without_an_anchor_finds_the_minimiser_itself(seed: int, n: int, sizes: list[int], far: float) -> None:
    rng, (*rows, ridge, p), curvature = logistic(seed, n, sizes)
    data, start = (*rows, ridge + 0.1, p), far * rng.standard_normal((len(sizes), n))
    z = node_solvers.newton(LOGISTIC, vector_buffer(n), *data, None, 1e-9 * curvature, start, 2.0**-52, 60)
    g, terms = slope(data, None, curvature, z)
    assert (np.abs(g).max(axis=1) <= 1e-14 * terms.max(axis=1)).all()


@pytest.mark.parametrize("share", [1e-12, 1e-16, 1e-20, 1e-40])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_newton_where_the_rows_see_one_direction_only(unit: float, share: float) -> None:
    """One point, shown three times with two labels: the margin is ln 2, and across it nothing runs away."""
    x = unit * np.array([0.3, -1.2, 0.7])
    rows = np.tile(x, (3, 1)), np.array([1.0, 1.0, 0.0]), np.full(3, 1 / 3), np.array([0, 3]), np.zeros(3)
    zero, curvature = np.zeros((1, 3)), np.array([share * (x @ x)])
    z = node_solvers.newton(LOGISTIC, vector_buffer(3), *rows, zero, zero, curvature, zero, 1e-12, 60)
    assert x @ z[0] == pytest.approx(np.log(2), rel=1e-6)
    assert np.linalg.norm(z) <= 100 * np.log(2) / np.linalg.norm(x)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([1, 3, 12]), SIZES, st.integers(1, 6))
def test_steps_are_those_of_the_compiled_one(seed: int, n: int, sizes: list[int], steps: int) -> None:
    """From far away, where steps are taken back and damped, none is more than the other's."""
    rng, data, curvature = logistic(seed, n, sizes)
    anchor, start = np.zeros((len(sizes), n)), 20 * rng.standard_normal((len(sizes), n))
    mine, theirs = (
        module.newton(LOGISTIC, vector_buffer(n), *data, anchor, curvature, start, 1e-12, steps)
        for module in (node_solvers, compiled)
    )
    np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6 * np.abs(start).max())


def test_without_time_nothing_moves() -> None:
    rng, data, curvature = logistic(0, 2, [3, 4])
    start = rng.standard_normal((2, 2))
    with interruptible():
        allow(0.0)
        z = node_solvers.newton(LOGISTIC, vector_buffer(2), *data, 0 * start, curvature, start, 1e-12, 60)
    np.testing.assert_array_equal(z, start)


@pytest.mark.parametrize("least", [1.0, 1e-6])
def test_a_step_by_rows_is_that_of_the_whole_matrix(least: float) -> None:
    rng = np.random.default_rng(0)
    X, g, bend = rng.standard_normal((3, 6, 40)), rng.standard_normal((3, 40)), rng.uniform(0, 1, (3, 6))
    bend[:, 2] = 0.0
    diagonal = least * rng.uniform(1, 2, (3, 40))
    step = step_by_rows(X, diagonal, inner_products(X, diagonal), bend, g)
    for i in range(3):
        expected = -np.linalg.solve(np.diag(diagonal[i]) + X[i].T * bend[i] @ X[i], g[i])
        np.testing.assert_allclose(step[i], expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


@settings(max_examples=60)
@given(SEEDS, st.sampled_from([(1, 1), (3, 3), (6, 2), (12, 4)]))
def test_signs_are_kept_as_the_compiled_one_does(seed: int, shape: tuple[int, int]) -> None:
    (n, rank), rng = shape, np.random.default_rng(seed)
    V, h = np.linalg.qr(rng.standard_normal((9, n, rank)))[0].transpose(0, 2, 1), rng.uniform(0.5, 2.0, (9, rank))
    centre, v, tau = rng.standard_normal((9, n)), 3 * rng.standard_normal((9, n)), rng.uniform(0.1, 3.0, 9)
    alpha, start = np.full(n, 0.05), np.sign(v)
    alpha[0], start[0, -1] = 0.0, 0.0
    mine, theirs = np.full((2, 9, n), np.nan)
    given = vector_buffer(n), vector_buffer(n), V, h, centre, alpha, tau, v, start
    np.testing.assert_array_equal(node_solvers.keep_signs(*given, mine), compiled.keep_signs(*given, theirs))
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
