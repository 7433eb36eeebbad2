"""Rows and numbers that are hard on floating point: of very different sizes, with sums that cancel."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

import coterie as ct
from coterie.problem.losses.psi import Psi
from exactly import DIGITS, SQUARED, exact_loss, high, inner


def ugly(rng: np.random.Generator, shape: tuple[int, ...], decades: float = 8.0) -> np.ndarray:
    """Numbers of very different sizes, zeros among them."""
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-decades, decades, shape) * (rng.random(shape) < 0.9)


def cancelling(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors whose inner product is far smaller than its terms."""
    a, b = ugly(rng, (count,)), ugly(rng, (count,))
    if a[-1] and count > 1:
        b[-1] = -float(inner(a[:-1], b[:-1]) / Fraction(float(a[-1])))
    return a, b


def design(seed: int, kind: Psi, n: int = 3, sizes: tuple[int, ...] = (1, 4)) -> Any:
    """Rows that fit the weights w so well that residuals are differences of far larger numbers."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X, w = ugly(rng, (starts[-1], n), 4.0), ugly(rng, (len(sizes), n), 4.0)
    z = np.einsum("rk,rk->r", X, np.repeat(w, sizes, axis=0))
    y = z + 10.0 ** rng.uniform(-20, 2) * rng.standard_normal(len(z))
    if isinstance(kind, ct.Logistic | ct.Poisson | ct.SquaredHinge):
        X = X * np.minimum(1.0, 30 / np.maximum(np.abs(z), 1e-300))[:, None]
        y = (rng.random(len(z)) < 0.5).astype(float)
    if isinstance(kind, ct.Poisson):
        y = np.where(y > 0, np.exp(np.clip(z, -30, 30)), rng.poisson(3.0, len(z)))
    s = 10.0 ** rng.uniform(-6, 2, len(z))
    ridge = np.where(rng.random(n) < 0.5, 10.0 ** rng.uniform(-8, 2, n), 0.0)
    return rng, X, y, s, starts.astype(np.int64), ridge, w


def check_values(rows: Any, kind: Psi, drawn: Any) -> None:
    """The values that a form of the kernels computes are within what its margins may be off, and 1e-13 for the rest."""
    _, X, y, s, starts, ridge, w = drawn
    out, miss = np.empty(len(w)), np.empty(len(X))
    rows.values(kind, X, y, s, starts, ridge, w, out)
    rows.misses(X, y, starts, w, miss)
    for i in range(len(w)):
        at = slice(starts[i], starts[i + 1])
        truth = exact_loss(kind, X[at], y[at], s[at], ridge, w[i])
        with mpmath.workdps(DIGITS):
            truth = high(truth) if isinstance(truth, Fraction) else truth
            found, power = mpmath.mpf(float(out[i])), 2 if kind == SQUARED else 1
            lost = mpmath.fsum(
                mpmath.mpf(float(a)) * mpmath.mpf(float(d)) ** power for a, d in zip(s[at], miss[at], strict=True)
            )
            if power == 2:
                truth, found, lost = map(mpmath.sqrt, (truth, found, lost))
            assert abs(truth - found) <= lost + truth * mpmath.mpf("1e-13")
