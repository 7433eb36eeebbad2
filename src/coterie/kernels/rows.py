"""Losses that are sums over rows, in terms of the rows themselves, with every rounding error accounted for.

L_i(w) = Σ_r s_r ψ(⟨x_r, w⟩; y_r) + Σ_k ridge_k w_k², where ψ is squared error (y − z)² or the logistic loss.
For *any* numbers a_r and b_k, Fenchel's inequality on every row and column gives, for every w,

    L_i(w) ≥ ⟨q_i, w⟩ − Σ_r (s_r ψ)*(a_r) − Σ_k b_k²/(4 ridge_k),        q_i = Σ_r a_r x_r + b.

`lower_bounds` computes the right side at given weights: no factorisation is involved, so nothing that a
factorisation has lost can make it wrong. Rows of node i are those from starts[i] to starts[i + 1].
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.exact import EPS, FAINT, add, add_product, part, strict, two_sum
from coterie.kernels.reference.rows import SQUARED


@part
def _margin(X, w, r, i):
    """⟨x_r, w_i⟩ as hi + lo."""
    hi, lo = 0.0, 0.0
    for k in range(X.shape[1]):
        hi, lo = add_product(hi, lo, X[r, k], w[i, k])
    return hi, lo


@part
def _miss(X, y, w, r, i):
    """A bound on the error of that, and of subtracting it from y_r: (n eps)² times the sizes that were added up."""
    n = X.shape[1]
    reach = abs(y[r])
    for k in range(n):
        reach += abs(X[r, k] * w[i, k])
    return (n * EPS) ** 2 * reach + FAINT


@part
def _softplus(x):
    """log(1 + e^x), accurate where it is tiny."""
    return x + np.log1p(np.exp(-x)) if x > 0 else np.log1p(np.exp(x))


@part
def _chance(x):
    """1/(1 + e^−x), accurate where it is tiny."""
    t = np.exp(-abs(x))
    return 1 / (1 + t) if x > 0 else t / (1 + t)


@part
def _entropy(t):
    """−t log t − (1 − t) log(1 − t)."""
    total = 0.0
    if t > 0:
        total -= t * np.log(t)
    if t < 1:
        total -= (1 - t) * np.log1p(-t)
    return total


@part
def _against(y, hi, lo):
    """What a row's loss depends on: y − z, or for a label the margin z on the wrong side."""
    return (-hi - lo) if y > 0.5 else (hi + lo)


@strict
def values(kind, X, y, s, starts, ridge, w, out):
    """out ← L_i(w_i), with residuals in twice the precision."""
    n = X.shape[1]
    for i in range(len(out)):
        total, low = 0.0, 0.0
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            if kind == SQUARED:
                hi, error = two_sum(y[r], -hi)
                e = hi + (error - lo)
                total, low = add(total, low, s[r] * e * e)
            else:
                total, low = add(total, low, s[r] * _softplus(_against(y[r], hi, lo)))
        for k in range(n):
            if ridge[k] > 0:
                total, low = add(total, low, ridge[k] * w[i, k] * w[i, k])
        out[i] = total + low


@strict
def misses(X, y, starts, w, out):
    """out ← how far each margin ⟨x_r, w_i⟩, or y_r − ⟨x_r, w_i⟩, may be off before it is rounded to one float."""
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            out[r] = _miss(X, y, w, r, i)


@strict
def slopes(kind, X, y, s, starts, ridge, w, a, b):
    """a_r ← s_r ψ'(⟨x_r, w_i⟩) and b ← 2 ridge w: the duals that are best at w."""
    n = X.shape[1]
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            if kind == SQUARED:
                hi, error = two_sum(y[r], -hi)
                a[r] = -2 * s[r] * (hi + (error - lo))
            else:
                wrong = s[r] * _chance(_against(y[r], hi, lo))
                a[r] = -wrong if y[r] > 0.5 else wrong
        for k in range(n):
            b[i, k] = 2 * ridge[k] * w[i, k]


@strict
def bends(X, y, s, starts, w, out):
    """out ← s_r ψ''(⟨x_r, w_i⟩) of the logistic loss, less what a margin that is off can have added."""
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            t = np.exp(-abs(hi + lo))
            out[r] = s[r] * (t / (1 + t) / (1 + t)) * max(1 - _miss(X, y, w, r, i), 0.0)


@strict
def move_slopes(X, s, starts, ridge, step, a, b):
    """a and b of squared error, had the weights been moved by `step`."""
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            z = 0.0
            for k in range(X.shape[1]):
                z += X[r, k] * step[i, k]
            a[r] += 2 * s[r] * z
        for k in range(X.shape[1]):
            b[i, k] += 2 * ridge[k] * step[i, k]


@strict
def forces(X, starts, a, b, q, low, size):
    """q_i + low_i ← Σ_r a_r x_r + b in twice the precision; size ← the sum of what was added, in absolute value."""
    n = X.shape[1]
    for i in range(len(starts) - 1):
        for k in range(n):
            q[i, k], low[i, k], size[i, k] = b[i, k], 0.0, abs(b[i, k])
        for r in range(starts[i], starts[i + 1]):
            for k in range(n):
                if X[r, k] != 0:
                    q[i, k], low[i, k] = add_product(q[i, k], low[i, k], a[r], X[r, k])
                    size[i, k] += abs(a[r] * X[r, k]) + FAINT


@strict
def lower_bounds(kind, X, y, s, starts, ridge, w, a, b, out):
    """out ← what the duals a and b prove of L_i at w_i, less all rounding.

    Squared error: a z − (s ψ)*(a) = −a (y − z) − a²/(4s). Logistic, with z the margin on the wrong side and
    t = |a|/s in [0, 1]: s (t z + entropy(t)). The errors of exp, log and log1p are below 2 units in the last place.
    """
    n = X.shape[1]
    for i in range(len(starts) - 1):
        total, low, rounding_bound = 0.0, 0.0, FAINT
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            rounding_bound += abs(a[r]) * _miss(X, y, w, r, i)
            if kind == SQUARED:
                hi, error = two_sum(y[r], -hi)
                first, second = -a[r] * (hi + (error - lo)), -a[r] * (a[r] / (4 * s[r]))
                rounding_bound += 4 * EPS * (abs(first) + abs(second))
            else:
                t, z = min(abs(a[r]) / s[r], 1.0), _against(y[r], hi, lo)
                first, second = abs(a[r]) * z, s[r] * _entropy(t)
                side = t if t <= 0.5 else max(1 - t, EPS)
                tilt = 1 + (abs(np.log(side)) if side > 0 else 0.0)  # t is rounded: the entropy is no steeper
                rounding_bound += 8 * EPS * (abs(first) + abs(second) + abs(a[r]) * tilt)
            total, low = add(total, low, first)
            total, low = add(total, low, second)
        for k in range(n):
            if ridge[k] > 0:
                first, second = b[i, k] * w[i, k], -b[i, k] * (b[i, k] / (4 * ridge[k]))
                rounding_bound += 4 * EPS * (abs(first) + abs(second))
                total, low = add(total, low, first)
                total, low = add(total, low, second)
        out[i] = (total + low) - rounding_bound - 2 * EPS * abs(total)
