"""The node_solvers solvers, node by node, by their optimality conditions and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from coterie.kernels import node_solvers, vector_buffer
from coterie.kernels.descent import coordinate_descent
from coterie.kernels.node_solvers import keep_signs, newton
from exactly import LOGISTIC


def quadratics(count: int, n: int, rank: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((count, rank, n))
    H = B.transpose(0, 2, 1) @ B
    return H, rng.standard_normal((count, n)), rng.uniform(0.1, 1.0, count), rng.uniform(0, 1.5, (count, n))


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (3, 3), (6, 2)])
def test_coordinate_descent_is_stationary(n: int, rank: int) -> None:
    H, target, curvature, alpha = quadratics(7, n, rank)
    alpha[0] = 0.0
    start = np.random.default_rng(1).standard_normal((7, n))
    before = start.copy()
    z = coordinate_descent(H, target, curvature, alpha, start, 1e-13, 2000)
    np.testing.assert_array_equal(start, before)
    for i in range(7):
        slope = target[i] - (H[i] + curvature[i] * np.eye(n)) @ z[i]
        for k in range(n):
            if z[i, k] == 0:
                assert abs(slope[k]) <= alpha[i, k] + 1e-10
            else:
                assert slope[k] == pytest.approx(alpha[i, k] * np.sign(z[i, k]), abs=1e-10)


def test_coordinate_descent_without_alpha_solves_the_linear_system() -> None:
    H, target, curvature, alpha = quadratics(4, 3, 3)
    z = coordinate_descent(H, target, curvature, 0 * alpha, np.zeros((4, 3)), 1e-14, 5000)
    for i in range(4):
        np.testing.assert_allclose(z[i], np.linalg.solve(H[i] + curvature[i] * np.eye(3), target[i]), rtol=1e-9)


def test_one_sweep_is_one_sweep() -> None:
    H, target, curvature, alpha = quadratics(1, 3, 3)
    expected = np.zeros(3)
    for k in range(3):
        diagonal = H[0, k, k] + curvature[0]
        pull = target[0, k] - H[0, k] @ expected + H[0, k, k] * expected[k]
        expected[k] = np.sign(pull) * max(abs(pull) - alpha[0, k], 0.0) / diagonal
    z = coordinate_descent(H, target, curvature, alpha, np.zeros((1, 3)), 1e-13, 1)
    np.testing.assert_allclose(z[0], expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (3, 3), (6, 2), (12, 4)])
def test_signs_are_kept_where_they_can_be(n: int, rank: int) -> None:
    """Agrees with coordinate descent from signs that are right, and says where they are not."""
    rng = np.random.default_rng(0)
    V, h = np.linalg.qr(rng.standard_normal((9, n, rank)))[0].transpose(0, 2, 1), rng.uniform(0.5, 2.0, (9, rank))
    centre, v, tau = rng.standard_normal((9, n)), 3 * rng.standard_normal((9, n)), rng.uniform(0.1, 3.0, 9)
    alpha = np.full(n, 0.05)
    alpha[0] = 0.0
    H = V.transpose(0, 2, 1) * h[:, None, :] @ V
    target = np.einsum("iab,ib->ia", H, centre) + v / tau[:, None]
    expected = coordinate_descent(H, target, 1 / tau, np.tile(alpha, (9, 1)), v, 1e-14, 5000)
    start = np.sign(expected)
    start[0, -1] *= -1
    start[1, -1] = 0.0
    wrong = [i for i in range(9) if not (expected[i] * start[i] > 0)[alpha > 0].all()]
    z = np.full((9, n), np.nan)
    missed = keep_signs(vector_buffer(n), vector_buffer(n), V, h, centre, alpha, tau, v, start, z)
    np.testing.assert_array_equal(missed, wrong)
    right = np.setdiff1d(np.arange(9), wrong)
    np.testing.assert_allclose(z[right], expected[right], rtol=1e-9, atol=1e-11)


SIZES = (3, 1, 6)
STARTS = np.concatenate([[0], np.cumsum(SIZES)])
SHARES = np.repeat(1 / np.array(SIZES), SIZES)


def logistic(n: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((sum(SIZES), n)), rng.integers(0, 2, sum(SIZES)).astype(float)
    p, anchor = 0.1 * rng.standard_normal((2, len(SIZES), n))
    return X, y, np.linspace(0, 0.3, n), p, anchor, np.array([0.5, 2.0, 0.01])


def gradient(i: int, z: np.ndarray, X: np.ndarray, y: np.ndarray, ridge: np.ndarray, p: np.ndarray) -> np.ndarray:
    total = 2 * ridge * z - p[i]
    for r in range(STARTS[i], STARTS[i + 1]):
        total = total + (1 / (1 + np.exp(-X[r] @ z)) - y[r]) * X[r] / SIZES[i]
    return total


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0])
def test_newton_is_stationary_from_wherever_it_starts(n: int, size: float) -> None:
    X, y, ridge, p, anchor, curvature = logistic(n)
    start = size * np.random.default_rng(1).standard_normal((len(SIZES), n))
    before = start.copy()
    z = newton(LOGISTIC, vector_buffer(X.shape[1]), X, y, SHARES, STARTS, ridge, p, anchor, curvature, start, 1e-12, 60)
    np.testing.assert_array_equal(start, before)
    for i in range(len(SIZES)):
        slope = gradient(i, z[i], X, y, ridge, p) + curvature[i] * (z[i] - anchor[i])
        np.testing.assert_allclose(slope, 0.0, atol=1e-10)


@pytest.mark.parametrize("share", [1e-12, 1e-16, 1e-20, 1e-40])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_newton_where_the_rows_see_one_direction_only(unit: float, share: float) -> None:
    """One point, shown three times with two labels: the margin is ln 2, and across it nothing runs away."""
    x = unit * np.array([0.3, -1.2, 0.7])
    X, y, zero = np.tile(x, (3, 1)), np.array([1.0, 1.0, 0.0]), np.zeros((1, 3))
    curvature = np.array([share * (x @ x)])
    z = newton(
        LOGISTIC,
        vector_buffer(X.shape[1]),
        X,
        y,
        np.full(3, 1 / 3),
        np.array([0, 3]),
        np.zeros(3),
        zero,
        zero,
        curvature,
        zero,
        1e-12,
        60,
    )
    assert x @ z[0] == pytest.approx(np.log(2), rel=1e-6)
    assert np.linalg.norm(z) <= 100 * np.log(2) / np.linalg.norm(x)


def test_newton_against_scipy() -> None:
    X, y, ridge, p, anchor, curvature = logistic(3)
    z = newton(
        LOGISTIC,
        vector_buffer(X.shape[1]),
        X,
        y,
        SHARES,
        STARTS,
        ridge,
        p,
        anchor,
        curvature,
        np.zeros((3, 3)),
        1e-12,
        60,
    )
    for i in range(3):
        rows = slice(STARTS[i], STARTS[i + 1])

        def objective(v: np.ndarray, i: int = i, rows: slice = rows) -> float:
            margin = X[rows] @ v
            loss = (np.logaddexp(0, margin) - y[rows] * margin).mean()
            return loss + ridge @ v**2 - p[i] @ v + curvature[i] / 2 * sum((v - anchor[i]) ** 2)

        best = minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
        assert objective(z[i]) <= best.fun + 1e-14
        np.testing.assert_allclose(z[i], best.x, atol=1e-6)


def test_newton_in_pieces_takes_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, ridge, p, anchor, curvature = logistic(4)
    start = 30 * np.random.default_rng(1).standard_normal((3, 4))
    problem = vector_buffer(4), X, y, SHARES, STARTS, ridge, p, anchor, curvature, start, 1e-12, 60
    whole = newton(LOGISTIC, *problem)
    monkeypatch.setattr(node_solvers, "WORK", 1)
    np.testing.assert_array_equal(newton(LOGISTIC, *problem), whole)


@pytest.mark.slow
def test_a_column_that_is_kept_at_zero_does_not_end_the_descent() -> None:
    H, target, curvature, alpha = quadratics(5, 6, 3)
    alpha[:, 2] = 1e300
    z = coordinate_descent(H, target, 1e-6 * curvature, alpha, np.zeros((5, 6)), 1e-13, 20_000)
    np.testing.assert_array_equal(z[:, 2], 0.0)
    others = np.array([0, 1, 3, 4, 5])
    without = H[:, others][:, :, others], target[:, others], 1e-6 * curvature, np.ascontiguousarray(alpha[:, others])
    np.testing.assert_allclose(z[:, others], coordinate_descent(*without, np.zeros((5, 5)), 1e-13, 20_000), atol=1e-7)


@pytest.mark.parametrize("size", [0.0, 3.0])
def test_newton_without_an_anchor_finds_the_minimiser_itself(size: float) -> None:
    """A trace of curvature makes its steps shorter, and its answer no less exact."""
    X, y, ridge, p, _, curvature = logistic(3)
    ridge, start = ridge + 0.1, size * np.random.default_rng(1).standard_normal((len(SIZES), 3))
    given = X, y, SHARES, STARTS, ridge, p, None, 1e-9 * curvature, start
    z = newton(LOGISTIC, vector_buffer(X.shape[1]), *given, 2.0**-52, 60)
    for i in range(len(SIZES)):
        np.testing.assert_allclose(gradient(i, z[i], X, y, ridge, p), 0.0, atol=1e-15 * np.abs(X).sum())
