"""Losses that are sums over rows, in terms of the rows themselves, with every rounding error accounted for.

L_i(w) = Σ_r s_r ψ(e_r; y_r) + Σ_k ridge_k w_k², where ψ (`psi`) is a function of e_r = direction·⟨x_r, w⟩ + shift.
For *any* numbers a_r and b_k, Fenchel's inequality on every row and column gives, for every w,

    L_i(w) ≥ ⟨q_i, w⟩ − Σ_r (s_r ψ)*(a_r) − Σ_k b_k²/(4 ridge_k),        q_i = Σ_r a_r x_r + b.

`lower_bounds` computes the right side at given weights: no factorisation is involved, so nothing that a
factorisation has lost can make it wrong. Rows of node i are those from starts[i] to starts[i + 1].
"""

from __future__ import annotations

from coterie.kernels import psi
from coterie.kernels.exact import EPS, FAINT, add, add_product, part, strict
from coterie.kernels.psi import for_families


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


@for_families
@strict
def values(kind, c, X, y, s, starts, ridge, w, out):
    """out ← L_i(w_i), with residuals in twice the precision."""
    n = X.shape[1]
    for i in range(len(out)):
        total, low = 0.0, 0.0
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            total, low = add(total, low, s[r] * psi.value(kind, c, psi.argument(kind, y[r], hi, lo), y[r]))
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


@for_families
@strict
def slopes(kind, c, X, y, s, starts, ridge, w, a, b):
    """a_r ← s_r ψ'(e_r)·direction and b ← 2 ridge w: the duals that are best at w."""
    n = X.shape[1]
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            steep = psi.slope(kind, c, psi.argument(kind, y[r], hi, lo), y[r])
            a[r] = s[r] * steep * psi.direction(kind, y[r])
        for k in range(n):
            b[i, k] = 2 * ridge[k] * w[i, k]


@for_families
@strict
def bends(kind, c, X, y, s, starts, w, out):
    """out ← s_r ψ''(e_r)."""
    for i in range(len(starts) - 1):
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            out[r] = s[r] * psi.bend(kind, c, psi.argument(kind, y[r], hi, lo), y[r])


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


@for_families
@strict
def lower_bounds(kind, c, X, y, s, starts, ridge, w, a, b, out):
    """out ← what the duals a and b prove of L_i at w_i, less all rounding.

    A row proves s (te − ψ*(t)), t = a·direction/s. Errors of exp, log and log1p are below 2 units in the last place.
    """
    n = X.shape[1]
    for i in range(len(starts) - 1):
        total, low, rounding_bound = 0.0, 0.0, FAINT
        for r in range(starts[i], starts[i + 1]):
            hi, lo = _margin(X, w, r, i)
            rounding_bound += abs(a[r]) * _miss(X, y, w, r, i)
            e, force = psi.argument(kind, y[r], hi, lo), a[r] * psi.direction(kind, y[r])
            t = force / s[r]
            first, second = force * e, -s[r] * psi.conjugate(kind, c, t, y[r])
            rounding_bound += 8 * EPS * (abs(first) + abs(second)) + s[r] * psi.conjugate_rounding(kind, c, t, y[r])
            total, low = add(total, low, first)
            total, low = add(total, low, second)
        for k in range(n):
            if ridge[k] > 0:
                first, second = b[i, k] * w[i, k], -b[i, k] * (b[i, k] / (4 * ridge[k]))
                rounding_bound += 4 * EPS * (abs(first) + abs(second))
                total, low = add(total, low, first)
                total, low = add(total, low, second)
        out[i] = (total + low) - rounding_bound - 2 * EPS * abs(total)
