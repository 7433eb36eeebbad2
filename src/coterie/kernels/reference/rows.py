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


def _margins(X, starts, w):
    """⟨x_r, w_i⟩ of every row, as hi + lo."""
    return sum_columns_exactly(*two_product(X, w[node_of_rows(starts)]))


def _arguments(psi, X, y, starts, w):
    """e = direction·⟨x_r, w_i⟩ + shift of every row, from twice the precision rounded to one float."""
    (hi, lo), way = _margins(X, starts, w), psi.direction(y)
    hi, error = two_sum(psi.shift(y), way * hi)
    return hi + (error + way * lo)


@quiet
def values(psi, X, y, s, starts, ridge, w, out):
    """out ← L_i(w_i), with residuals in twice the precision."""
    terms = s * psi.psi(_arguments(psi, X, y, starts, w), y)
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
def slopes(psi, X, y, s, starts, ridge, w, a, b):
    """a_r ← s_r ψ'(e_r)·direction and b ← 2 ridge w: the duals that are best at w."""
    a[:] = s * psi.slope(_arguments(psi, X, y, starts, w), y) * psi.direction(y)
    b[:] = 2 * ridge * w


@quiet
def bends(psi, X, y, s, starts, w, out):
    """out ← s_r ψ''(e_r)."""
    out[:] = s * psi.bend(_arguments(psi, X, y, starts, w), y)


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
def lower_bounds(psi, X, y, s, starts, ridge, w, a, b, out):
    """out ← what the duals a and b prove of L_i at w_i, less all rounding.

    A row proves s (te − ψ*(t)), t = a·direction/s, if t lies inside the domain of ψ* for all that rounding can do.
    """
    doubts = np.empty_like(y)
    misses(X, y, starts, w, doubts)
    force = a * psi.direction(y)
    t, (lowest, highest) = force / s, psi.domain(y)
    first, second = force * _arguments(psi, X, y, starts, w), -s * psi.conjugate(t, y)
    second = np.where((t < lowest) | (t > highest), -np.inf, second)
    doubts = doubts * np.abs(a) + 8 * EPS * (np.abs(first) + np.abs(second)) + s * psi.conjugate_rounding(t, y)
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
