"""Sparse positive definite systems whose entries change and whose places do not: an order, found once, and factors.

The factors L diag(d) Lᵀ have ones on the diagonal of L. Columns stand in the order of elimination, each with its
diagonal first and then what is below, by place; `first` (K + 1) says where they begin and `row` which place is where.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.interruption import WORK, check

LEAST = 1e-14  # of the diagonal: a pivot that small is rounding, and its unknown stays where it is
GONE = np.iinfo(np.int64).max


def order(near: Any) -> tuple[Any, Any, Any]:
    """place (K), first and row, by least degree; near (K, K), 1 where unknowns meet, is used up."""
    K = len(near)
    degree, place = _degrees(near), np.full(K, -1)
    first, row, p = np.zeros(K + 1, dtype=np.int64), np.empty(8 * K, dtype=np.int64), 0
    while p < K:
        check()
        row, p = _eliminate(near, degree, place, first, row, p, WORK)
    return place, first, _by_place(place, first, row)


@jit
def _degrees(near):
    """How many each unknown meets; it meets itself, too."""
    degree = np.zeros(len(near), dtype=np.int64)
    for i in range(len(near)):
        near[i, i] = 1
        for j in range(len(near)):
            degree[i] += near[i, j]
    return degree


@jit
def _eliminate(near, degree, place, first, row, begin, work):
    """Go on with place `begin`; return `row`, which may have grown, and the place to go on with.

    `degree` says how many of those that are left each of them meets, and which are gone.
    """
    K, others = len(near), np.empty(len(near), dtype=np.int64)
    for p in range(begin, K):
        if work <= 0:
            return row, p
        least, v = GONE, 0
        for i in range(K):
            least = min(least, degree[i])
        while degree[v] > least:
            v += 1
        place[v], degree[v], count = p, GONE, 0
        for i in range(K):
            if near[v, i] and place[i] < 0:
                others[count] = i
                count += 1
        first[p + 1] = first[p] + count + 1
        if first[p + 1] > len(row):
            row = np.concatenate((row, np.empty(max(len(row), K), dtype=np.int64)))
        row[first[p]], row[first[p] + 1 : first[p + 1]] = v, others[:count]
        for j in others[:count]:
            new = 0
            for i in others[:count]:
                new += 1 - near[j, i]
                near[j, i] = 1
            degree[j] += new - 1  # less v
        work -= count * count + 2 * K
    return row, K


@jit
def _by_place(place, first, row):
    """The unknowns of each column as places, in order: columns are filled by one place after the other."""
    K = len(place)
    begin, out = np.zeros(K + 1, dtype=np.int64), np.empty(first[-1], dtype=np.int64)
    for q in range(first[-1]):
        begin[place[row[q]] + 1] += 1
    for p in range(K):
        begin[p + 1] += begin[p]
    free, column = begin[:-1].copy(), np.empty(first[-1], dtype=np.int64)  # the columns that a place is in
    for p in range(K):
        for q in range(first[p], first[p + 1]):
            i = place[row[q]]
            column[free[i]] = p
            free[i] += 1
    free[:] = first[:-1]
    for i in range(K):
        for q in range(begin[i], begin[i + 1]):
            p = column[q]
            out[free[p]] = i
            free[p] += 1
    return out


@inline_llvm
def find(first, row, i, j):
    """Where the entry of places i and j stands."""
    i, j = max(i, j), min(i, j)
    low, high = first[j], first[j + 1] - 1
    while low < high:
        middle = (low + high) // 2
        if row[middle] < i:
            low = middle + 1
        else:
            high = middle
    return low


def factorise(first: Any, row: Any, L: Any, x: Any) -> None:
    """L ← factors of the matrix that it holds, column by column; on the diagonal 1/d. x is room for a column."""
    K, p = len(first) - 1, 0
    heads, begun, follower = np.full(K, -1), np.empty(K, dtype=np.int64), np.empty(K, dtype=np.int64)
    while p < K:
        check()
        p = _factorise(first, row, L, x, heads, begun, follower, p, WORK)


@jit
def _factorise(first, row, L, x, heads, begun, follower, begin, work):
    """Go on with column `begin`; return the column to go on with.

    `begun` is how far each column has been used; those whose next entries are in the same row are a list, from `heads`.
    """
    K = len(first) - 1
    for p in range(begin, K):
        if work <= 0:
            return p
        for q in range(first[p], first[p + 1]):
            x[row[q]] = L[q]
        least = LEAST * x[p]
        k = heads[p]
        while k >= 0:
            then, q = follower[k], begun[k]
            factor = L[q] * L[first[k]]
            for s in range(q, first[k + 1]):
                x[row[s]] -= factor * L[s]
            work -= first[k + 1] - q
            if q + 1 < first[k + 1]:
                begun[k], follower[k] = q + 1, heads[row[q + 1]]
                heads[row[q + 1]] = k
            k = then
        L[first[p]] = 1 / x[p] if x[p] > least else 0.0
        for q in range(first[p] + 1, first[p + 1]):
            L[q] = x[row[q]]
        if first[p] + 1 < first[p + 1]:
            begun[p], follower[p] = first[p] + 1, heads[row[first[p] + 1]]
            heads[row[first[p] + 1]] = p
    return K


@jit
def substitute(first, row, L, g):
    """g ← the solution, in order of places. Below the diagonal L holds L diag(d)."""
    K = len(first) - 1
    for p in range(K):
        g[p] *= L[first[p]]
        for q in range(first[p] + 1, first[p + 1]):
            g[row[q]] -= L[q] * g[p]
    for p in range(K - 1, -1, -1):
        total = 0.0
        for q in range(first[p] + 1, first[p + 1]):
            total += L[q] * g[row[q]]
        g[p] -= total * L[first[p]]
