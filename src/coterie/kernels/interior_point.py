"""Small quadratic programs with kinks, node by node: `reference.interior_point`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import vector_buffer
from coterie.kernels.cholesky import solve_in_place
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.interruption import WORK, time_is_up
from coterie.kernels.reference.interior_point import BACK, CENTRING, ENOUGH, STEPS, TRACE
from coterie.kernels.vector import put


def interior_point(X: Any, y: Any, starts: Any, D: Any, c: Any, low: Any, high: Any, b: Any, z: Any) -> None:
    """b, z ← duals strictly between low and high, and weights; in pieces, between which limits are noticed."""
    e, u, v = np.empty((3, len(y)))
    _begin(X, y, starts, c, low, high, e, b, u, v)
    z[:] = 0.0
    room, node, step = vector_buffer(z.shape[1]), 0, 0
    while node < len(z) and not time_is_up():
        node, step = _take_steps(room, X, e, starts, D, low, high, b, u, v, z, node, step, WORK)
    z[:] = c + np.where(np.isfinite(z), z, 0.0)
    b[:] = np.where(np.isfinite(b), b, 0.5 * (low + high))


@jit
def _begin(X, y, starts, c, low, high, e, b, u, v):
    """e ← y − Xc, and from there numbers that are positive by a tenth of its size."""
    for i in range(len(c)):
        rows = range(starts[i], starts[i + 1])
        for r in rows:
            e[r] = y[r]
            for k in range(c.shape[1]):
                e[r] -= X[r, k] * c[i, k]
        size = _size(e, starts[i], starts[i + 1])
        for r in rows:
            b[r] = 0.5 * (low[r] + high[r])
            u[r], v[r] = max(e[r], 0.0) + 0.1 * size, max(-e[r], 0.0) + 0.1 * size


@inline_llvm
def _size(e, first, last):
    size = 1e-300
    for r in range(first, last):
        size = max(size, abs(e[r]))
    return size


@jit
def _take_steps(room, X, e, starts, D, low, high, b, u, v, z, node, first_step, work):
    """Go on with this node and step; return the node and the step to go on with."""
    n, most = len(room), 0
    for i in range(node, len(z)):
        most = max(most, starts[i + 1] - starts[i])
    A, g, dz, rest = np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n)
    db, du, dv, give, h = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    for i in range(node, len(z)):
        if work <= 0:
            return i, 0
        part, size = slice(starts[i], starts[i + 1]), _size(e, starts[i], starts[i + 1])
        m = starts[i + 1] - starts[i]
        by_rows = m <= n and D[i].min() > 0
        rows = X[part], e[part], low[part], high[part]
        point, steps = (z[i], b[part], u[part], v[part]), (dz, db[:m], du[:m], dv[:m])
        for s in range(first_step, STEPS if m > 0 else 0):
            if not _right_side(room, *rows, D[i], *point, give[:m], h[:m], rest):
                break
            if by_rows:
                _solve_by_rows(X[part], D[i], give[:m], h[:m], rest, A[:m, :m], g[:m], dz, db[:m])
            else:
                _solve_by_columns(room, X[part], D[i], give[:m], h[:m], rest, A, g, dz, db[:m])
            length = _reach(low[part], high[part], *point[1:], *steps[1:])
            gap, terms = move(low[part], high[part], D[i], size, length, *point, *steps)
            if not gap > ENOUGH * terms:
                break
            work -= m * n * (n + 12) + n * n * n // 6
            if work <= 0:
                return i, s + 1
        first_step = 0
    return len(z), 0


@inline_llvm
def _aim(low, high, b, u, v):
    """What the next step makes of every product of a number and its dual: a part of their mean."""
    now = 0.0
    for r in range(len(b)):
        now += (high[r] - b[r]) * u[r] + (b[r] - low[r]) * v[r]
    return 0.5 * CENTRING * now / len(b)


@inline_llvm
def _right_side(room, X, e, low, high, D, z, b, u, v, give, h, rest):
    """What D dz − Xᵀdb = rest and X dz + db/give = −h make up for; False where duals are as good as at limits."""
    n, aim, inside, total = len(room), _aim(low, high, b, u, v), True, room
    for k in range(n):
        total = put(total, k, -D[k] * z[k])
    for r in range(len(b)):
        inside = inside and low[r] < b[r] < high[r]
        upper, lower = 1 / (high[r] - b[r]), 1 / (b[r] - low[r])
        give[r] = 1 / (u[r] * upper + v[r] * lower)
        margin = 0.0
        for k in range(n):
            margin += X[r, k] * z[k]
            total = put(total, k, total[k] + X[r, k] * b[r])
        h[r] = aim * (upper - lower) - e[r] + margin
    for k in range(n):
        rest[k] = total[k]
    return inside


@inline_llvm
def _solve_by_rows(X, D, give, h, rest, A, g, dz, db):
    """A system of as many unknowns as rows."""
    for p in range(len(db)):
        g[p] = h[p]
        for k in range(len(dz)):
            g[p] += X[p, k] * rest[k] / D[k]
        for q in range(p + 1):
            A[p, q] = 0.0
            for k in range(len(dz)):
                A[p, q] += X[p, k] * X[q, k] / D[k]
        A[p, p] += 1 / give[p]
    solve_in_place(g, A, g, db)
    for k in range(len(dz)):
        dz[k] = rest[k]
        for r in range(len(db)):
            dz[k] += X[r, k] * db[r]
        dz[k] /= D[k]


@inline_llvm
def _solve_by_columns(room, X, D, give, h, rest, A, g, dz, db):
    """A system of as many unknowns as columns."""
    n, total = len(room), room
    for k in range(n):
        g[k] = -rest[k]
        for q in range(k + 1):
            total = put(total, q, 0.0)
        for r in range(len(db)):
            t = X[r, k] * give[r]
            g[k] += t * h[r]
            for q in range(k + 1):
                total = put(total, q, total[q] + t * X[r, q])
        for q in range(k + 1):
            A[k, q] = total[q]
    for k in range(n):
        A[k, k] = A[k, k] * (1 + TRACE) + D[k] + 1e-300
    solve_in_place(g, A, g, dz)
    for r in range(len(db)):
        db[r] = -h[r]
        for k in range(n):
            db[r] -= X[r, k] * dz[k]
        db[r] *= give[r]


@inline_llvm
def _reach(low, high, b, u, v, db, du, dv):
    """du, dv ← steps that go with db; return how far all of them can go, so that numbers stay positive."""
    aim, worst = _aim(low, high, b, u, v), BACK  # the largest of what numbers lose, as parts of themselves
    for r in range(len(b)):
        upper, lower = 1 / (high[r] - b[r]), 1 / (b[r] - low[r])
        du[r], dv[r] = (aim + u[r] * db[r]) * upper - u[r], (aim - v[r] * db[r]) * lower - v[r]
        worst = max(worst, -du[r] / u[r], -dv[r] / v[r], db[r] * upper, -db[r] * lower)
    return BACK / worst


@jit
def move(low, high, D, size, length, z, b, u, v, dz, db, du, dv):
    """Take so much of a step; return what is left of the gap, and the sizes that were added up."""
    gap, terms = 0.0, 0.0
    for r in range(len(b)):
        u[r] += length * du[r]
        v[r] += length * dv[r]
        gap += (high[r] - b[r]) * u[r] + (b[r] - low[r]) * v[r]
        terms += (high[r] - low[r]) * (u[r] + v[r] + ENOUGH * size)
        b[r] += length * db[r]
    for k in range(len(z)):
        z[k] += length * dz[k]
        terms += 0.5 * D[k] * z[k] * z[k]
    return gap, terms
