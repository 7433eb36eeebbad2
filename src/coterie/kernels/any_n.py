"""Passes for any number of coordinates: compiled once, where those that know n do not pay.

Arguments and results are those of `edges`, `nodes` and `laplacian`. What a pass does is given when it is called, and
not when it is compiled; one coordinate comes after the other, which takes one to three times as long.

Edge passes know a strength for each coordinate as well (`problem/penalties/by_column.py`): 0, a number, or TIED.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels import ANCHORED, KEEPING, L1, L2, TIED
from coterie.kernels.compiling import inline_llvm, jit


@inline_llvm
def _factor(kind, columns, e, i, j, c, sigma, xs, u):
    """By what the proximal map of g* multiplies u + σ(x_i − x_j), if coordinates are cut together."""
    if kind != L2:
        return 1.0
    length = 0.0
    for k in range(u.shape[1]):
        t = u[e, k] + sigma * (xs[i, 0, k] - xs[j, 0, k])
        length += t * t if columns[k] == 1 else 0.0
    return c / np.sqrt(length) if length > c * c else 1.0


@inline_llvm
def _dual_step(kind, t, factor, c, sigma, column):
    """One coordinate of that proximal map."""
    if column == TIED:
        return t
    if kind == L1:
        return min(max(t, -c * column), c * column)
    if kind == L2:
        return factor * t * column
    return t * (2 * c * column / (2 * c * column + sigma))


@jit
def edge_pass(columns, plan, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """û = prox(u + σDx), u ← aû + bu + gu₀, s ← s + Dᵀu. A probe keeps û and returns Σ|du|²/σ − 2⟨du, D dw⟩.

    `columns` (n,) are the strengths of coordinates; of those that are cut together, 0, 1 or TIED.
    """
    kind, way, probe = plan
    pace, total = min(len(strength) - 1, 1), 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        c, sigma = strength[e * pace, 0], strength[e * pace, 1]
        factor = _factor(kind, columns, e, i, j, c, sigma, xs, u)
        for k in range(np.uint64(u.shape[1])):
            before = u[e, k]
            t = before + sigma * (xs[i, 0, k] - xs[j, 0, k])
            t = _dual_step(kind, t, factor, c, sigma, columns[k])
            if probe:
                du, dw = t - before, xs[i, 0, k] - w[i, k] - (xs[j, 0, k] - w[j, k])
                total += du * (du / sigma - dw)
                u_hat[e, k] = t
            if way == KEEPING:
                before, u0[e, k] = u0[e, k], t
                t = a * t + g * before
            else:
                t = a * t + b * before
            if way == ANCHORED:
                t += g * u0[e, k]
            u[e, k] = t
            xs[i, 1, k] += t
            xs[j, 1, k] -= t
    return total


@jit
def node_pass(rest, at, first, last, tau, place, low_rank, V, share2, share3, centre, slope, w, w0, xs, a, b, g, move):
    """ŵ = PU(w − τs) for quadratic losses, x = 2ŵ − w. (share3 is symmetric.)"""
    n = np.uint64(w.shape[1])
    for i in range(first, last):
        row = place[i]
        for k in range(n):
            at[k] = w[i, k] - tau[i] * xs[i, 1, k]
        if row >= 0:
            for k in range(n):
                rest[k] = at[k] - centre[row, k]
            if len(slope) > 0:
                for k in range(n):
                    rest[k] -= tau[i] * slope[row, k]
                    at[k] = centre[row, k]
            if low_rank:
                for r in range(V.shape[1]):
                    d = 0.0
                    for k in range(n):
                        d += V[row, r, k] * rest[k]
                    d *= share2[row, r]
                    for k in range(n):
                        at[k] -= d * V[row, r, k]
            else:
                for k in range(n):
                    d = 0.0
                    for r in range(n):
                        d += share3[row, k, r] * rest[r]
                    at[k] += d if len(slope) > 0 else -d
        for k in range(n):
            xs[i, 0, k] = 2 * at[k] - w[i, k]
            xs[i, 1, k] = 0.0
            if move:
                w[i, k] = a * at[k] + b * w[i, k] + (g * w0[i, k] if g != 0 else 0.0)


@jit
def apply(_, far, ends, S, ground, x, out):
    """out ← (DᵀSD + ground)x."""
    for i in range(len(x)):
        for k in range(x.shape[1]):
            out[i, k] = ground[i, k] * x[i, k] if len(ground) > 0 else 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(np.uint64(x.shape[1])):
            t = S[e, k] * (x[i, k] - x[j, k])
            out[i, k] += t
            out[j, k] -= t
