"""Newton's method by rows takes the steps of Newton's method by columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from coterie.kernels import node_solvers, vector_buffer
from coterie.kernels.compiling import jit
from coterie.kernels.few_rows import inner_products, step_by_rows
from coterie.kernels.node_solvers import newton
from exactly import LOGISTIC

SIZES = (5, 1, 30, 2)  # of 40 columns: 30 rows are not few
STARTS = np.concatenate([[0], np.cumsum(SIZES)])
SHARES = np.repeat(1 / np.array(SIZES), SIZES)


@jit
def one_step(X, diagonal, bend, g):
    m, n = X.shape
    K, A, step = np.empty((m, m)), np.empty((m, m)), np.empty(n)
    inner_products(X, 0, m, diagonal, step, K)
    step_by_rows(X, 0, m, diagonal, K, bend, g, step, A, np.empty(m), np.empty(m))
    return step


@pytest.mark.parametrize("least", [1.0, 1e-6])
def test_a_step_is_that_of_the_whole_matrix(least: float) -> None:
    rng = np.random.default_rng(0)
    X, g, bend = rng.standard_normal((6, 40)), rng.standard_normal(40), rng.uniform(0, 1, 6)
    bend[2] = 0.0
    diagonal = least * rng.uniform(1, 2, 40)
    step = one_step(X, diagonal, bend, g)
    expected = -np.linalg.solve(np.diag(diagonal) + X.T * bend @ X, g)
    np.testing.assert_allclose(step, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


def problem(n: int, ridge: float) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((sum(SIZES), n)), rng.integers(0, 2, sum(SIZES)).astype(float)
    a = SHARES * (rng.uniform(0.1, 0.9, len(y)) - y)  # forces that some weights attain
    p = np.add.reduceat(a[:, None] * X, STARTS[:-1])
    columns = np.full(n, ridge)
    columns[0] = 0.0
    return X, y, columns, p, 0.1 * rng.standard_normal((len(SIZES), n))


@pytest.mark.parametrize("n", [40, 12])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize(("curvature", "size"), [(1.0, 3.0), (1e-6, 0.5), (1e-11, 0.0)])
def test_newton_is_stationary_with_and_without_ridge(n: int, ridge: float, curvature: float, size: float) -> None:
    X, y, columns, p, anchor = problem(n, ridge)
    kappa, start = np.full(len(SIZES), curvature), size * np.random.default_rng(2).standard_normal((len(SIZES), n))
    z = newton(LOGISTIC, vector_buffer(n), X, y, SHARES, STARTS, columns, p, anchor, kappa, start, 1e-12, 60)
    for i in range(len(SIZES)):
        rows = slice(STARTS[i], STARTS[i + 1])
        a = SHARES[rows] * (expit(X[rows] @ z[i]) - y[rows])
        terms = np.abs(a) @ np.abs(X[rows]) + np.abs(p[i])
        slope = a @ X[rows] + 2 * columns * z[i] - p[i] + curvature * (z[i] - anchor[i])
        assert np.abs(slope).max() <= 1e-10 * terms.max()


def test_in_pieces_it_takes_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, columns, p, anchor = problem(40, 0.1)
    start = 30 * np.random.default_rng(1).standard_normal((len(SIZES), 40))
    given = vector_buffer(40), X, y, SHARES, STARTS, columns, p, anchor, np.full(4, 1e-3), start, 1e-12, 60
    whole = newton(LOGISTIC, *given)
    monkeypatch.setattr(node_solvers, "WORK", 1)
    np.testing.assert_array_equal(newton(LOGISTIC, *given), whole)
