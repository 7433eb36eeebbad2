"""Passes over the edges for objective and certificate: Dᵀu, g(Dw), and the corrections of dual repair."""

from __future__ import annotations

import numpy as np

from coterie.kernels import BLOCK, L1, L2
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.exact import EPS, add, strict
from coterie.kernels.prefetch import AHEAD, prefetch_node
from coterie.kernels.reference.flow import LEAST_WEIGHT, PUSHED, PUSHED_WEIGHT


@inline_llvm
def _length(u, e):
    total = 0.0
    for k in range(u.shape[1]):
        total += u[e, k] * u[e, k]
    return np.sqrt(total)


@jit
def divergence(ends, u, out):
    """out ← Dᵀu."""
    out[:] = 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(u.shape[1]):
            out[i, k] += u[e, k]
            out[j, k] -= u[e, k]


@strict
def exact_divergence(ends, u, hi, lo, rounding_bound):
    """hi + lo ← Dᵀu in twice the precision; rounding_bound ← how far that may be from the truth."""
    n = u.shape[1]
    hi[:] = 0.0
    lo[:] = 0.0
    rounding_bound[:] = 0.0
    count = np.zeros(len(hi))
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        count[i] += 1
        count[j] += 1
        for k in range(n):
            t = u[e, k]
            hi[i, k], lo[i, k] = add(hi[i, k], lo[i, k], t)
            hi[j, k], lo[j, k] = add(hi[j, k], lo[j, k], -t)
            rounding_bound[i, k] += abs(t)
            rounding_bound[j, k] += abs(t)
    for i in range(len(hi)):
        for k in range(n):
            rounding_bound[i, k] *= ((count[i] + 2) * EPS) ** 2


@strict
def add_exactly(s, hi, lo, rounding_bound):
    """hi + lo ← hi + lo + s, and what rounding of lo can do is added to rounding_bound."""
    for i in range(len(s)):
        for k in range(s.shape[1]):
            hi[i, k], lo[i, k] = add(hi[i, k], lo[i, k], s[i, k])
            rounding_bound[i, k] += 16 * EPS * EPS * abs(s[i, k])


@strict
def across(ends, u, w):
    """⟨u, Dw⟩, less what rounding may have added."""
    total, low, size = 0.0, 0.0, 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(u.shape[1]):
            t = u[e, k] * (w[i, k] - w[j, k])
            total, low = add(total, low, t)
            size += abs(t)
    return total + low - 4 * EPS * size


@strict
def variation(kind, ends, c, w):
    """g(Dw) = Σ c_e φ(w_i − w_j)."""
    total, low = 0.0, 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        part = 0.0
        for k in range(w.shape[1]):
            d = w[i, k] - w[j, k]
            part += abs(d) if kind == L1 else d * d
        total, low = add(total, low, c[e] * (np.sqrt(part) if kind == L2 else part))
    return total + low


@inline_llvm
def _least(mark):
    return PUSHED_WEIGHT if mark == PUSHED else LEAST_WEIGHT


@jit
def slack_weights(kind, c, u, S):
    """S ← the share that each edge and coordinate takes of a correction: its slack, but never nothing.

    S comes with the marks of the last correction.
    """
    n = u.shape[1]
    for e in range(len(u)):
        if kind == L1:
            for k in range(n):
                S[e, k] = max(c[e] - abs(u[e, k]), _least(S[e, k]) * c[e])
        else:
            slack = c[e]
            if kind == L2:
                slack = max(c[e] - _length(u, e), _least(S[e, 0]) * c[e])
            for k in range(n):
                S[e, k] = slack


@inline_llvm
def _inside(kind, c, u, e):
    """u_e ← the nearest point where g* is finite."""
    if kind == L1:
        for k in range(u.shape[1]):
            u[e, k] = min(max(u[e, k], -c[e]), c[e])
    elif kind == L2:
        length = _length(u, e)
        if length > c[e]:
            for k in range(u.shape[1]):
                u[e, k] *= c[e] / length
    elif c[e] == 0:
        for k in range(u.shape[1]):
            u[e, k] = 0.0


@jit
def into_domain(kind, c, u):
    """u ← the nearest point where g* is finite."""
    for e in range(len(u)):
        _inside(kind, c, u, e)


@jit
def saturate_cuts(ends, c, w, u, fixed):
    """Where w differs across an edge, u ← ±c: total variation is tight there. fixed ← where that is."""
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(u.shape[1]):
            fixed[e, k] = w[i, k] != w[j, k]
            if fixed[e, k]:
                u[e, k] = c[e] if w[i, k] > w[j, k] else -c[e]


@inline_llvm
def _columns(vector_buffer, u):
    """How many columns u has; known when this is compiled, where they are few."""
    return len(vector_buffer) if len(vector_buffer) < BLOCK else u.shape[1]


@jit
def stretch(vector_buffer, kind, far, ends, c, S, potential, u):
    """By how much the domain of g* would have to be stretched to hold u − SDφ."""
    n = _columns(vector_buffer, u)
    most = 1.0
    if kind != L1 and kind != L2:
        return most
    for e in range(len(ends)):
        if len(far) > 0:
            prefetch_node(vector_buffer, potential, ends[min(e + AHEAD, len(ends) - 1), 1])
        i, j = ends[e, 0], ends[e, 1]
        size = 0.0
        for k in range(n):
            t = u[e, k] - S[e, k] * (potential[i, k] - potential[j, k])
            size = max(size, abs(t)) if kind == L1 else size + t * t
        if kind == L2:
            size = np.sqrt(size)
        if size > most * c[e]:
            most = size / c[e] if c[e] > 0 else np.inf
    return most


@jit
def correct(vector_buffer, kind, far, ends, c, S, potential, factor, u):
    """u ← (u − SDφ) / factor, back into the domain of g*; edges that were pushed out of it are marked in S."""
    n = _columns(vector_buffer, u)
    for e in range(len(ends)):
        if len(far) > 0:
            prefetch_node(vector_buffer, potential, ends[min(e + AHEAD, len(ends) - 1), 1])
        i, j = ends[e, 0], ends[e, 1]
        for k in range(n):
            u[e, k] = (u[e, k] - S[e, k] * (potential[i, k] - potential[j, k])) / factor
        if kind == L1:
            for k in range(n):
                S[e, k] = PUSHED if abs(u[e, k]) > c[e] else 0.0
                u[e, k] = min(max(u[e, k], -c[e]), c[e])
            continue
        if kind == L2:
            S[e, 0] = PUSHED if _length(u, e) > c[e] else 0.0
        _inside(kind, c, u, e)
