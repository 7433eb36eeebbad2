"""What statistics does without a graph: common slopes, and an intercept per node, free or shrunken.

    y_r = ⟨x_r, w⟩ + b_i + noise,    b_i = μ + a normal effect of variance γ × that of the noise.

At γ = 0 this is one model for all nodes, at γ = ∞ the intercepts are free (a dummy variable per node), and in between
it is a mixed model: its intercepts are shrunken towards μ, those of nodes with few rows most. γ is the most likely one.
Both count every row alike, and give nodes without labels the intercept μ, or the mean of the free ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import Lasso, Logistic, Loss, Poisson, RowLoss, SquaredError
from coterie.problem.losses.base import penalised_columns

RANGE = (-5.0, 5.0)  # of log₁₀ γ: 10⁻⁵ shrinks a node of 1,000 rows to 1 % of its own mean, 10⁵ leaves one row its own
VAGUE = 100.0  # variance of "free" log-odds or log-rates: a node of one class only, or without any event, has one too
MAX_STEPS, LAST_STEP = 60, 1e-9  # of Newton's method


class Fitted(NamedTuple):
    """Slopes and μ, shape (n,); intercepts of the labelled nodes; −2 log likelihood, up to a constant."""

    common: Array
    intercepts: Array
    deviance: float


def node_intercepts(problem: Problem, unit: float | None = None) -> Array:
    """Weights (V, n) of common slopes and free intercepts, the last column.

    unit : what one row weighs; None: as much as the rows do on average. Condensed rows stand for more than one.
    """
    return _weights(problem, _fit(problem, unit)(np.inf))


def mixed_model(problem: Problem, unit: float | None = None) -> Array:
    """Weights (V, n) of common slopes and intercepts shrunken by the most likely γ: a random-intercept model's."""
    fit = _fit(problem, unit)
    likely = minimize_scalar(lambda g: fit(10**g).deviance, bounds=RANGE, method="bounded", options={"xatol": 0.05})
    return _weights(problem, fit(10 ** float(likely.x)))


def has_intercepts(loss: Loss) -> bool:
    """Whether these two are known for a loss: they have no bounds, and an ℓ1 norm for squared error alone."""
    given: Any = loss
    if type(loss) not in FITS or given.positive or given.lower is not None or given.upper is not None:
        return False
    return FITS[type(loss)] is least_squares or given.l1 == 0


def _fit(problem: Problem, unit: float | None = None) -> Callable[[float], Fitted]:
    rows, fit = problem.data.labelled, FITS[type(problem.loss)]
    rows = replace(rows, weights=rows.weights / (rows.weights.mean() if unit is None else unit))
    return lambda gamma: fit(problem.loss, rows, gamma)


def _weights(problem: Problem, fitted: Fitted) -> Array:
    w = np.tile(fitted.common, (problem.graph.n_nodes, 1))
    w[problem.M, -1] = fitted.intercepts
    return w


def _sums(values: Array, rows: LabelledRows) -> Array:
    """Sums over the rows of each node."""
    return np.add.reduceat(values, rows.starts[:-1], axis=0)


def least_squares(loss: SquaredError | Lasso, rows: LabelledRows, gamma: float) -> Fitted:
    """Fit y_r − θ_i ȳ_i by x_r − θ_i x̄_i: the noise is independent for θ_i = 1 − 1/√(1 + γm_i). Ridge or alpha stay."""
    one = rows.X[:, -1]  # in condensed rows, the column of the intercept is not 1
    m, s = _sums(rows.weights * one**2, rows), rows.weights * one
    mean_x, mean_y = (_sums((s * a.T).T, rows) / m.reshape(-1, *[1] * (a.ndim - 1)) for a in (rows.X, rows.y))
    mean_x[:, -1] = 1.0
    free = np.isinf(gamma)
    left = np.zeros(len(m)) if free else 1 / (1 + gamma * m)  # of a node's own mean, after shrinking
    theta = np.repeat(1 - np.sqrt(left), rows.m) * one
    Z, t = rows.X - theta[:, None] * np.repeat(mean_x, rows.m, axis=0), rows.y - theta * np.repeat(mean_y, rows.m)
    if free:
        loss, Z = replace(loss, unpenalised=()), Z[:, :-1]
    all_rows = LabelledRows(np.zeros(1, dtype=np.int64), np.array([len(t)]), Z, t, rows.weights)
    f = replace(loss, reduction="mean").bind(all_rows)
    v = f.pooled(np.zeros(1, dtype=np.int64), 1)[0]
    own = mean_y - mean_x[:, :-1] @ v[0, : rows.X.shape[1] - 1]
    mu = float(np.average(own, weights=m)) if free else v[0, -1]
    rest = max(float(f.value(v)[0]), np.finfo(float).tiny)
    deviance = 0.0 if free else (m.sum() - 1) * np.log(rest) - np.log(left).sum() + np.log((m * left).sum())
    return Fitted(np.append(v[0, : rows.X.shape[1] - 1], mu), own + left * (mu - own), float(deviance))


def laplace(loss: RowLoss, rows: LabelledRows, gamma: float) -> Fitted:
    """The same for log-odds or log-rates, a normal effect of variance γ: the mode, and Laplace's approximation.

    In other words, a ridge on the intercepts whose strength the likelihood of the training rows chooses.
    """
    variance, n = min(gamma, VAGUE), rows.X.shape[1]
    ridge = 2 * rows.weights.sum() * loss.ridge * penalised_columns(n, loss.unpenalised)
    y, s = (rows.y, rows.weights) if rows.offset is None else loss.absorb(rows.y, rows.weights, rows.offset)
    beta, b, way = np.zeros(n), np.zeros(len(rows.M)), loss.direction(y)

    def margin(beta: Array, b: Array) -> Array:
        return way * (rows.X @ beta + np.repeat(b, rows.m)) + loss.shift(y)

    def value(beta: Array, b: Array) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # of a step that is too long
            cost = float(s @ loss.psi(margin(beta, b), y))
        return cost + float(0.5 * ridge @ beta**2 + 0.5 * (b**2).sum() / variance)

    now = value(beta, b)
    for _ in range(MAX_STEPS):
        e = margin(beta, b)
        slope, h = s * way * loss.slope(e, y), s * loss.bend(e, y)
        C, D = _sums(h[:, None] * rows.X, rows), _sums(h, rows) + 1 / variance
        g_b, g = _sums(slope, rows) + b / variance, rows.X.T @ slope + ridge * beta
        schur = (rows.X.T * h) @ rows.X + np.diag(ridge) - C.T @ (C / D[:, None])
        d = np.linalg.lstsq(schur, C.T @ (g_b / D) - g, rcond=1e-14)[0]
        d_b = -(g_b + C @ d) / D
        length = 1.0
        while not (then := value(beta + length * d, b + length * d_b)) <= now and length > 1e-6:
            length /= 2
        beta, b, before, now = beta + length * d, b + length * d_b, now, then
        if before - now <= LAST_STEP * max(now, 1.0):
            break
    mean = float(np.average(b, weights=_sums(s, rows))) if np.isinf(gamma) else 0.0
    deviance = 2 * now + np.log1p(variance * (D - 1 / variance)).sum()
    return Fitted(beta + mean * (np.arange(n) == n - 1), beta[-1] + b, float(deviance))


FITS: dict[type[Loss], Callable[..., Fitted]] = {
    **dict.fromkeys((SquaredError, Lasso), least_squares),
    **dict.fromkeys((Logistic, Poisson), laplace),
}
