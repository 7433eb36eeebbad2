"""Gram matrices of rows in coordinates of their own, group by group, with bounds on their rounding errors.

A group of nodes (group[i] is that of node i) has weights v = v₀ + C t. In the coordinates t, a row x is z = Cᵀx.
What takes long works in pieces, and raises TimeUp or KeyboardInterrupt between two of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.exact import EPS, part, strict
from coterie.kernels.interruption import WORK, pieces


@part
def _row_in(X, r, C, g, z, rounding_bound):
    """z ← Cᵀx_r and rounding_bound ← a bound on its error, by entries; columns of zeros in C are passed over."""
    n = X.shape[1]
    for j in range(n):
        z[j], rounding_bound[j] = 0.0, 0.0
    for k in range(n):
        x = X[r, k]
        if x != 0:
            for j in range(n):
                t = x * C[g, k, j]
                z[j] += t
                rounding_bound[j] += abs(t)
    for j in range(n):
        rounding_bound[j] *= (n + 1) * EPS


def gram(
    X: Any, h: Any, starts: Any, ridge: Any, group: Any, C: Any, G: Any, rounding_bound: Any, spoilt: Any, longest: Any
) -> None:
    """G ← Σ_r h_r z_r z_rᵀ + Σ_i Cᵀ diag(ridge) C; rounding_bound ← how far it is from the truth (Frobenius norm).

    spoilt ← Σ_r h_r |error of z_r|², column by column; longest ← the largest |z_r|, or a little more.
    """
    for out in (G, rounding_bound, spoilt, longest):
        out[:] = 0.0
    rows, size = np.zeros(len(G)), np.zeros(len(G))
    for first, last in pieces(len(X), 2 * X.shape[1] ** 2):
        _add_rows(first, last, X, h, starts, ridge, group, C, G, rounding_bound, spoilt, longest, rows, size)
    _complete(G, rounding_bound, rows, size)


@part
def _node_of(row, starts):
    """The node that a row belongs to."""
    return np.searchsorted(starts, row, side="right") - 1


@strict
def _add_rows(first, last, X, h, starts, ridge, group, C, G, rounding_bound, spoilt, longest, rows, size):
    """Add the rows from first to last, and the ridge of nodes whose last row is among them."""
    n = X.shape[1]
    z, dz = np.empty(n), np.empty(n)
    for i in range(_node_of(first, starts), len(starts) - 1):
        g = group[i]
        if starts[i] >= last:
            break
        for r in range(max(starts[i], first), min(starts[i + 1], last)):
            _row_in(X, r, C, g, z, dz)
            zz, dd = 0.0, 0.0
            for j in range(n):
                zz += z[j] * z[j]
                dd += dz[j] * dz[j]
                spoilt[g, j] += h[r] * dz[j] * dz[j]
                t = h[r] * z[j]
                if t != 0:
                    for k in range(j + 1):
                        G[g, j, k] += t * z[k]
            longest[g] = max(longest[g], np.sqrt(zz) + np.sqrt(dd))
            size[g] += h[r] * zz
            rounding_bound[g] += h[r] * (2 * np.sqrt(zz * dd) + dd)
            rows[g] += 1
        for k in range(n):
            if ridge[k] > 0 and starts[i + 1] <= last:
                rows[g] += 1
                for j in range(n):
                    size[g] += ridge[k] * C[g, k, j] * C[g, k, j]
                    for m in range(j + 1):
                        G[g, j, m] += ridge[k] * C[g, k, j] * C[g, k, m]


@strict
def _complete(G, rounding_bound, rows, size):
    """Charge the sums their rounding, and fill the upper half."""
    for g in range(len(G)):
        rounding_bound[g] += (rows[g] + 4) * EPS * size[g]
        for j in range(G.shape[1]):
            for k in range(j):
                G[g, k, j] = G[g, j, k]


@strict
def lengths(X, h, starts, ridge, group, out):
    """out ← √(Σ_r h_r x_rk² + ridge_k), column by column and group by group."""
    out[:] = 0.0
    for i in range(len(starts) - 1):
        g = group[i]
        for k in range(X.shape[1]):
            out[g, k] += ridge[k]
        for r in range(starts[i], starts[i + 1]):
            for k in range(X.shape[1]):
                out[g, k] += h[r] * X[r, k] * X[r, k]
    for g in range(len(out)):
        for k in range(X.shape[1]):
            out[g, k] = np.sqrt(out[g, k])


def orthonormalise(G: Any, spoilt: Any, C: Any, weak: Any) -> None:
    """C ← C L⁻ᵀ with G = LLᵀ: in the new coordinates, Gram matrices are closer to the identity.

    A pivot that rounding may have made is raised to what rounding can make; its column is marked as weak.
    """
    n = G.shape[1]
    if n**3 <= WORK:
        for first, last in pieces(len(G), n**3):
            _whole_groups(first, last, G, spoilt, C, weak)
        return
    L = np.empty((n, n))
    for g in range(len(G)):
        for factor in (True, False):
            for first, last in pieces(n, n * n):
                _some_rows(factor, first, last, g, G, spoilt, C, weak, L)


@strict
def _whole_groups(first, last, G, spoilt, C, weak):
    n = G.shape[1]
    L = np.empty((n, n))
    for g in range(first, last):
        _factorise(0, n, G[g], spoilt[g], weak[g], L)
        _substitute(0, n, L, C[g])


@strict
def _some_rows(factor, first, last, g, G, spoilt, C, weak, L):
    if factor:
        _factorise(first, last, G[g], spoilt[g], weak[g], L)
    else:
        _substitute(first, last, L, C[g])


@part
def _factorise(first, last, G, spoilt, weak, L):
    """Rows of L, from first to last."""
    n = len(G)
    for j in range(first, last):
        weak[j] = False
        if G[j, j] == 0:
            weak[j] = True
            for k in range(j):
                L[j, k] = 0.0
            L[j, j] = 1.0
            continue
        for k in range(j):
            t = G[j, k]
            for m in range(k):
                t -= L[j, m] * L[k, m]
            L[j, k] = t / L[k, k]
        pivot = G[j, j]
        for m in range(j):
            pivot -= L[j, m] * L[j, m]
        least = max(8 * n * EPS * G[j, j], 4 * spoilt[j])
        if pivot < 4 * least:
            weak[j] = True
        L[j, j] = np.sqrt(max(pivot, least))


@part
def _substitute(first, last, L, C):
    """Rows of C L⁻ᵀ, from first to last: forward substitution."""
    for k in range(first, last):
        for j in range(len(L)):
            t = C[k, j]
            for m in range(j):
                t -= C[k, m] * L[j, m]
            C[k, j] = t / L[j, j]


def project(X: Any, starts: Any, group: Any, C: Any, a: Any, da: Any, b: Any, out: Any, rounding_bound: Any) -> None:
    """out ← Cᵀ Σ (Σ_r a_r x_r + b_i), by groups, where a_r is known within da_r; rounding_bound ← its error."""
    out[:] = 0.0
    rounding_bound[:] = 0.0
    rows, size = np.zeros(len(out)), np.zeros(len(out))
    for first, last in pieces(len(X), X.shape[1] ** 2):
        _project_rows(first, last, X, starts, group, C, a, da, b, out, rounding_bound, rows, size)
    rounding_bound[:] = 2 * (rounding_bound + (rows + 4) * EPS * size)


@strict
def _project_rows(first, last, X, starts, group, C, a, da, b, out, rounding_bound, rows, size):
    """Add the rows from first to last, and b of nodes whose last row is among them."""
    n = X.shape[1]
    z, dz = np.empty(n), np.empty(n)
    for i in range(_node_of(first, starts), len(starts) - 1):
        g = group[i]
        if starts[i] >= last:
            break
        for r in range(max(starts[i], first), min(starts[i + 1], last)):
            _row_in(X, r, C, g, z, dz)
            zz, dd = 0.0, 0.0
            for j in range(n):
                out[g, j] += a[r] * z[j]
                zz += z[j] * z[j]
                dd += dz[j] * dz[j]
            rounding_bound[g] += abs(a[r]) * np.sqrt(dd) + da[r] * (np.sqrt(zz) + np.sqrt(dd))
            size[g] += abs(a[r]) * np.sqrt(zz)
            rows[g] += 1
        for k in range(n):
            if b[i, k] != 0 and starts[i + 1] <= last:
                rows[g] += 1
                for j in range(n):
                    out[g, j] += b[i, k] * C[g, k, j]
                    size[g] += abs(b[i, k] * C[g, k, j])


@strict
def stretch(X, s, starts, group, size, squares, sums):
    """squares ← Σ_r s_r (Σ_k |x_rk| size_k)², sums ← Σ_r s_r Σ_k |x_rk| size_k: what weights that are off cost.

    size (G, n) says how far the weights of each group are off.
    """
    squares[:] = 0.0
    sums[:] = 0.0
    for i in range(len(starts) - 1):
        g = group[i]
        for r in range(starts[i], starts[i + 1]):
            t = 0.0
            for k in range(X.shape[1]):
                t += abs(X[r, k]) * size[g, k]
            squares[g] += s[r] * t * t
            sums[g] += s[r] * t
