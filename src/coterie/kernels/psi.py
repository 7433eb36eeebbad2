"""ψ of single rows, compiled: the formulas of `coterie.problem.losses`, by the number of the family.

`c` is the parameter of a family, where it has one. A row depends on e = direction·⟨x, w⟩ + shift.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from coterie.kernels.exact import EPS, part, two_sum
from coterie.kernels.kinds import CLASSES, HUBER, LOGISTIC, POISSON, QUANTILE, SQUARED_HINGE

HIGHEST = 300.0  # a margin whose exponential is still far from overflow, times anything
STEEP = 8.0  # a rate that far above its count: Newton's method would go down by one at a time
INSIDE = 1 - 16 * EPS  # of the way to where ψ* ends: what rounding cannot leave


def for_families(kernel: Any) -> Any:
    """Take a family as its number and its parameter; one that has no number is left to the NumPy form of the kernel."""

    @wraps(kernel)
    def call(psi: Any, *arguments: Any) -> Any:
        if psi.kernel is None:
            plain = import_module(kernel.__module__.replace("kernels.", "kernels.reference."))
            return getattr(plain, kernel.__name__)(psi, *arguments)
        return kernel(psi.kernel, psi.parameter, *arguments)

    return call


@part
def _xlogx(x):
    return x * np.log(x) if x > 0 else 0.0


@part
def _excess(d):
    """e^d − 1 − d, by its series where that would cancel."""
    if abs(d) < 0.01:
        return d * d * (1 / 2 + d * (1 / 6 + d * (1 / 24 + d * (1 / 120 + d * (1 / 720 + d / 5040)))))
    return np.expm1(d) - d


@part
def direction(kind, y):
    """±1, by which e changes with the margin."""
    if kind in (LOGISTIC, SQUARED_HINGE):
        return -1.0 if y > 0.5 else 1.0
    return 1.0 if kind == POISSON else -1.0


@part
def argument(kind, y, hi, lo):
    """e of a margin hi + lo, rounded to one float."""
    if kind == LOGISTIC:
        return (-hi - lo) if y > 0.5 else (hi + lo)
    if kind == POISSON:
        return hi + lo
    way = direction(kind, y)
    hi, error = two_sum(1.0 if kind == SQUARED_HINGE else y, way * hi)
    return hi + (error + way * lo)


@part
def value(kind, c, e, y):
    """ψ(e)."""
    if kind == LOGISTIC:  # log(1 + e^x), accurate where it is tiny
        return e + np.log1p(np.exp(-e)) if e > 0 else np.log1p(np.exp(e))
    if kind == POISSON:
        return y * _excess(e - np.log(y)) if y > 0 else np.exp(e)
    if kind == QUANTILE:
        return c * e if e > 0 else (c - 1) * e
    if kind == HUBER and abs(e) > c:
        return c * (2 * abs(e) - c)
    return 0.0 if kind == SQUARED_HINGE and e < 0 else e * e


@part
def slope(kind, c, e, y):
    """ψ′(e)."""
    if kind == LOGISTIC:  # 1/(1 + e^−x), accurate where it is tiny
        t = np.exp(-abs(e))
        return 1 / (1 + t) if e > 0 else t / (1 + t)
    if kind == POISSON:
        return max(np.exp(min(e, HIGHEST)) - y, -y * INSIDE)
    if kind == HUBER:
        return max(min(2 * e, 2 * c * INSIDE), -2 * c * INSIDE)
    if kind == QUANTILE:
        return INSIDE * (c if e > 0 else c - 1) if e != 0 else 0.0
    return 0.0 if kind == SQUARED_HINGE and e < 0 else 2 * e


@part
def bend(kind, c, e, y):
    """ψ″(e)."""
    if kind == LOGISTIC:
        t = np.exp(-abs(e))
        return t / (1 + t) / (1 + t)
    if kind == POISSON:
        return np.exp(min(e, HIGHEST))
    if kind == QUANTILE:
        return 0.0
    return 0.0 if (kind == HUBER and abs(e) > c) or (kind == SQUARED_HINGE and e <= 0) else 2.0


@part
def slope_and_bend(kind, c, e, y):
    """ψ′(e) and what Newton's method takes for ψ″(e), with one exponential."""
    if kind == LOGISTIC:
        chance = slope(kind, c, e, y)
        return chance, chance * (1 - chance)
    if kind == POISSON:
        rate = np.exp(min(e, HIGHEST))
        above = e - np.log1p(y) if e > STEEP else 0.0
        return max(rate - y, -y * INSIDE), rate / above if above > STEEP else rate
    return slope(kind, c, e, y), bend(kind, c, e, y)


@part
def most_bend(kind, c, e, y, way):
    """ψ″ at most, as far as `way` from e."""
    if kind == LOGISTIC:
        return bend(kind, c, max(abs(e) - way, 0.0), y)
    if kind == HUBER and way > 0:  # above ψ everywhere
        return 2 * c / max(abs(e), c)
    return bend(kind, c, e + (min(way, 1.0) if kind == POISSON else way), y)


@part
def conjugate(kind, c, t, y):
    """ψ*(t); ∞ where t is outside its domain."""
    if kind == LOGISTIC:
        if t < 0 or t > 1:
            return np.inf
        total = 0.0
        if t > 0:
            total += t * np.log(t)
        if t < 1:
            total += (1 - t) * np.log1p(-t)
        return total
    if kind == POISSON:
        return _xlogx(t + y) - (t + y) - (_xlogx(y) - y) if t >= -y * (1 - 4 * EPS) else np.inf
    if kind == QUANTILE:
        return 0.0 if (c - 1) * (1 - 4 * EPS) <= t <= c * (1 - 4 * EPS) else np.inf
    outside = (kind == HUBER and abs(t) > 2 * c * (1 - 4 * EPS)) or (kind == SQUARED_HINGE and t < 0)
    return np.inf if outside else t * (t / 4)


@part
def is_even(kind):
    """Whether curvature changes by no larger a part than a margin by a number: |ψ‴| ≤ ψ″."""
    return kind in (LOGISTIC, POISSON, CLASSES)


@part
def conjugate_rounding(kind, c, t, y):
    """How far that may be off, beyond 8 EPS of it: t is rounded, and terms cancel."""
    if kind == LOGISTIC:  # the entropy is no steeper
        side = t if t <= 0.5 else max(1 - t, EPS)
        return 8 * EPS * t * (1 + (abs(np.log(side)) if side > 0 else 0.0))
    if kind == POISSON:
        v = abs(t + y)
        eta = EPS * (abs(t) + v)
        off = eta * (1 + abs(np.log(eta)) + abs(np.log(v + eta))) if eta > 0 else 0.0
        return 8 * EPS * (v + abs(_xlogx(v)) + y + abs(_xlogx(y))) + off
    return 0.0
