"""Edge passes: the dual half of an iteration.

Arrays: ``ends`` (E, 2) unsigned node numbers, in the order of the first, ``begin`` (V + 1) where those of each first
end begin; ``strength`` (E, 2) holds c_e and σ_e side by side, or (1, 2) where they are the same for all edges;
``xs`` (V, 2, n) holds x = 2ŵ − w and the running sum s = Dᵀu of each node side by side, so that one visit loads both.
Each pass handles the edges first ≤ e < last.

What a pass does is its *plan*, made of numbers that the compiler knows (`known`): every plan is a loop of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import inlined, jit, known
from coterie.kernels.prefetch import AHEAD, prefetch_node
from coterie.kernels.vector import put

L1, L2, SQUARED = 0, 1, 2  # which penalty
RELAXED, ANCHORED, KEEPING = 0, 1, 2  # u ← aû + bu, or + gu₀, or with u₀ ← û


def plan(kind: int, way: int, *, probe: bool, equal: bool, far: bool) -> Any:
    """What a pass does: the penalty, how u moves, whether û and the residual are kept; whether all edges have the same
    strength, which is then read once; whether second ends lie so far apart that they are asked for in time."""
    return tuple(known(int(number)) for number in (kind, way, probe, equal, far))


@inlined
def dual_step(kind, t, c, sigma):
    """Apply the proximal map of g* to the vector t of one edge."""
    n = len(t)
    if kind == L1:
        for k in range(n):
            t = put(t, k, min(max(t[k], -c), c))
    elif kind == L2:
        length = 0.0
        for k in range(n):
            length += t[k] * t[k]
        if length > c * c:
            factor = c / np.sqrt(length)
            for k in range(n):
                t = put(t, k, t[k] * factor)
    else:
        factor = 2 * c / (2 * c + sigma)
        for k in range(n):
            t = put(t, k, t[k] * factor)
    return t


@inlined
def _mix(register, way, e, t, u, u0, a, b, g):
    """aû + bu + gu₀; when keeping, u₀ ← û."""
    if way == KEEPING:
        for k in range(len(register)):
            before = u0[e, k]
            u0[e, k] = t[k]
            t = put(t, k, a * t[k] + g * before)
        return t
    for k in range(len(register)):
        t = put(t, k, a * t[k] + b * u[e, k])
    if way == ANCHORED:
        for k in range(len(register)):
            t = put(t, k, t[k] + g * u0[e, k])
    return t


@inlined
def _edge(register, plan, total, e, i, j, x, c, sigma, xs, u, u0, a, b, g, w, u_hat):
    """The next u of an edge; x is that of its first end. A probe keeps û and adds to the total."""
    n = len(register)
    t = register
    for k in range(n):
        t = put(t, k, u[e, k] + sigma * (x[k] - xs[j, 0, k]))
    t = dual_step(len(plan[0]), t, c, sigma)
    if len(plan[2]) > 0:
        inverse = 1 / sigma
        for k in range(n):
            du = t[k] - u[e, k]
            dw = 0.5 * ((x[k] - w[i, k]) - (xs[j, 0, k] - w[j, k]))
            total = put(total, k, total[k] + du * (du * inverse - 2 * dw))
        for k in range(n):
            u_hat[e, k] = t[k]
    return _mix(register, len(plan[1]), e, t, u, u0, a, b, g), total


@jit
def edge_pass(rooms, plan, first, last, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """û = prox(u + σDx), u ← aû + bu + gu₀, s ← s + Dᵀu.

    A probe returns the parts of Σ|du|²/σ − 2⟨du, D dw⟩, for the residual, with dw = (x − w)/2. (For dual steps w = x.)
    """
    register, x, _, total = rooms
    n = len(register)
    for k in range(n):
        total = put(total, k, 0.0)
    ends, u, u0, u_hat = ends[first:last], u[first:last], u0[first:last], u_hat[first:last]  # no index is negative
    strength = strength if len(plan[3]) > 0 else strength[first:last]
    if len(ends) == 0:
        return total
    c, sigma = strength[0, 0], strength[0, 1]
    for e in range(len(ends)):
        if len(plan[4]) > 0:
            far = ends[min(e + AHEAD, len(ends) - 1), 1]
            prefetch_node(register, xs, far)
            if len(plan[2]) > 0:
                prefetch_node(register, w, far)
        if len(plan[3]) == 0:
            c, sigma = strength[e, 0], strength[e, 1]
        i, j = ends[e, 0], ends[e, 1]
        for k in range(n):
            x = put(x, k, xs[i, 0, k])
        t, total = _edge(register, plan, total, e, i, j, x, c, sigma, xs, u, u0, a, b, g, w, u_hat)
        for k in range(n):
            xs[j, 1, k] -= t[k]
        for k in range(n):
            xs[i, 1, k] += t[k]
        for k in range(n):
            u[e, k] = t[k]
    return total


@jit
def row_pass(rooms, plan, first, last, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """The same where nodes begin several edges: x and the sum of the first end stay in registers."""
    register, x, s, total = rooms
    n = len(register)
    for k in range(n):
        total = put(total, k, 0.0)
    ends, u, u0, u_hat = ends[first:last], u[first:last], u0[first:last], u_hat[first:last]
    strength = strength if len(plan[3]) > 0 else strength[first:last]
    if len(ends) == 0:
        return total
    c, sigma = strength[0, 0], strength[0, 1]
    e = 0
    while e < len(ends):
        i = ends[e, 0]
        for k in range(n):
            x = put(x, k, xs[i, 0, k])
        for k in range(n):
            s = put(s, k, 0.0)
        while e < len(ends) and ends[e, 0] == i:
            if len(plan[4]) > 0:
                far = ends[min(e + AHEAD, len(ends) - 1), 1]
                prefetch_node(register, xs, far)
                if len(plan[2]) > 0:
                    prefetch_node(register, w, far)
            if len(plan[3]) == 0:
                c, sigma = strength[e, 0], strength[e, 1]
            j = ends[e, 1]
            t, total = _edge(register, plan, total, e, i, j, x, c, sigma, xs, u, u0, a, b, g, w, u_hat)
            for k in range(n):
                s = put(s, k, s[k] + t[k])
            for k in range(n):
                xs[j, 1, k] -= t[k]
            for k in range(n):
                u[e, k] = t[k]
            e += 1
        for k in range(n):
            xs[i, 1, k] += s[k]
    return total


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
