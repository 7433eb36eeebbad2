"""The objective in exact arithmetic: fractions, and 60 digits where a logarithm is needed. No code of the package.

Numbers are what is stored: a share 1/3 is the float next to it, and a strength λA the product of two floats.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

import coterie as ct
from coterie.problem.losses.psi import SQUARED, Psi
from problems import case_of

LOGISTIC, POISSON, HUBER, HINGE, QUANTILE = (
    ct.Logistic(),
    ct.Poisson(),
    ct.Huber(delta=0.3),
    ct.SquaredHinge(),
    ct.Quantile(q=0.3),
)
__all__ = ["SQUARED"]
DIGITS = 60
Exact = Any  # a Fraction, or an mpf with 60 digits


def fractions(values: Iterable[Any]) -> list[Fraction]:
    return [value if isinstance(value, Fraction) else Fraction(float(value)) for value in values]


def inner(a: Iterable[Any], b: Iterable[Any]) -> Fraction:
    return sum((x * y for x, y in zip(fractions(a), fractions(b), strict=True)), Fraction(0))


def high(value: Fraction) -> Exact:
    """A fraction with 60 digits."""
    with mpmath.workdps(DIGITS):
        return mpmath.mpf(value.numerator) / mpmath.mpf(value.denominator)


def softplus(z: Fraction) -> Exact:
    """log(1 + e^z)."""
    with mpmath.workdps(DIGITS):
        x = high(z)
        return x + mpmath.log1p(mpmath.exp(-x)) if x > 0 else mpmath.log1p(mpmath.exp(x))


def at_most(small: Exact, large: Exact) -> bool:
    """small ≤ large, for fractions without any tolerance, else up to the 60 digits that were asked for."""
    if isinstance(small, Fraction) and isinstance(large, Fraction):
        return small <= large
    with mpmath.workdps(DIGITS):
        small, large = (high(x) if isinstance(x, Fraction) else x for x in (small, large))
        return bool(small <= large + mpmath.mpf(10) ** (10 - DIGITS) * (1 + abs(large)))


def exact_psi(kind: Any, z: Fraction, y: Fraction) -> Exact:
    """ψ of one row with the margin z and the label y."""
    if isinstance(kind, ct.Logistic):
        return softplus(-z if y > Fraction(1, 2) else z)
    if isinstance(kind, ct.Poisson):
        with mpmath.workdps(DIGITS):
            rate, count = mpmath.exp(high(z)), high(y)
            return rate - count * high(z) + (count * mpmath.log(count) - count if count else 0)
    if isinstance(kind, ct.Huber):
        size, delta = abs(y - z), Fraction(float(kind.delta))
        return size**2 if size <= delta else delta * (2 * size - delta)
    if isinstance(kind, ct.Quantile):
        q = Fraction(float(kind.q))
        return max(q * (y - z), (q - 1) * (y - z))
    if isinstance(kind, ct.SquaredHinge):
        return max(1 - (z if y > Fraction(1, 2) else -z), Fraction(0)) ** 2
    return (y - z) ** 2


def exact_loss(kind: Psi, X: np.ndarray, y: np.ndarray, s: np.ndarray, ridge: np.ndarray, w: Iterable[Any]) -> Exact:
    """Σ_r s_r ψ(⟨x_r, w⟩; y_r) + Σ_k ridge_k w_k² of one node."""
    w = fractions(w)
    total = sum((Fraction(float(a)) * b * b for a, b in zip(ridge, w, strict=True)), Fraction(0))
    for x, b, c in zip(X, fractions(y), fractions(s), strict=True):
        total = _plus(total, _times(c, exact_psi(kind, inner(x, w), b)))
    return total


def exact_objective(problem: ct.Problem, w: Any) -> Exact:
    """f(w) + g(Dw), with shares that are exact, too: what is asked for, not what is stored."""
    data, loss = problem.data, problem.loss
    rows = np.flatnonzero(~np.isnan(data.y) & (data.weights > 0))
    W = [fractions(row) for row in w]
    ridge, alpha = ([_strength(loss, *names)] * problem.n_features for names in (("ridge",), ("alpha", "l1")))
    for k in loss.unpenalised:
        ridge[k] = alpha[k] = Fraction(0)
    total: Exact = Fraction(0)
    for i in sorted(set(data.nodes[rows].tolist())):
        own = rows[data.nodes[rows] == i]
        weights = fractions(data.weights[own])
        if getattr(loss, "reduction", "mean") == "mean":
            weights = [a / sum(weights) for a in weights]
        part: Exact = Fraction(0)
        for a, r in zip(weights, own, strict=True):
            part = _plus(part, _times(a, exact_psi(loss, inner(data.X[r], W[i]), Fraction(float(data.y[r])))))
        own_penalty = sum(r * b * b + a * abs(b) for r, a, b in zip(ridge, alpha, W[i], strict=True))
        total = _plus(_plus(total, part), own_penalty)
    for (i, j), a in zip(problem.graph.edges, problem.graph.weights, strict=True):
        d = [x - y for x, y in zip(W[i], W[j], strict=True)]
        total = _plus(total, _times(Fraction(problem.lam) * Fraction(float(a)), _phi(problem.penalty, d)))
    return total


def _strength(loss: Any, *names: str) -> Fraction:
    """What a loss has under one of these names; 0 where it has none."""
    return sum((Fraction(float(getattr(loss, name, 0.0))) for name in names), Fraction(0))


def _phi(penalty: ct.Penalty, d: list[Fraction]) -> Exact:
    if isinstance(penalty, ct.TotalVariation):
        return sum(map(abs, d), Fraction(0))
    square = sum((x * x for x in d), Fraction(0))
    if isinstance(penalty, ct.SquaredVariation):
        return square
    assert case_of(penalty)
    with mpmath.workdps(DIGITS):
        return mpmath.sqrt(high(square)) if square else Fraction(0)


def _plus(a: Exact, b: Exact) -> Exact:
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a + b
    with mpmath.workdps(DIGITS):
        return (high(a) if isinstance(a, Fraction) else a) + (high(b) if isinstance(b, Fraction) else b)


def _times(a: Fraction, b: Exact) -> Exact:
    if isinstance(b, Fraction):
        return a * b
    with mpmath.workdps(DIGITS):
        return high(a) * b


def solve(A: list[list[Fraction]], b: list[Fraction]) -> list[Fraction] | None:
    """Some x with Ax = b, exactly; None where there is none."""
    rows, pivots = [[*row, value] for row, value in zip(A, b, strict=True)], []
    width = len(rows[0]) - 1 if rows else 0
    for column in range(width):
        found = next((k for k in range(len(pivots), len(rows)) if rows[k][column]), None)
        if found is None:
            continue
        here = len(pivots)
        rows[here], rows[found] = rows[found], rows[here]
        rows[here] = [value / rows[here][column] for value in rows[here]]
        for k in range(len(rows)):
            if k != here and rows[k][column]:
                rows[k] = [x - rows[k][column] * y for x, y in zip(rows[k], rows[here], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    x = [Fraction(0)] * width
    for row, column in zip(rows, pivots, strict=False):
        x[column] = row[-1]
    return x
