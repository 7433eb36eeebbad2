"""Edge passes: the dual half of an iteration.

Arrays, those of edges with the part of one thread: ``ends`` (E, 2) unsigned node numbers, in the order of the first;
``strength`` (E, 2) holds c_e and σ_e side by side, or (1, 2) where they are the same for all edges; ``xs`` (V, 2, n)
holds x = 2ŵ − w and the running sum s = Dᵀu of each node side by side, so that one visit loads both.

What a pass does is its *plan*, made of numbers that the compiler knows (`static_int`): every plan is a loop of its own.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coterie.kernels import ANCHORED, KEEPING, L1, L2, SQUARED, is_wide, static_int
from coterie.kernels.compiling import inline_ir, inline_llvm, jit
from coterie.kernels.prefetch import AHEAD, prefetch_node
from coterie.kernels.vector import at, inverse, put

BEGIN = np.uint64(0)  # of the coordinates


class Plan(NamedTuple):
    """What a pass does: the penalty, how u moves, whether û and the residual are kept; whether all edges have the same
    strength, which is then read once; whether second ends lie so far apart that they are asked for in time.

    Each is something whose length the compiler knows.
    """

    penalty: tuple[int, ...]
    way: tuple[int, ...]
    probe: tuple[int, ...]
    equal: tuple[int, ...]
    far: tuple[int, ...]


@cache
def plan(kind: int, way: int, *, probe: bool, equal: bool, far: bool) -> Plan:
    """The plan of a pass: the same one again and again, as one is asked for in every iteration."""
    return Plan(*(static_int(int(number)) for number in (kind, way, probe, equal, far)))


@inline_ir
def dual_step(kind, t, length, c, sigma):
    """Apply the proximal map of g* to (a part of) the vector t of one edge; length is that of the whole, squared."""
    if kind == L1:
        for k in range(len(t)):
            t = put(t, k, min(max(t[k], -c), c))
        return t
    factor = 2 * c / (2 * c + sigma) if kind == SQUARED else (c / np.sqrt(length) if length > c * c else 1.0)
    for k in range(len(t)):
        t = put(t, k, t[k] * factor)
    return t


@inline_llvm
def _mix(way, e, start, t, u, u0, a, b, g):
    """aû + bu + gu₀; when keeping, u₀ ← û."""
    n = len(t)
    if way == KEEPING:
        for k in range(n):
            before = u0[e, at(start, k)]
            u0[e, at(start, k)] = t[k]
            t = put(t, k, a * t[k] + g * before)
        return t
    for k in range(n):
        t = put(t, k, a * t[k] + b * u[e, at(start, k)])
    if way == ANCHORED:
        for k in range(n):
            t = put(t, k, t[k] + g * u0[e, at(start, k)])
    return t


@inline_llvm
def _towards(t, e, j, start, x, sigma, xs, u):
    """u + σ(x − x_j), in the coordinates from start on."""
    for k in range(len(t)):
        t = put(t, k, u[e, at(start, k)] + sigma * (x[k] - xs[j, 0, at(start, k)]))
    return t


@inline_ir
def _square(t):
    total = 0.0
    for k in range(len(t)):
        total += t[k] * t[k]
    return total


@inline_ir
def _sum(t):
    total = 0.0
    for k in range(len(t)):
        total += t[k]
    return total


@inline_llvm
def _load(t, i, start, xs):
    """x of a node, in the coordinates from start on."""
    for k in range(len(t)):
        t = put(t, k, xs[i, 0, at(start, k)])
    return t


@inline_llvm
def _add_residual(total, t, e, i, j, start, x, pace, xs, u, w):
    """total + |du|²/σ − 2⟨du, D dw⟩, by coordinate. (In short loops: long ones are not unrolled, and far slower.)"""
    n, du, dw = len(t), t, x
    for k in range(n):
        du = put(du, k, t[k] - u[e, at(start, k)])
    for k in range(n):
        dw = put(dw, k, x[k] - w[i, at(start, k)])
    for k in range(n):
        dw = put(dw, k, dw[k] - (xs[j, 0, at(start, k)] - w[j, at(start, k)]))
    for k in range(n):
        total = put(total, k, total[k] + du[k] * (du[k] * pace - dw[k]))
    return total


@inline_llvm
def _edge(plan, total, t, length, e, i, j, start, x, c, sigma, xs, u, u0, a, b, g, w, u_hat):
    """The next u of an edge from t = u + σ(x_i − x_j). A probe keeps û and adds to the total."""
    n = len(t)
    t = dual_step(len(plan.penalty), t, length, c, sigma)
    if len(plan.probe) > 0:
        total = _add_residual(total, t, e, i, j, start, x, inverse(sigma), xs, u, w)
        for k in range(n):
            u_hat[e, at(start, k)] = t[k]
    t = _mix(len(plan.way), e, start, t, u, u0, a, b, g)
    for k in range(n):
        xs[j, 1, at(start, k)] -= t[k]
    return t, total


@inline_llvm
def _by_edge(plan, zeros, total, length, e, i, j, start, c, sigma, xs, u, u0, a, b, g, w, u_hat):
    """Update some coordinates of one edge."""
    n = len(zeros)
    x = _load(zeros, i, start, xs)
    t = _towards(zeros, e, j, start, x, sigma, xs, u)
    if len(plan.penalty) == L2 and length == 0.0:
        length = _square(t)
    t, total = _edge(plan, total, t, length, e, i, j, start, x, c, sigma, xs, u, u0, a, b, g, w, u_hat)
    for k in range(n):
        xs[i, 1, at(start, k)] += t[k]
    for k in range(n):
        u[e, at(start, k)] = t[k]
    return total


@inline_llvm
def _by_row(plan, zeros, total, e, start, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """Update some coordinates of all edges that begin where edge e does; also return the edge that comes next."""
    n = len(zeros)
    i = ends[e, 0]
    x, s = _load(zeros, i, start, xs), zeros
    c, sigma = strength[0, 0], strength[0, 1]
    while e < len(ends) and ends[e, 0] == i:
        if len(plan.far) > 0:
            prefetch_node(zeros, xs, ends[min(e + AHEAD, len(ends) - 1), 1])
        if len(plan.equal) == 0:
            c, sigma = strength[e, 0], strength[e, 1]
        j = ends[e, 1]
        t = _towards(zeros, e, j, start, x, sigma, xs, u)
        length = _square(t) if len(plan.penalty) == L2 else 0.0
        t, total = _edge(plan, total, t, length, e, i, j, start, x, c, sigma, xs, u, u0, a, b, g, w, u_hat)
        for k in range(n):
            s = put(s, k, s[k] + t[k])
        for k in range(n):
            u[e, at(start, k)] = t[k]
        e += 1
    for k in range(n):
        xs[i, 1, at(start, k)] += s[k]
    return total, e


@jit
def edge_pass(zeros, plan, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """û = prox(u + σDx), u ← aû + bu + gu₀, s ← s + Dᵀu.

    A probe returns Σ|du|²/σ − 2⟨du, D dw⟩, for the residual, with dw = (x − w)/2. (For dual steps w = x.)
    """
    total = zeros
    c, sigma = strength[0, 0], strength[0, 1]
    for e in range(len(ends)):
        if len(plan.far) > 0:
            prefetch_node(zeros, xs, ends[min(e + AHEAD, len(ends) - 1), 1])
        if len(plan.equal) == 0:
            c, sigma = strength[e, 0], strength[e, 1]
        i, j = ends[e, 0], ends[e, 1]
        total = _by_edge(plan, zeros, total, 0.0, e, i, j, BEGIN, c, sigma, xs, u, u0, a, b, g, w, u_hat)
    return _sum(total)


@jit
def row_pass(zeros, plan, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """The same where nodes begin several edges: x and the sum of the first end stay in registers."""
    total = zeros
    e = len(ends) - len(ends)  # zero, and no constant: one version of the row is enough
    while e < len(ends):
        total, e = _by_row(plan, zeros, total, e, BEGIN, ends, strength, xs, u, u0, a, b, g, w, u_hat)
    return _sum(total)


@jit
def wide_edge_pass(blocks, plan, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """An edge pass in several blocks."""
    block, tail, n_blocks = blocks
    most, total, length = block, tail, 0.0
    c, sigma = strength[0, 0], strength[0, 1]
    rest = np.uint64(n_blocks * len(block))
    for e in range(len(ends)):
        if len(plan.far) > 0:
            prefetch_node(block, xs, ends[min(e + AHEAD, len(ends) - 1), 1])
        if len(plan.equal) == 0:
            c, sigma = strength[e, 0], strength[e, 1]
        i, j = ends[e, 0], ends[e, 1]
        if len(plan.penalty) == L2:
            length = _square(_towards(tail, e, j, rest, _load(tail, i, rest, xs), sigma, xs, u))
            for m in range(n_blocks):
                start = np.uint64(m * len(block))
                length += _square(_towards(block, e, j, start, _load(block, i, start, xs), sigma, xs, u))
        for m in range(n_blocks):
            start = np.uint64(m * len(block))
            most = _by_edge(plan, block, most, length, e, i, j, start, c, sigma, xs, u, u0, a, b, g, w, u_hat)
        total = _by_edge(plan, tail, total, length, e, i, j, rest, c, sigma, xs, u, u0, a, b, g, w, u_hat)
    return _sum(most) + _sum(total)


@jit
def wide_row_pass(blocks, plan, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """A row pass in several blocks, for penalties that do not couple coordinates."""
    block, tail, n_blocks = blocks
    most, total = block, tail
    rest = np.uint64(n_blocks * len(block))
    e = len(ends) - len(ends)
    while e < len(ends):
        for m in range(n_blocks):
            start = np.uint64(m * len(block))
            most, _ = _by_row(plan, block, most, e, start, ends, strength, xs, u, u0, a, b, g, w, u_hat)
        total, e = _by_row(plan, tail, total, e, rest, ends, strength, xs, u, u0, a, b, g, w, u_hat)
    return _sum(most) + _sum(total)


def kernel(kind: int, n: int, long_rows: bool) -> Any:
    """Return the edge pass for this penalty and this number of coordinates, on a graph with long rows or short ones."""
    if not is_wide(n):
        return row_pass if long_rows else edge_pass
    return wide_row_pass if long_rows and kind != L2 else wide_edge_pass


@jit
def edge_sums(first, last, ends, xs, u):
    """s ← s + Dᵀu."""
    for e in range(first, last):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(u.shape[1]):
            xs[i, 1, k] += u[e, k]
            xs[j, 1, k] -= u[e, k]


@jit
def dual_travel(first, last, strength, u, u0):
    """Σ |u − u₀|²/σ."""
    pace = min(len(strength) - 1, 1)
    total = 0.0
    for e in range(first, last):
        part = 0.0
        for k in range(u.shape[1]):
            part += (u[e, k] - u0[e, k]) ** 2
        total += part / strength[e * pace, 1]
    return total
