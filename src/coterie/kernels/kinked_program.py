"""Linear programs with kinks, or quadratic ones, on the clusters of a network: `reference.kinked_program`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import vector_buffer
from coterie.kernels.compiling import fastmath, inline_llvm, jit
from coterie.kernels.elimination import factorise, find, order, substitute
from coterie.kernels.interior_point import move
from coterie.kernels.reference.interior_point import BACK, STEPS, TRACE
from coterie.kernels.reference.kinked_program import inside, scale
from coterie.kernels.vector import put


def minimise(
    X: Any,
    y: Any,
    starts: Any,
    at: Any,
    pairs: Any,
    low: Any,
    high: Any,
    D: Any,
    accuracy: float,
    z: Any,
    b: Any,
) -> None:
    """z, b ← values and duals, from those given; an order is found once, and factors in each step.

    Both work in pieces: between these, Ctrl-C and time limits are noticed.
    """
    rows, K, y = (vector_buffer(at.shape[1]), X, starts, at, pairs), len(D), np.concatenate([y, np.zeros(len(pairs))])
    place, first, row = order(_meeting(at, pairs, K))
    where, size = _places(at, pairs, place, first, row), scale(y)
    dz, rest, x = np.empty((3, K))
    db, du, dv, miss, plus, minus, upper, lower, give = np.empty((9, len(y)))
    _margins(*rows, z, miss)
    b[:], u, v = inside(y - miss, low, high, 0.5 * D @ z**2, b, size)
    point, steps, known, L = (z, b, u, v), (dz, db, du, dv), (miss, upper, lower, give, rest), np.empty(len(row))
    for _ in range(STEPS):
        _system(*rows, y, low, high, D, place, first, where, *point, *known, L)
        factorise(first, row, L, x)
        length = _step(*rows, place, first, row, L, *known, plus, minus, x, *point, *steps)
        if not (np.isfinite(dz).all() and np.isfinite(db).all() and np.isfinite(length)):
            break
        gap, terms = move(low, high, D, size, length, *point, *steps)
        if gap <= accuracy * terms:
            break


@jit
def _system(
    room, X, starts, at, pairs, y, low, high, D, place, first, where,
    z, b, u, v, miss, upper, lower, give, rest, L,
):  # fmt: skip
    """What the next step has to make up for, and in L the matrix of its system."""
    _margins(room, X, starts, at, pairs, z, miss)
    _distances(low, high, y, b, u, v, miss, upper, lower, give)
    for k in range(len(z)):
        rest[k] = -D[k] * z[k]
    _add_forces(room, X, starts, at, pairs, 1.0, b, rest)
    _add_up(room, X, starts, at, pairs, give, D, place, first, where, L)


@jit
def _step(
    room, X, starts, at, pairs, place, first, row, L,
    miss, upper, lower, give, rest, plus, minus, x, z, b, u, v, dz, db, du, dv,
):  # fmt: skip
    """The next step, by the factors L and after a look ahead; return how much of it can be gone."""
    plus[:], minus[:] = 0.0, 0.0
    for ahead in (True, False):
        for r in range(len(b)):
            db[r] = (miss[r] + plus[r] * upper[r] - u[r] - minus[r] * lower[r] + v[r]) * give[r]
        dz[:] = rest
        _add_forces(room, X, starts, at, pairs, -1.0, db, dz)
        for k in range(len(z)):
            x[place[k]] = dz[k]
        substitute(first, row, L, x)
        for k in range(len(z)):
            dz[k] = x[place[k]]
        _margins(room, X, starts, at, pairs, dz, du)
        _finish(upper, lower, u, v, plus, minus, give, db, du, dv)
        length = BACK / _fastest(upper, lower, u, v, db, du, dv)
        if ahead:
            aim = _aim(upper, lower, u, v, db, du, dv, length)
            for r in range(len(b)):
                plus[r] = aim + du[r] * db[r]
            for r in range(len(b)):
                minus[r] = aim - dv[r] * db[r]
    return length


@jit
def _meeting(at, pairs, K):
    """1 where two unknowns meet, in a row or at a border."""
    near, n = np.zeros((K, K), dtype=np.uint8), at.shape[1]
    for i in range(len(at)):
        for k in range(n):
            for j in range(n):
                near[at[i, k], at[i, j]] = 1
    for p, q in pairs:
        near[p, q] = near[q, p] = 1
    return near


@jit
def _places(at, pairs, place, first, row):
    """Where the product of every two coordinates of each node stands in L, and then that of each border."""
    n = at.shape[1]
    where, p = np.empty(len(at) * (n * (n + 1) // 2) + len(pairs), dtype=np.int64), 0
    for i in range(len(at)):
        for k in range(n):
            for j in range(k + 1):
                where[p] = find(first, row, place[at[i, k]], place[at[i, j]])
                p += 1
    for e in range(len(pairs)):
        where[p + e] = find(first, row, place[pairs[e, 0]], place[pairs[e, 1]])
    return where


@jit
def _margins(room, X, starts, at, pairs, z, out):
    """out ← Az."""
    n, values = len(room), room
    for i in range(len(at)):
        for k in range(n):
            values = put(values, k, z[at[i, k]])
        for r in range(starts[i], starts[i + 1]):
            total = 0.0
            for k in range(n):
                total += X[r, k] * values[k]
            out[r] = total
    for e in range(len(pairs)):
        out[len(X) + e] = z[pairs[e, 0]] - z[pairs[e, 1]]


@jit
def _add_forces(room, X, starts, at, pairs, sign, b, out):
    """out ← out ± Aᵀb."""
    n, total = len(room), room
    for i in range(len(at)):
        for k in range(n):
            total = put(total, k, 0.0)
        for r in range(starts[i], starts[i + 1]):
            for k in range(n):
                total = put(total, k, total[k] + b[r] * X[r, k])
        for k in range(n):
            out[at[i, k]] += sign * total[k]
    for e in range(len(pairs)):
        out[pairs[e, 0]] += sign * b[len(X) + e]
        out[pairs[e, 1]] -= sign * b[len(X) + e]


@inline_llvm
def _add_up(room, X, starts, at, pairs, give, D, place, first, where, L):
    """L ← Aᵀ diag(give) A + D."""
    R, n, total, p = len(X), len(room), room, 0
    L[:] = 0.0
    for i in range(len(at)):
        for k in range(n):
            for j in range(k + 1):
                total = put(total, j, 0.0)
            for r in range(starts[i], starts[i + 1]):
                t = X[r, k] * give[r]
                for j in range(k + 1):
                    total = put(total, j, total[j] + t * X[r, j])
            for j in range(k + 1):
                L[where[p]] += total[j]
                p += 1
    for e in range(len(pairs)):
        L[where[p + e]] -= give[R + e]
        for k in pairs[e]:
            L[first[place[k]]] += give[R + e]
    for k in range(len(D)):
        L[first[place[k]]] = L[first[place[k]]] * (1 + TRACE) + D[k] + 1e-300


# Loops over rows write to one array each: with more, the compiler cannot tell them apart, and makes no vectors of them.


@inline_llvm
def _distances(low, high, y, b, u, v, miss, upper, lower, give):
    """What is left of u − v = y − Az, from Az; 1/(high − b), 1/(b − low), and how much duals give way to margins."""
    for r in range(len(b)):
        miss[r] += u[r] - v[r] - y[r]
    for r in range(len(b)):
        upper[r] = 1 / (high[r] - b[r])
    for r in range(len(b)):
        lower[r] = 1 / (b[r] - low[r])
    for r in range(len(b)):
        give[r] = 1 / (u[r] * upper[r] + v[r] * lower[r])


@inline_llvm
def _finish(upper, lower, u, v, plus, minus, give, db, du, dv):
    """db, du, dv ← steps, from what db began with and A dz in du."""
    for r in range(len(db)):
        db[r] = -(du[r] * give[r] + db[r])
    for r in range(len(db)):
        du[r] = (plus[r] + u[r] * db[r]) * upper[r] - u[r]
    for r in range(len(db)):
        dv[r] = (minus[r] - v[r] * db[r]) * lower[r] - v[r]


@fastmath
def _fastest(upper, lower, u, v, db, du, dv):
    """The largest of what numbers lose in a step, as parts of themselves."""
    worst = BACK
    for r in range(len(u)):
        worst = max(worst, max(-du[r] / u[r], -dv[r] / v[r]), max(db[r] * upper[r], -db[r] * lower[r]))
    return worst


@fastmath
def _aim(upper, lower, u, v, db, du, dv, length):
    """What the next step aims at, by how much of the complementarity this one would do without."""
    now, left = 0.0, 0.0
    for r in range(len(u)):
        above, below, to = 1 / upper[r], 1 / lower[r], length * db[r]
        now += above * u[r] + below * v[r]
        left += (above - to) * (u[r] + length * du[r]) + (below + to) * (v[r] + length * dv[r])
    return 0.5 * left**3 / now**2 / len(u)
