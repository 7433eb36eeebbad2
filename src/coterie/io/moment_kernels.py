"""Sums over rows that pass by once: numbers for node ids, and each node's mean and comoments."""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import jit

SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: neighbouring ids land far apart
HALF = np.uint64(32)


@jit
def number_ids(ids, table, known, numbers):
    """Give each id its number, a new one the next after `known`; return how many are known then.

    table (a power of two, 2) holds ids and their numbers, −1 where free; the caller keeps half of it free.
    """
    mask = len(table) - 1
    for r in range(len(ids)):
        place = np.int64((np.uint64(ids[r]) * SPREAD) >> HALF) & mask
        while table[place, 1] >= 0 and table[place, 0] != ids[r]:
            place = (place + 1) & mask
        if table[place, 1] < 0:
            table[place, 0] = ids[r]
            table[place, 1] = known
            known += 1
        numbers[r] = table[place, 1]
    return known


@jit
def add_rows(part, parts, nodes, Z, m, origin, mean, C):
    """Add rows Z (q, rows) to the statistics of their nodes, one after the other (Welford).

    Of the nodes, only one part: those whose number has the remainder `part` on division by `parts`, a power of two.

    With d = z − mean: mean += d/m and C += (1 − 1/m) d dᵀ, of which the lower triangle is kept, packed by rows.
    All of it is relative to the node's first row, its origin: what a large offset costs is gone before any rounding.
    """
    q = len(Z)
    d = np.empty(q)
    for r in range(len(nodes)):
        i = nodes[r]
        if i & (parts - 1) != part:
            continue
        if m[i] == 0:
            for j in range(q):
                origin[i, j] = Z[j, r]
        m[i] += 1
        share = 1.0 / m[i]
        for j in range(q):
            d[j] = Z[j, r] - origin[i, j] - mean[i, j]
            mean[i, j] += share * d[j]
        place = 0
        for j in range(q):
            factor = (1.0 - share) * d[j]
            for k in range(j + 1):
                C[i, place + k] += factor * d[k]
            place += j + 1
