"""Newton's method on thin factors: stationary, and where coordinate descent arrives, the same."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.kernels import descent
from coterie.kernels.descent import coordinate_descent
from coterie.kernels.thin import thin_newton


def problems(count: int, n: int, rank: int, kappa: float, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((count, n, rank)) / np.sqrt(rank)
    alpha = rng.uniform(0.2, 1.0, (count, n))
    alpha[:, 0] = 0.0  # an intercept
    return B, 2 * rng.standard_normal((count, n)), np.full(count, kappa), alpha


def violation(B: np.ndarray, target: np.ndarray, curvature: np.ndarray, alpha: np.ndarray, z: np.ndarray) -> float:
    """How far from stationary z is, at most."""
    slope = target - np.einsum("ikr,ir->ik", B, np.einsum("ikr,ik->ir", B, z)) - curvature[:, None] * z
    return float(np.where(z != 0, np.abs(slope - np.sign(z) * alpha), np.maximum(np.abs(slope) - alpha, 0.0)).max())


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (4, 1), (40, 5), (40, 10), (300, 30), (30, 30)])
@pytest.mark.parametrize("kappa", [10.0, 0.1, 1e-3])
@pytest.mark.parametrize("start", [0.0, 1.0])
def test_stationary_from_wherever_it_starts(n: int, rank: int, kappa: float, start: float) -> None:
    given = problems(5, n, rank, kappa)
    first = start * np.random.default_rng(1).standard_normal((5, n))
    before = first.copy()
    z = thin_newton(*given, first, 1e-13, 200)
    np.testing.assert_array_equal(first, before)
    assert violation(*given, z) <= 1e-9


@pytest.mark.parametrize(("n", "rank", "kappa"), [(12, 3, 1.0), (40, 5, 1.0), (60, 15, 0.3)])
def test_the_same_as_coordinate_descent(n: int, rank: int, kappa: float) -> None:
    B, *rest = problems(4, n, rank, kappa)
    start = np.zeros((4, n))
    expected = coordinate_descent(B @ B.transpose(0, 2, 1), *rest, start, 1e-14, 20_000)
    np.testing.assert_allclose(thin_newton(B, *rest, start, 1e-13, 200), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("method", [coordinate_descent, thin_newton])
def test_some_nodes_of_all(method) -> None:
    B, target, curvature, alpha = problems(6, 20, 4, 1.0)
    M = B if method is thin_newton else B @ B.transpose(0, 2, 1)
    of = np.array([4, 1])
    some = method(M, target[of], curvature[of], alpha[of], np.zeros((2, 20)), 1e-13, 500, of)
    np.testing.assert_array_equal(some, method(M, target, curvature, alpha, np.zeros((6, 20)), 1e-13, 500)[of])


@pytest.mark.parametrize("method", [coordinate_descent, thin_newton])
def test_work_in_pieces_changes_nothing_but_rounding(method, monkeypatch) -> None:
    B, *rest = problems(5, 40, 6, 0.5)
    M = B if method is thin_newton else B @ B.transpose(0, 2, 1)
    whole = method(M, *rest, np.zeros((5, 40)), 1e-13, 500)
    monkeypatch.setattr(descent, "WORK", 1)
    np.testing.assert_allclose(method(M, *rest, np.zeros((5, 40)), 1e-13, 500), whole, rtol=1e-9, atol=1e-11)


def test_equal_and_empty_columns() -> None:
    """Ties at the bound of the soft threshold, and columns that no row sees."""
    B, target, curvature, alpha = problems(3, 24, 4, 0.01)
    B[:, 12:] = B[:, :12]
    B[:, 5] = B[:, 17] = 0.0
    target[:, 12:], alpha[:, 12:] = target[:, :12], alpha[:, :12]
    target[:, 5] = target[:, 17] = alpha[:, 5]  # exactly where the weight would begin to move
    z = thin_newton(B, target, curvature, alpha, np.zeros((3, 24)), 1e-13, 200)
    assert violation(B, target, curvature, alpha, z) <= 1e-9
    np.testing.assert_array_equal(z[:, 5], 0.0)
