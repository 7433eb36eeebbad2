"""Edge passes: the dual half of an iteration.

Arrays: ``ends`` (E, 2) unsigned node numbers; ``strength`` (E, 2) holds c_e and σ_e side by side, or (1, 2) where they
are the same for all edges, which saves reading them; ``xs`` (V, 2, n) holds x = 2ŵ − w and the running sum s = Dᵀu
of each node side by side, so that one visit loads both. Each pass handles the edges first ≤ e < last.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels import inlined, jit
from coterie.kernels.prefetch import prefetch_node
from coterie.kernels.vector import put

L1, L2, SQUARED = 0, 1, 2  # which penalty


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
def _cut(first, last, ends, strength):
    """A range of edges, and the pace at which to read its strengths. (Loops that count from 0 need not check for
    negative indices.)"""
    if len(strength) > 1:
        return ends[first:last], strength[first:last], 1
    return ends[first:last], strength, 0


@inlined
def _prox(register, kind, e, i, j, strength, pace, xs, u):
    """û_e = prox(u_e + σ_e (x_i − x_j))."""
    c, sigma = strength[e * pace, 0], strength[e * pace, 1]
    t = register
    for k in range(len(register)):
        t = put(t, k, u[e, k] + sigma * (xs[i, 0, k] - xs[j, 0, k]))
    return dual_step(kind, t, c, sigma)


@inlined
def _mix(register, anchored, keep, e, t, u, u0, a, b, g):
    """aû + bu + gu₀; with keep, u₀ ← û."""
    if keep:
        for k in range(len(register)):
            before = u0[e, k]
            u0[e, k] = t[k]
            t = put(t, k, a * t[k] + g * before)
        return t
    for k in range(len(register)):
        t = put(t, k, a * t[k] + b * u[e, k])
    if anchored:
        for k in range(len(register)):
            t = put(t, k, t[k] + g * u0[e, k])
    return t


@inlined
def _store(register, e, i, j, t, xs, u):
    """u_e ← t, and Dᵀu grows with it."""
    n = len(register)
    for k in range(n):
        xs[j, 1, k] -= t[k]
    for k in range(n):
        xs[i, 1, k] += t[k]
    for k in range(n):
        u[e, k] = t[k]


@jit
def edge_pass(register, kind, keep, ahead, first, last, ends, strength, xs, u, u0, a, b, g):
    """û = prox(u + σDx), u ← aû + bu + gu₀, s ← Dᵀu; with keep, u₀ ← û. One loop for each common case."""
    ends, strength, pace = _cut(first, last, ends, strength)
    u, u0 = u[first:last], u0[first:last]
    if kind == L1 and not keep and ahead > 0:
        for e in range(len(ends)):
            prefetch_node(register, xs, ends[min(e + ahead, len(ends) - 1), 1])
            i, j = ends[e, 0], ends[e, 1]
            t = _prox(register, L1, e, i, j, strength, pace, xs, u)
            t = _mix(register, g != 0, False, e, t, u, u0, a, b, g)
            _store(register, e, i, j, t, xs, u)
    elif kind == L1 and keep:
        for e in range(len(ends)):
            i, j = ends[e, 0], ends[e, 1]
            t = _prox(register, L1, e, i, j, strength, pace, xs, u)
            t = _mix(register, False, True, e, t, u, u0, a, b, g)
            _store(register, e, i, j, t, xs, u)
    elif kind == L1 and g == 0:
        for e in range(len(ends)):
            i, j = ends[e, 0], ends[e, 1]
            t = _prox(register, L1, e, i, j, strength, pace, xs, u)
            t = _mix(register, False, False, e, t, u, u0, a, b, g)
            _store(register, e, i, j, t, xs, u)
    elif kind == L1:
        for e in range(len(ends)):
            i, j = ends[e, 0], ends[e, 1]
            t = _prox(register, L1, e, i, j, strength, pace, xs, u)
            t = _mix(register, True, False, e, t, u, u0, a, b, g)
            _store(register, e, i, j, t, xs, u)
    else:
        for e in range(len(ends)):
            i, j = ends[e, 0], ends[e, 1]
            t = _prox(register, kind, e, i, j, strength, pace, xs, u)
            t = _mix(register, g != 0, keep, e, t, u, u0, a, b, g)
            _store(register, e, i, j, t, xs, u)


@jit
def edge_probe(register, kind, keep, ahead, first, last, ends, strength, xs, u, u0, a, b, g, w, u_hat):
    """An edge pass that keeps û; return Σ|du|²/σ − 2⟨du, D dw⟩ for the residual, with dw = (x − w)/2.

    For dual steps w = x, and the second term vanishes.
    """
    ends, strength, pace = _cut(first, last, ends, strength)
    u, u0, u_hat = u[first:last], u0[first:last], u_hat[first:last]
    total = 0.0
    for e in range(len(ends)):
        if ahead > 0:
            far = ends[min(e + ahead, len(ends) - 1), 1]
            prefetch_node(register, xs, far)
            prefetch_node(register, w, far)
        i, j = ends[e, 0], ends[e, 1]
        inverse = 1 / strength[e * pace, 1]
        t = _prox(register, kind, e, i, j, strength, pace, xs, u)
        for k in range(len(register)):
            du = t[k] - u[e, k]
            dw = 0.5 * ((xs[i, 0, k] - w[i, k]) - (xs[j, 0, k] - w[j, k]))
            total += du * (du * inverse - 2 * dw)
        for k in range(len(register)):
            u_hat[e, k] = t[k]
        t = _mix(register, g != 0, keep, e, t, u, u0, a, b, g)
        _store(register, e, i, j, t, xs, u)
    return total


@jit
def edge_sums(register, first, last, ends, xs, u):
    """s ← s + Dᵀu."""
    ends, u = ends[first:last], u[first:last]
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(len(register)):
            xs[i, 1, k] += u[e, k]
        for k in range(len(register)):
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
