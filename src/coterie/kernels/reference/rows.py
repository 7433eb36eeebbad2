"""Losses that are sums over rows, with every rounding error accounted for: see the compiled `coterie.kernels.rows`.

Margins ⟨x_r, w_i⟩ and sums over rows are added up in pairs (`sums`), which loses less than half of the
(m eps)² Σ|a_r b_r| that is charged for m terms. NumPy's exp, log and log1p are within 4 units in the last place (its
vector library, numpy/numpy#19478; those of compiled code within 2): with the products around them, an entropy or a
chance is within 5.5 EPS, and 8 are charged.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.exact import EPS, FAINT, quiet, two_product, two_sum
from coterie.kernels.reference.sums import node_of_rows, sum_columns_exactly, sum_rows, sum_rows_exactly

SQUARED, LOGISTIC = 0, 1


def _margins(X, starts, w):
    """⟨x_r, w_i⟩ of every row, as hi + lo."""
    return sum_columns_exactly(*two_product(X, w[node_of_rows(starts)]))


def _residuals(X, y, starts, w):
    """y_r − ⟨x_r, w_i⟩, from twice the precision rounded to one float."""
    hi, lo = _margins(X, starts, w)
    hi, error = two_sum(y, -hi)
    return hi + (error - lo)


def _wrong_margins(X, y, starts, w):
    """The margin of every row on the wrong side of its label, rounded to one float."""
    hi, lo = _margins(X, starts, w)
    return np.where(y > 0.5, -hi - lo, hi + lo)


def _softplus(x):
    """log(1 + e^x), accurate where it is tiny."""
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _chance(x):
    """1/(1 + e^−x), accurate where it is tiny."""
    t = np.exp(-np.abs(x))
    return np.where(x > 0, 1.0, t) / (1 + t)


def _entropy(t):
    """−t log t − (1 − t) log(1 − t)."""
    return -np.where(t > 0, t * np.log(t), 0.0) - np.where(t < 1, (1 - t) * np.log1p(-t), 0.0)


@quiet
def values(kind, X, y, s, starts, ridge, w, out):
    """out ← L_i(w_i), with residuals in twice the precision."""
    if kind == SQUARED:
        e = _residuals(X, y, starts, w)
        terms = s * e * e
    else:
        terms = s * _softplus(_wrong_margins(X, y, starts, w))
    penalty = ridge * w * w
    total, low = sum_rows_exactly(starts, terms, np.zeros_like(terms))
    more, rest = sum_columns_exactly(penalty, np.zeros_like(penalty))
    total, error = two_sum(total, more)
    out[:] = total + (low + rest + error)


@quiet
def misses(X, y, starts, w, out):
    """out ← how far each margin ⟨x_r, w_i⟩, or y_r − ⟨x_r, w_i⟩, may be off before it is rounded to one float.

    (n eps)² times the sizes that were added up: with L = ⌈log₂ n⌉ and u = eps/2, margins lose 2L(L + 1)u² of these, and
    what is rounded when they are subtracted from y is at most (L + 2)u² of them.
    """
    reach = np.abs(y) + np.abs(X * w[node_of_rows(starts)]).sum(axis=1)
    out[:] = (X.shape[1] * EPS) ** 2 * reach + FAINT


@quiet
def slopes(kind, X, y, s, starts, ridge, w, a, b):
    """a_r ← s_r ψ'(⟨x_r, w_i⟩) and b ← 2 ridge w: the duals that are best at w."""
    if kind == SQUARED:
        a[:] = -2 * s * _residuals(X, y, starts, w)
    else:
        a[:] = s * _chance(_wrong_margins(X, y, starts, w)) * np.where(y > 0.5, -1.0, 1.0)
    b[:] = 2 * ridge * w


@quiet
def bends(X, y, s, starts, w, out):
    """out ← s_r ψ''(⟨x_r, w_i⟩) of the logistic loss, less what a margin that is off can have added."""
    hi, lo = _margins(X, starts, w)
    t = np.exp(-np.abs(hi + lo))
    misses(X, y, starts, w, out)
    out[:] = s * (t / (1 + t) / (1 + t)) * np.maximum(1 - out, 0.0)


@quiet
def move_slopes(X, s, starts, ridge, step, a, b):
    """a and b of squared error, had the weights been moved by `step`."""
    a += 2 * s * (X * step[node_of_rows(starts)]).sum(axis=1)
    b += 2 * ridge * step


@quiet
def forces(X, starts, a, b, q, low, size):
    """q_i + low_i ← Σ_r a_r x_r + b in twice the precision; size ← the sum of what was added, in absolute value."""
    product, error = two_product(a[:, None], X)
    size[:] = np.abs(b) + sum_rows(starts, np.abs(product) + FAINT * (X != 0))
    total, rest = sum_rows_exactly(starts, product, error)
    q[:], error = two_sum(total, b)
    low[:] = rest + error


@quiet
def lower_bounds(kind, X, y, s, starts, ridge, w, a, b, out):
    """out ← what the duals a and b prove of L_i at w_i, less all rounding.

    Squared error: a z − (s ψ)*(a) = −a (y − z) − a²/(4s). Logistic, with z the margin on the wrong side and
    t = |a|/s in [0, 1]: s (t z + entropy(t)).
    """
    doubts = np.empty_like(y)
    misses(X, y, starts, w, doubts)
    doubts *= np.abs(a)
    if kind == SQUARED:
        first, second = -a * _residuals(X, y, starts, w), -a * (a / (4 * s))
        doubts += 4 * EPS * (np.abs(first) + np.abs(second))
    else:
        t = np.minimum(np.abs(a) / s, 1.0)
        first, second = np.abs(a) * _wrong_margins(X, y, starts, w), s * _entropy(t)
        side = np.where(t <= 0.5, t, np.maximum(1 - t, EPS))
        tilt = 1 + np.where(side > 0, np.abs(np.log(side)), 0.0)  # t is rounded: the entropy is no steeper
        doubts += 8 * EPS * (np.abs(first) + np.abs(second) + np.abs(a) * tilt)
    total, low = sum_rows_exactly(starts, *two_sum(first, second))
    rounding_bound = FAINT + sum_rows(starts, doubts)
    if (ridge > 0).any():
        B, W, penalty = b[:, ridge > 0], w[:, ridge > 0], ridge[ridge > 0]
        first, second = B * W, -B * (B / (4 * penalty))
        rounding_bound += 4 * EPS * (np.abs(first) + np.abs(second)).sum(axis=1)
        more, rest = sum_columns_exactly(*two_sum(first, second))
        total, error = two_sum(total, more)
        low += rest + error
    out[:] = (total + low) - rounding_bound - 2 * EPS * np.abs(total)
