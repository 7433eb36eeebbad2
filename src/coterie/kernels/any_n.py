"""Passes for any number of coordinates: compiled once, where those that know n do not pay.

Arguments and results are those of `edges`, `nodes` and `laplacian`. What a pass does is given when it is called, and
not when it is compiled; one coordinate comes after the other, which takes one to three times as long.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels import ANCHORED, KEEPING, L1, SQUARED
from coterie.kernels.compiling import inline_llvm, jit


@inline_llvm
def _factor(kind, e, i, j, c, sigma, xs, u):
    """By what the proximal map of g* multiplies u + σ(x_i − x_j)."""
    if kind == L1:
        return 1.0
    if kind == SQUARED:
        return 2 * c / (2 * c + sigma)
    length = 0.0
    for k in range(u.shape[1]):
        t = u[e, k] + sigma * (xs[i, 0, k] - xs[j, 0, k])
        length += t * t
    return c / np.sqrt(length) if length > c * c else 1.0


@jit
def edge_pass(_, plan, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """û = prox(u + σDx), u ← aû + bu + gu₀, s ← s + Dᵀu. A probe keeps û and returns Σ|du|²/σ − 2⟨du, D dw⟩."""
    kind, way, probe = plan
    pace, total = min(len(strength) - 1, 1), 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        c, sigma = strength[e * pace, 0], strength[e * pace, 1]
        factor = _factor(kind, e, i, j, c, sigma, xs, u)
        for k in range(np.uint64(u.shape[1])):
            before = u[e, k]
            t = before + sigma * (xs[i, 0, k] - xs[j, 0, k])
            t = min(max(t, -c), c) if kind == L1 else factor * t
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
