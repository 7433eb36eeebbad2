"""Coordinate descent and Newton's method for the Lasso in NumPy: stationary, and where the compiled ones are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import descent as compiled_descent
from coterie.kernels import thin as compiled_thin
from coterie.kernels.interruption import allow, interruptible
from coterie.kernels.reference.descent import coordinate_descent
from coterie.kernels.reference.thin import thin_newton

SEEDS = st.integers(0, 2**32)
methods = pytest.mark.parametrize("method", [coordinate_descent, thin_newton])


def problems(seed: int, count: int, n: int, rank: int, kappa: float) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((count, n, rank)) / np.sqrt(rank)
    alpha = rng.uniform(0.2, 1.0, (count, n))
    alpha[:, 0] *= rng.integers(0, 2)  # an intercept
    return B, 2 * rng.standard_normal((count, n)), np.full(count, kappa), alpha


def matrices(method: Any, B: Any) -> Any:
    return B if method is thin_newton else B @ B.transpose(0, 2, 1)


def violation(B: Any, target: Any, curvature: Any, alpha: Any, z: Any) -> float:
    """How far from stationary z is, at most."""
    slope = target - np.einsum("ikr,ir->ik", B, np.einsum("ikr,ik->ir", B, z)) - curvature[:, None] * z
    return float(np.where(z != 0, np.abs(slope - np.sign(z) * alpha), np.maximum(np.abs(slope) - alpha, 0.0)).max())


@methods
@settings(max_examples=60)
@given(
    seed=SEEDS,
    shape=st.sampled_from([(1, 1), (3, 3), (4, 1), (12, 3), (40, 5)]),
    kappa=st.sampled_from([10.0, 1.0, 0.3]),
    far=st.sampled_from([0.0, 1.0]),
)
def test_stationary_and_where_the_compiled_one_is(
    method: Any, seed: int, shape: tuple[int, int], kappa: float, far: float
) -> None:
    B, *rest = given = problems(seed, 5, *shape, kappa)
    start = far * np.random.default_rng(seed + 1).standard_normal((5, shape[0]))
    before = start.copy()
    z = method(matrices(method, B), *rest, start, 1e-13, 2000)
    np.testing.assert_array_equal(start, before)
    assert violation(*given, z) <= 1e-9
    compiled = getattr(compiled_thin if method is thin_newton else compiled_descent, method.__name__)
    other = compiled(matrices(method, B), *rest, start, 1e-13, 2000)
    np.testing.assert_allclose(z, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("n", "rank"), [(40, 10), (300, 30), (30, 30)])
@pytest.mark.parametrize("kappa", [0.1, 1e-3, 1e-9])
def test_newton_is_stationary_with_little_curvature(n: int, rank: int, kappa: float) -> None:
    given = problems(0, 5, n, rank, kappa)
    z = thin_newton(*given, np.zeros((5, n)), 1e-13, 200)
    assert violation(*given, z) <= 1e-9 + 1e-14 * np.abs(z).max()


@settings(max_examples=40)
@given(SEEDS, st.integers(1, 7))
def test_sweeps_are_those_of_the_compiled_one(seed: int, sweeps: int) -> None:
    B, *rest = problems(seed, 4, 8, 8, 1e-3)
    H, start = B @ B.transpose(0, 2, 1), np.zeros((4, 8))
    mine, theirs = (
        descend(H, *rest, start, 1e-13, sweeps) for descend in (coordinate_descent, compiled_descent.coordinate_descent)
    )
    np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)


@methods
def test_some_nodes_of_all(method: Any) -> None:
    B, target, curvature, alpha = problems(0, 6, 20, 4, 1.0)
    M, of = matrices(method, B), np.array([4, 1])
    some = method(M, target[of], curvature[of], alpha[of], np.zeros((2, 20)), 1e-13, 500, of)
    all_nodes = method(M, target, curvature, alpha, np.zeros((6, 20)), 1e-13, 500)
    np.testing.assert_allclose(some, all_nodes[of], rtol=1e-9, atol=1e-12)


@methods
def test_without_time_nothing_moves(method: Any) -> None:
    B, *rest = problems(0, 3, 12, 3, 1.0)
    with interruptible():
        allow(0.0)
        np.testing.assert_array_equal(method(matrices(method, B), *rest, np.ones((3, 12)), 1e-13, 500), 1.0)


@methods
def test_equal_and_empty_columns(method: Any) -> None:
    """Ties at the bound of the soft threshold, and columns that no row sees."""
    B, target, curvature, alpha = problems(0, 3, 24, 4, 0.01)
    B[:, 12:] = B[:, :12]
    B[:, 5] = B[:, 17] = 0.0
    target[:, 12:], alpha[:, 12:] = target[:, :12], alpha[:, :12]
    target[:, 5] = target[:, 17] = alpha[:, 5]  # exactly where the weight would begin to move
    z = method(matrices(method, B), target, curvature, alpha, np.zeros((3, 24)), 1e-13, 20_000)
    assert violation(B, target, curvature, alpha, z) <= 1e-9
    np.testing.assert_array_equal(z[:, 5], 0.0)


def test_a_column_that_is_kept_at_zero_does_not_end_the_descent() -> None:
    B, target, curvature, alpha = problems(0, 5, 6, 3, 1e-3)
    H, others = B @ B.transpose(0, 2, 1), np.array([0, 1, 3, 4, 5])
    alpha[:, 2] = 1e300
    z = coordinate_descent(H, target, curvature, alpha, np.zeros((5, 6)), 1e-13, 20_000)
    np.testing.assert_array_equal(z[:, 2], 0.0)
    without = H[:, others][:, :, others], target[:, others], curvature, alpha[:, others]
    np.testing.assert_allclose(z[:, others], coordinate_descent(*without, np.zeros((5, 5)), 1e-13, 20_000), atol=1e-7)
