"""Linear programs with kinks, or quadratic ones, on the clusters of a network: `reference.kinked_program`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.elimination import factorise, find, order, substitute
from coterie.kernels.interior_point import move
from coterie.kernels.reference.interior_point import BACK, STEPS, TRACE
from coterie.kernels.reference.kinked_program import inside, scale


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
    rows, K, y = (X, starts, at, pairs), len(D), np.concatenate([y, np.zeros(len(pairs))])
    place, first, row = order(_meeting(at, pairs, K))
    where, size = _places(at, pairs, place, first, row), scale(y)
    (dz, rest, x), (db, du, dv, miss, plus, minus, give) = np.empty((3, K)), np.empty((7, len(y)))
    _margins(*rows, z, miss)
    b[:], u, v = inside(y - miss, low, high, 0.5 * D @ z**2, b, size)
    point, steps, L = (z, b, u, v), (dz, db, du, dv), np.empty(len(row))
    for _ in range(STEPS):
        _system(*rows, y, low, high, D, place, first, where, *point, miss, give, rest, L)
        factorise(first, row, L, x)
        length = _step(*rows, low, high, place, first, row, L, miss, plus, minus, give, rest, x, *point, *steps)
        if not (np.isfinite(dz).all() and np.isfinite(db).all() and np.isfinite(length)):
            break
        gap, terms = move(low, high, D, size, length, *point, *steps)
        if gap <= accuracy * terms:
            break


@jit
def _system(X, starts, at, pairs, y, low, high, D, place, first, where, z, b, u, v, miss, give, rest, L):
    """What the next step has to make up for, and in L the matrix of its system."""
    _residuals(X, starts, at, pairs, y, low, high, D, z, b, u, v, miss, give, rest)
    _add_up(X, starts, at, pairs, give, D, place, first, where, L)


@jit
def _step(
    X, starts, at, pairs, low, high, place, first, row, L,
    miss, plus, minus, give, rest, x, z, b, u, v, dz, db, du, dv,
):  # fmt: skip
    """The next step, by the factors L and after a look ahead; return how much of it can be gone."""
    plus[:], minus[:] = 0.0, 0.0
    for ahead in (True, False):
        for r in range(len(b)):
            db[r] = (miss[r] + plus[r] / (high[r] - b[r]) - u[r] - minus[r] / (b[r] - low[r]) + v[r]) * give[r]
        dz[:] = rest
        _add_forces(X, starts, at, pairs, -1.0, db, dz)
        for k in range(len(z)):
            x[place[k]] = dz[k]
        substitute(first, row, L, x)
        for k in range(len(z)):
            dz[k] = x[place[k]]
        _margins(X, starts, at, pairs, dz, du)
        length = _reach(low, high, b, u, v, plus, minus, give, db, du, dv)
        if ahead:
            _look_ahead(low, high, b, u, v, db, du, dv, length, plus, minus)
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
def _margins(X, starts, at, pairs, z, out):
    """out ← Az."""
    for i in range(len(at)):
        for r in range(starts[i], starts[i + 1]):
            total = 0.0
            for k in range(at.shape[1]):
                total += X[r, k] * z[at[i, k]]
            out[r] = total
    for e in range(len(pairs)):
        out[len(X) + e] = z[pairs[e, 0]] - z[pairs[e, 1]]


@jit
def _add_forces(X, starts, at, pairs, sign, b, out):
    """out ← out ± Aᵀb."""
    for i in range(len(at)):
        for r in range(starts[i], starts[i + 1]):
            for k in range(at.shape[1]):
                out[at[i, k]] += sign * b[r] * X[r, k]
    for e in range(len(pairs)):
        out[pairs[e, 0]] += sign * b[len(X) + e]
        out[pairs[e, 1]] -= sign * b[len(X) + e]


@inline_llvm
def _residuals(X, starts, at, pairs, y, low, high, D, z, b, u, v, miss, give, rest):
    """What is left of u − v = y − Az and of Aᵀb = Dz; and how much the duals of rows give way to margins."""
    _margins(X, starts, at, pairs, z, miss)
    for r in range(len(b)):
        miss[r] += u[r] - v[r] - y[r]
        give[r] = 1 / (u[r] / (high[r] - b[r]) + v[r] / (b[r] - low[r]))
    for k in range(len(z)):
        rest[k] = -D[k] * z[k]
    _add_forces(X, starts, at, pairs, 1.0, b, rest)


@inline_llvm
def _add_up(X, starts, at, pairs, give, D, place, first, where, L):
    """L ← Aᵀ diag(give) A + D."""
    R, n, p = len(X), at.shape[1], 0
    square = np.empty((n, n))
    L[:] = 0.0
    for i in range(len(at)):
        square[:] = 0.0
        for r in range(starts[i], starts[i + 1]):
            for k in range(n):
                t = X[r, k] * give[r]
                for j in range(k + 1):
                    square[k, j] += t * X[r, j]
        for k in range(n):
            for j in range(k + 1):
                L[where[p]] += square[k, j]
                p += 1
    for e in range(len(pairs)):
        L[where[p + e]] -= give[R + e]
        for k in pairs[e]:
            L[first[place[k]]] += give[R + e]
    for k in range(len(D)):
        L[first[place[k]]] = L[first[place[k]]] * (1 + TRACE) + D[k] + 1e-300


@inline_llvm
def _reach(low, high, b, u, v, plus, minus, give, db, du, dv):
    """db, du, dv ← steps, from what db began with and A dz in du; return how far they can go."""
    worst = BACK  # the largest of what numbers lose, as parts of themselves
    for r in range(len(b)):
        upper, lower = 1 / (high[r] - b[r]), 1 / (b[r] - low[r])
        db[r] = -(du[r] * give[r] + db[r])
        du[r], dv[r] = (plus[r] + u[r] * db[r]) * upper - u[r], (minus[r] - v[r] * db[r]) * lower - v[r]
        worst = max(worst, -du[r] / u[r], -dv[r] / v[r], db[r] * upper, -db[r] * lower)
    return BACK / worst


@inline_llvm
def _look_ahead(low, high, b, u, v, db, du, dv, length, plus, minus):
    """plus, minus ← what the next step aims at, by how much of the complementarity this one would do without."""
    now, left = 0.0, 0.0
    for r in range(len(b)):
        upper, lower, to = high[r] - b[r], b[r] - low[r], length * db[r]
        now += upper * u[r] + lower * v[r]
        left += (upper - to) * (u[r] + length * du[r]) + (lower + to) * (v[r] + length * dv[r])
    aim = 0.5 * left**3 / now**2 / len(b)
    for r in range(len(b)):
        plus[r], minus[r] = aim + du[r] * db[r], aim - dv[r] * db[r]
