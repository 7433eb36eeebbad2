"""Gram matrices of rows in coordinates of their own, group by group, with bounds on their rounding errors.

A group of nodes (group[i] is that of node i) has weights v = v₀ + C t. In the coordinates t, a row x is z = Cᵀx.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.exact import EPS, part, strict


@part
def _row_in(X, r, C, g, z, doubt):
    """z ← Cᵀx_r and doubt ← a bound on its error, entry by entry; columns of C that are zero are passed over."""
    n = X.shape[1]
    for j in range(n):
        z[j], doubt[j] = 0.0, 0.0
    for k in range(n):
        x = X[r, k]
        if x != 0:
            for j in range(n):
                t = x * C[g, k, j]
                z[j] += t
                doubt[j] += abs(t)
    for j in range(n):
        doubt[j] *= (n + 1) * EPS


@strict
def gram(X, h, starts, ridge, group, C, G, doubt, spoilt, longest):
    """G ← Σ_r h_r z_r z_rᵀ + Σ_i Cᵀ diag(ridge) C; doubt ← how far that is from the truth at most (Frobenius norm).

    spoilt ← Σ_r h_r |error of z_r|², column by column; longest ← the largest |z_r|, or a little more.
    """
    n = X.shape[1]
    z, dz = np.empty(n), np.empty(n)
    G[:] = 0.0
    doubt[:] = 0.0
    spoilt[:] = 0.0
    longest[:] = 0.0
    rows, size = np.zeros(len(G)), np.zeros(len(G))
    for i in range(len(starts) - 1):
        g = group[i]
        for r in range(starts[i], starts[i + 1]):
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
            doubt[g] += h[r] * (2 * np.sqrt(zz * dd) + dd)
            rows[g] += 1
        for k in range(n):
            if ridge[k] > 0:
                rows[g] += 1
                for j in range(n):
                    size[g] += ridge[k] * C[g, k, j] * C[g, k, j]
                    for m in range(j + 1):
                        G[g, j, m] += ridge[k] * C[g, k, j] * C[g, k, m]
    for g in range(len(G)):
        doubt[g] += (rows[g] + 4) * EPS * size[g]
        for j in range(n):
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


@strict
def orthonormalise(G, spoilt, C, weak):
    """C ← C L⁻ᵀ with G = LLᵀ: in the new coordinates, Gram matrices are closer to the identity.

    A pivot that rounding may have made is raised to what rounding can make; its column is marked as weak.
    """
    n = G.shape[1]
    L = np.empty((n, n))
    for g in range(len(G)):
        for j in range(n):
            for k in range(n):
                L[j, k] = 0.0
        for j in range(n):
            weak[g, j] = False
            if G[g, j, j] == 0:
                weak[g, j] = True
                L[j, j] = 1.0
                continue
            for k in range(j):
                t = G[g, j, k]
                for m in range(k):
                    t -= L[j, m] * L[k, m]
                L[j, k] = t / L[k, k]
            pivot = G[g, j, j]
            for m in range(j):
                pivot -= L[j, m] * L[j, m]
            least = max(8 * n * EPS * G[g, j, j], 4 * spoilt[g, j])
            if pivot < 4 * least:
                weak[g, j] = True
            L[j, j] = np.sqrt(max(pivot, least))
        for k in range(n):  # rows of C L⁻ᵀ: forward substitution
            for j in range(n):
                t = C[g, k, j]
                for m in range(j):
                    t -= C[g, k, m] * L[j, m]
                C[g, k, j] = t / L[j, j]


@strict
def project(X, starts, group, C, a, da, b, out, doubt):
    """out ← Cᵀ Σ (Σ_r a_r x_r + b_i), by groups, where a_r is known within da_r; doubt ← how far it may be off."""
    n = X.shape[1]
    z, dz = np.empty(n), np.empty(n)
    out[:] = 0.0
    doubt[:] = 0.0
    rows, size = np.zeros(len(out)), np.zeros(len(out))
    for i in range(len(starts) - 1):
        g = group[i]
        for r in range(starts[i], starts[i + 1]):
            _row_in(X, r, C, g, z, dz)
            zz, dd = 0.0, 0.0
            for j in range(n):
                out[g, j] += a[r] * z[j]
                zz += z[j] * z[j]
                dd += dz[j] * dz[j]
            doubt[g] += abs(a[r]) * np.sqrt(dd) + da[r] * (np.sqrt(zz) + np.sqrt(dd))
            size[g] += abs(a[r]) * np.sqrt(zz)
            rows[g] += 1
        for k in range(n):
            if b[i, k] != 0:
                rows[g] += 1
                for j in range(n):
                    out[g, j] += b[i, k] * C[g, k, j]
                    size[g] += abs(b[i, k] * C[g, k, j])
    for g in range(len(out)):
        doubt[g] = 2 * (doubt[g] + (rows[g] + 4) * EPS * size[g])


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
