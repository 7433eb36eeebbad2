"""Quadratic models whose curvature is a diagonal and few rows: diag(h) + ZᵀZ, node by node.

Their primal updates keep (I + τ(diag(h) + ZᵀZ))⁻¹ of the way from the centre. With D = 1 + τh that is D⁻¹ − YᵀY,
Y = √τ L⁻¹ Z D⁻¹ and LLᵀ = I + τ Z D⁻¹ Zᵀ (Woodbury): as many rows as Z has, instead of a matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import BLOCK
from coterie.kernels.cholesky import dot
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.forms import knows_n
from coterie.kernels.vector import at, put

BEGIN, REST = np.uint64(0), np.uint64(BLOCK)  # where the first coordinates of a short vector begin, and the others


def node_kernel(n: int) -> Any:
    """Return the node pass for vectors of this length, and what makes room for two of them."""
    if knows_n() and BLOCK < n <= 2 * BLOCK:
        return short_node_pass, lambda: ((0.0,) * BLOCK, (0.0,) * (n - BLOCK))
    return thin_node_pass, lambda: (np.empty(n), np.empty(n))


@inline_llvm
def _thin_inverse(own, tau, h, Z, Y, keep, C):
    """keep, Y ← D⁻¹ and Y with (diag(own + τh) + τZᵀZ)⁻¹ = D⁻¹ − YᵀY; C is room for a square matrix.

    Return the trace of τZD⁻¹Zᵀ, which bounds how stiff any direction is.
    """
    rank, n = Z.shape
    root, trace = np.sqrt(tau), 0.0
    for k in range(n):
        keep[k] = 1 / (own + tau * h[k])
    for p in range(rank):
        for k in range(n):
            Y[p, k] = root * Z[p, k] * keep[k]
        for q in range(p + 1):
            C[p, q] = root * dot(Y[p], Z[q])
        trace += C[p, p]
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
    return trace


@jit
def thin_share(tau, h, Z, Y, keep):
    """keep_i, Y_i ← D⁻¹ and Y of (I + τ(diag(h) + ZᵀZ))⁻¹ = D⁻¹ − YᵀY, which may have more columns, and fewer digits.

    Return how stiff directions are, at most: the largest trace of τZD⁻¹Zᵀ.
    """
    rank, n = Z.shape[1], Z.shape[2]
    C, y, d, stiffest = np.empty((rank, rank)), np.empty((rank, n)), np.empty(n), 0.0
    for i in range(len(Z)):
        stiffest = max(stiffest, _thin_inverse(1.0, tau[i], h, Z[i], y, d, C))
        for k in range(n):
            keep[i, k] = d[k]
        for p in range(rank):
            for k in range(n):
                Y[i, p, k] = y[p, k]
    return stiffest


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
def add_thin(h, Z, group, H):
    """H_g ← Σ diag(h) + Z_iᵀZ_i over the nodes of group g."""
    n = Z.shape[2]
    H[:] = 0.0
    for i in range(len(Z)):
        g = group[i]
        for p in range(Z.shape[1]):
            for k in range(n):
                z = Z[i, p, k]
                for q in range(n):
                    H[g, k, q] += z * Z[i, p, q]
        for k in range(n):
            H[g, k, k] += h[k]


@jit
def thin_node_pass(rest, at, first, last, tau, place, Y, keep, centre, slope, w, w0, xs, a, b, g, move):
    """The node pass of `nodes` for such models: ŵ = centre + (D⁻¹ − YᵀY)(w − τs − τ slope − centre), x = 2ŵ − w.

    In single precision where arrays, factors and room are.
    """
    for i in range(first, last):
        row, t, w_i, x, s = place[i], tau[i], w[i], xs[i, 0], xs[i, 1]
        n = len(w_i)
        for k in range(n):
            at[k] = w_i[k] - t * s[k]
        if row >= 0:
            c, steep, kept = centre[row], slope[row], keep[row]
            for k in range(n):
                rest[k] = at[k] - t * steep[k] - c[k]
                at[k] = c[k] + kept[k] * rest[k]
            for p in range(Y.shape[1]):
                y = Y[row, p]
                part = dot(y, rest)
                for k in range(n):
                    at[k] -= part * y[k]
        for k in range(n):
            x[k] = at[k] + at[k] - w_i[k]
            s[k] = 0.0
        if move and g != 0:
            anchor = w0[i]
            for k in range(n):
                w_i[k] = a * at[k] + b * w_i[k] + g * anchor[k]
        elif move:
            for k in range(n):
                w_i[k] = a * at[k] + b * w_i[k]


@inline_llvm
def _load(t, x, start):
    """x, in the coordinates from start on."""
    for k in range(len(t)):
        t = put(t, k, x[at(start, k)])
    return t


@inline_llvm
def _keep(t, x, start):
    """x ← t, there."""
    for k in range(len(t)):
        x[at(start, k)] = t[k]


@inline_llvm
def _add(t, c, x):
    """t + cx."""
    for k in range(len(t)):
        t = put(t, k, t[k] + c * x[k])
    return t


@inline_llvm
def _add_each(t, c, x):
    """t + cx, a c for each coordinate."""
    for k in range(len(c)):
        t = put(t, k, t[k] + c[k] * x[k])
    return t


@inline_llvm
def _less(t, x):
    """t − x."""
    for k in range(len(t)):
        t = put(t, k, t[k] - x[k])
    return t


@inline_llvm
def _reflected(t, x):
    """2t − x."""
    for k in range(len(t)):
        t = put(t, k, t[k] + t[k] - x[k])
    return t


@inline_llvm
def _sum(t):
    """Of a block; neighbours are added last, which takes fewer instructions."""
    return ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]))


@jit
def short_node_pass(head, tail, first, last, tau, place, Y, keep, centre, slope, w, w0, xs, a, b, g, move):
    """The same with vectors of a block, p, and what is left, q, which stay in registers."""
    for i in range(first, last):
        row, t = place[i], -tau[i]
        wp, wq = _load(head, w[i], BEGIN), _load(tail, w[i], REST)
        p, q = _add(wp, t, _load(head, xs[i, 1], BEGIN)), _add(wq, t, _load(tail, xs[i, 1], REST))
        if row >= 0:
            cp, cq = _load(head, centre[row], BEGIN), _load(tail, centre[row], REST)
            dp = _less(_add(p, t, _load(head, slope[row], BEGIN)), cp)
            dq = _less(_add(q, t, _load(tail, slope[row], REST)), cq)
            p = _add_each(cp, _load(head, keep[row], BEGIN), dp)
            q = _add_each(cq, _load(tail, keep[row], REST), dq)
            for r in range(Y.shape[1]):
                yp, yq = _load(head, Y[row, r], BEGIN), _load(tail, Y[row, r], REST)
                c = -_sum(_add_each(_add_each(head, yp, dp), yq, dq))
                p, q = _add(p, c, yp), _add(q, c, yq)
        _keep(_reflected(p, wp), xs[i, 0], BEGIN)
        _keep(_reflected(q, wq), xs[i, 0], REST)
        _keep(head, xs[i, 1], BEGIN)
        _keep(tail, xs[i, 1], REST)
        if move:
            p, q = _add(_add(head, a, p), b, wp), _add(_add(tail, a, q), b, wq)
            if g != 0:
                p, q = _add(p, g, _load(head, w0[i], BEGIN)), _add(q, g, _load(tail, w0[i], REST))
            _keep(p, w[i], BEGIN)
            _keep(q, w[i], REST)
