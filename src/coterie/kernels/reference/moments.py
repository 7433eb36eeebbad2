"""Sums over rows that pass by once: numbers for node ids, and each node's mean and comoments."""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.ends import Array, Integers, by_group

SPREAD = 0x9E3779B97F4A7C15  # 2⁶⁴ over the golden ratio: neighbouring ids land far apart
WORD = 2**64 - 1


def number_ids(ids: Integers, table: Integers, known: int, numbers: Integers) -> int:
    """Give each id its number, a new one the next after `known`; return how many are known then.

    table (a power of two, 2) holds ids and their numbers, −1 where free; the caller keeps half of it free.
    """
    different, first, of = np.unique(ids, return_index=True, return_inverse=True)
    found, mask = np.empty(len(different), dtype=np.int64), len(table) - 1
    for k in np.argsort(first):
        place = ((int(different[k]) * SPREAD & WORD) >> 32) & mask
        while table[place, 1] >= 0 and table[place, 0] != different[k]:
            place = (place + 1) & mask
        if table[place, 1] < 0:
            table[place] = different[k], known
            known += 1
        found[k] = table[place, 1]
    numbers[: len(ids)] = found[of]
    return known


def add_rows(part: int, parts: int, nodes: Integers, Z: Array, m: Array, origin: Array, mean: Array, C: Array) -> None:
    """Add rows Z (q, rows) to the statistics of their nodes, all rows of a node at once (Chan).

    Of the nodes, only one part: those whose number has the remainder `part` on division by `parts`, a power of two.

    With δ the mean of k new rows less that of m old ones: mean += δ k/(m + k) and C += C of the new rows +
    δδᵀ mk/(m + k), of which the lower triangle is kept, packed by rows. All of it is relative to the node's first row,
    its origin.
    """
    mine = np.flatnonzero(nodes & (parts - 1) == part)
    here, first, of, count = np.unique(nodes[mine], return_index=True, return_inverse=True, return_counts=True)
    rows = Z[:, mine].T
    new = m[here] == 0
    origin[here[new]] = rows[first[new]]
    d = rows - origin[here][of]
    k, before, (j, i) = count[:, None], m[here][:, None], np.tril_indices(Z.shape[0])
    middle = by_group(of, d, len(here)) / k
    d -= middle[of]
    middle -= mean[here]
    C[here] += by_group(of, d[:, j] * d[:, i], len(here)) + middle[:, j] * middle[:, i] * (before * k / (before + k))
    mean[here] += middle * (k / (before + k))
    m[here] += count
