"""Quadratic models whose curvature is a diagonal and few rows: diag(h) + ZᵀZ, node by node.

Their primal updates keep (I + τ(diag(h) + ZᵀZ))⁻¹ of the way from the centre. With D = 1 + τh that is D⁻¹ − YᵀY,
Y = √τ L⁻¹ Z D⁻¹ and LLᵀ = I + τ Z D⁻¹ Zᵀ (Woodbury): as many rows as Z has, instead of a matrix.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cholesky import dot
from coterie.kernels.compiling import inline_llvm, jit


@inline_llvm
def _thin_inverse(own, tau, h, Z, Y, keep, C):
    """keep, Y ← D⁻¹ and Y with (diag(own + τh) + τZᵀZ)⁻¹ = D⁻¹ − YᵀY; C is room for a square matrix."""
    rank, n = Z.shape
    root = np.sqrt(tau)
    for k in range(n):
        keep[k] = 1 / (own + tau * h[k])
    for p in range(rank):
        for k in range(n):
            Y[p, k] = root * Z[p, k] * keep[k]
        for q in range(p + 1):
            C[p, q] = root * dot(Y[p], Z[q])
    for p in range(rank):  # Y ← L⁻¹Y, while L is found row by row
        for q in range(p):
            for r in range(q):
                C[p, q] -= C[p, r] * C[q, r]
            C[p, q] *= C[q, q]
            for k in range(n):
                Y[p, k] -= C[p, q] * Y[q, k]
        square = 1.0 + C[p, p]
        for r in range(p):
            square -= C[p, r] * C[p, r]
        C[p, p] = 1 / np.sqrt(max(square, 1.0))  # on the diagonal, what divides
        for k in range(n):
            Y[p, k] *= C[p, p]


@jit
def thin_share(tau, h, Z, Y, keep):
    """keep_i, Y_i ← D⁻¹ and Y of (I + τ(diag(h) + ZᵀZ))⁻¹ = D⁻¹ − YᵀY."""
    C = np.empty((Z.shape[1], Z.shape[1]))
    for i in range(len(Z)):
        _thin_inverse(1.0, tau[i], h, Z[i], Y[i], keep[i], C)


@jit
def thin_fall(h, Z, pull):
    """Return Σ ½⟨pull_i, (diag(h) + ZᵀZ)⁻¹ pull_i⟩, h > 0: by how much linear terms lower the minima of models."""
    rank, n = Z.shape[1], Z.shape[2]
    C, Y, keep, total = np.empty((rank, rank)), np.empty((rank, n)), np.empty(n), 0.0
    for i in range(len(Z)):
        _thin_inverse(0.0, 1.0, h, Z[i], Y, keep, C)
        for k in range(n):
            total += 0.5 * keep[k] * pull[i, k] * pull[i, k]
        for p in range(rank):
            part = dot(Y[p], pull[i])
            total -= 0.5 * part * part
    return total


@jit
def thin_node_pass(rest, at, first, last, tau, place, Y, keep, centre, slope, w, w0, xs, a, b, g, move):
    """The node pass of `nodes` for such models: ŵ = centre + (D⁻¹ − YᵀY)(w − τs − τ slope − centre), x = 2ŵ − w."""
    n, rank = len(rest), Y.shape[1]
    part = np.empty(rank)
    for i in range(first, last):
        row, t = place[i], tau[i]
        for k in range(n):
            at[k] = w[i, k] - t * xs[i, 1, k]
        if row >= 0:
            for k in range(n):
                rest[k] = at[k] - t * slope[row, k] - centre[row, k]
                at[k] = centre[row, k] + keep[row, k] * rest[k]
            for p in range(rank):
                part[p] = dot(Y[row, p], rest)
            for p in range(rank):
                c = part[p]
                for k in range(n):
                    at[k] -= c * Y[row, p, k]
        for k in range(n):
            xs[i, 0, k] = 2 * at[k] - w[i, k]
            xs[i, 1, k] = 0.0
        if move:
            for k in range(n):
                at[k] = a * at[k] + b * w[i, k]
            if g != 0:
                for k in range(n):
                    at[k] += g * w0[i, k]
            for k in range(n):
                w[i, k] = at[k]
