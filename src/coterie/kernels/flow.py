"""Passes over the edges for objective and certificate: Dᵀu, g(Dw), and the weighted Laplacian of dual repair."""

from __future__ import annotations

import numpy as np

from coterie.kernels import inlined, jit
from coterie.kernels.edges import L1, L2
from coterie.kernels.vector import put

LEAST_WEIGHT = 0.1  # of an edge without slack, against 1 for an edge with all of it


@jit
def divergence(ends, u, out):
    """out ← Dᵀu."""
    out[:] = 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(u.shape[1]):
            out[i, k] += u[e, k]
            out[j, k] -= u[e, k]


@jit
def variation(kind, ends, c, w):
    """g(Dw) = Σ c_e φ(w_i − w_j)."""
    total = 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        part = 0.0
        for k in range(w.shape[1]):
            d = w[i, k] - w[j, k]
            part += abs(d) if kind == L1 else d * d
        total += c[e] * (np.sqrt(part) if kind == L2 else part)
    return total


@inlined
def _weights(register, kind, c, u, e):
    """The share that each coordinate of an edge takes of a correction: its slack, but never nothing."""
    S = register
    n = len(register)
    if kind == L1:
        for k in range(n):
            S = put(S, k, max(c - abs(u[e, k]), LEAST_WEIGHT * c))
    else:
        slack = c
        if kind == L2:
            length = 0.0
            for k in range(n):
                length += u[e, k] * u[e, k]
            slack = max(c - np.sqrt(length), LEAST_WEIGHT * c)
        for k in range(n):
            S = put(S, k, slack)
    return S


@jit
def laplacian(register, kind, ends, c, u, x, out):
    """out ← DᵀSDx, with S the weights of the edges at u."""
    n = len(register)
    out[:] = 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        S = _weights(register, kind, c[e], u, e)
        for k in range(n):
            S = put(S, k, S[k] * (x[i, k] - x[j, k]))
        for k in range(n):
            out[i, k] += S[k]
        for k in range(n):
            out[j, k] -= S[k]


@jit
def laplacian_diagonal(register, kind, ends, c, u, out):
    """out ← the diagonal of DᵀSD."""
    out[:] = 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        S = _weights(register, kind, c[e], u, e)
        for k in range(len(register)):
            out[i, k] += S[k]
            out[j, k] += S[k]


@jit
def correct(register, kind, ends, c, u, potential):
    """u ← u − SDφ, back into the domain of g*."""
    n = len(register)
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        t = _weights(register, kind, c[e], u, e)
        for k in range(n):
            t = put(t, k, u[e, k] - t[k] * (potential[i, k] - potential[j, k]))
        if kind == L1:
            for k in range(n):
                t = put(t, k, min(max(t[k], -c[e]), c[e]))
        elif kind == L2:
            length = 0.0
            for k in range(n):
                length += t[k] * t[k]
            factor = min(1.0, c[e] / max(np.sqrt(length), 1e-300))
            for k in range(n):
                t = put(t, k, t[k] * factor)
        for k in range(n):
            u[e, k] = t[k]


@jit
def keep_flat(register, place, sees_all, seen, x):
    """x ← Nx: at a labelled node, only the directions that its data do not see are kept."""
    n = len(register)
    for i in range(len(place)):
        row = place[i]
        if row < 0:
            continue
        if sees_all:
            for k in range(n):
                x[i, k] = 0.0
            continue
        t = register
        for k in range(n):
            t = put(t, k, x[i, k])
        for r in range(seen.shape[1]):
            d = 0.0
            for k in range(n):
                d += seen[row, r, k] * x[i, k]
            for k in range(n):
                t = put(t, k, t[k] - d * seen[row, r, k])
        for k in range(n):
            x[i, k] = t[k]
