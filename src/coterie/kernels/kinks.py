"""Nodes whose rows cost high_r·e for large e and low_r·e for small e: their duals, node by node: `reference.kinks`."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import finite
from coterie.kernels.cholesky import solve_in_place
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.interruption import WORK, time_is_up
from coterie.kernels.reference.kinks import MOST_FREE, ROUNDING, SINGULAR, SPARE, TRIES, TRY_FREE
from coterie.kernels.vector import another, put


def box_ascent(
    room: Any,
    X: Any,
    y: Any,
    starts: Any,
    D: Any,
    c: Any,
    low: Any,
    high: Any,
    give: Any,
    b: Any,
    z: Any,
    accuracy: float,
    max_sweeps: int,
) -> Any:
    """b, z ← duals, from those given, and weights; return which nodes have settled."""
    node, settled = 0, np.ones(len(z), dtype=np.bool_)
    low, high = finite(low), finite(high)
    while node < len(z) and not time_is_up():
        node = _box_ascent(room, X, y, starts, D, c, low, high, give, b, z, settled, accuracy, max_sweeps, node, WORK)
    z[node:] = c[node:]
    return settled


@jit
def parabolas(p, anchor, curvature, ridge):
    """D and c with ½(z − c)ᵀD(z − c) = ½ curvature ‖z − anchor‖² + Σ ridge_k z_k² − ⟨p, z⟩ + const, node by node."""
    D, c = np.empty_like(p), np.empty_like(p)
    for i in range(len(p)):
        for k in range(p.shape[1]):
            D[i, k] = curvature[i] + 2 * ridge[k]
            c[i, k] = (p[i, k] + curvature[i] * anchor[i, k]) / D[i, k]
    return D, c


@inline_llvm
def _residual(room, X, y, r, z):
    e = y[r]
    for k in range(len(room)):
        e -= X[r, k] * z[k]
    return e


@inline_llvm
def _moved(room, X, r, d, inverse, w):
    """w, after the dual of row r has moved by d."""
    for k in range(len(room)):
        w = put(w, k, w[k] + d * X[r, k] * inverse[k])
    return w


@inline_llvm
def _largest_term(diagonal, b):
    """max diagonal_r |b_r|."""
    size = 0.0
    for r in range(len(b)):
        size = max(size, diagonal[r] * abs(b[r]))
    return size


@jit
def _box_ascent(room, X, y, starts, D, c, low, high, give, b, z, settled, accuracy, max_sweeps, node, work):
    """Go on with this node; return the one to go on with."""
    n, most = len(room), 0
    for i in range(node, len(z)):
        most = max(most, starts[i + 1] - starts[i])
    diagonal, most = np.empty(most), min(most, MOST_FREE)
    K, g, step = np.empty((most, most)), np.empty(most), np.empty(most)
    free = np.empty(most, dtype=np.int64)
    w, inverse = room, another(room)
    for i in range(node, len(z)):
        if work <= 0:
            return i
        first, last = starts[i], starts[i + 1]
        for k in range(n):
            w, inverse = put(w, k, c[i, k]), put(inverse, k, 1 / D[i, k])
        scale = 0.0
        for r in range(first, last):
            scale = max(scale, abs(y[r]), abs(_residual(room, X, y, r, w)))
        enough = accuracy * scale
        for r in range(first, last):
            b[r] = min(max(b[r], low[r]), high[r])
            w = _moved(room, X, r, b[r], inverse, w)
            diagonal[r - first] = give[r]
            for k in range(n):
                diagonal[r - first] += X[r, k] * X[r, k] * inverse[k]
        limit = most
        for r in range(first, last):
            limit = min(limit, SPARE * n) if give[r] == 0 else limit
        for sweep in range(max_sweeps):
            if sweep % TRY_FREE == 0:
                for _ in range(TRIES):
                    count = 0
                    for r in range(first, last):
                        if low[r] < b[r] < high[r]:
                            if count < limit:
                                free[count] = r
                            count += 1
                    if count > limit:
                        break
                    for p in range(count):
                        g[p] = give[free[p]] * b[free[p]] - _residual(room, X, y, free[p], w)
                        for q in range(p + 1):
                            total = 0.0
                            for k in range(n):
                                total += X[free[p], k] * X[free[q], k] * inverse[k]
                            K[p, q] = total
                        K[p, p] += max(give[free[p]], SINGULAR * K[p, p] if count > n else 0.0)
                    solve_in_place(g[:count], K[:count, :count], g[:count], step[:count])
                    reach = 1.0
                    for p in range(count):
                        end = high[free[p]] if step[p] > 0 else low[free[p]]
                        g[p] = (end - b[free[p]]) / step[p] if step[p] != 0 else 2.0
                        reach = min(reach, g[p])
                    for p in range(count):
                        r, before = free[p], b[free[p]]
                        if reach < 1 and g[p] <= reach:
                            b[r] = high[r] if step[p] > 0 else low[r]
                        else:
                            b[r] = min(max(before + reach * step[p], low[r]), high[r])
                        w = _moved(room, X, r, b[r] - before, inverse, w)
                    work -= count * count * (n + count // 6)
                    if reach >= 1:
                        break
                good, slack = True, enough + ROUNDING * _largest_term(diagonal, b[first:last])
                for r in range(first, last):
                    e = _residual(room, X, y, r, w) - give[r] * b[r]
                    good = good and (e <= slack or b[r] >= high[r]) and (e >= -slack or b[r] <= low[r])
                work -= (last - first) * n
                if good:
                    break
            furthest = 0.0
            for r in range(first, last):
                curvature = diagonal[r - first]
                e = _residual(room, X, y, r, w) - give[r] * b[r]
                new = b[r]
                if curvature > 0:
                    new = min(max(b[r] + e / curvature, low[r]), high[r])
                elif e != 0:
                    new = high[r] if e > 0 else low[r]
                d = new - b[r]
                b[r] = new
                w = _moved(room, X, r, d, inverse, w)
                furthest = max(furthest, abs(d) * curvature)
            work -= 4 * (last - first) * n
            if furthest <= enough + ROUNDING * _largest_term(diagonal, b[first:last]):
                break
        else:
            settled[i] = False
        for k in range(n):
            w = put(w, k, c[i, k])
        for r in range(first, last):
            w = _moved(room, X, r, b[r], inverse, w)
        for k in range(n):
            z[i, k] = w[k]
    return len(z)
