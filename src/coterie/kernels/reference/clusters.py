"""Clusters that the dual variables show: nodes joined by edges with slack, coordinate by coordinate.

Clusters are numbered from 0 in the order of their first nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from coterie.kernels import L2
from coterie.kernels.reference.ends import Array, Integers, at_ends
from coterie.kernels.reference.flow import differences

NEVER = 2.0


def connected(V: int, i: Integers, j: Integers) -> tuple[int, Integers]:
    """How many components there are, and the number of each node's."""
    links = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(V, V))
    count, label = connected_components(links, directed=False)
    return count, label.astype(np.int64)


def find_clusters(kind: int, ends: Integers, c: Array, u: Array, margin: float, label: Integers) -> Integers:
    """label[:, k] ← the cluster number of each node in coordinate k, numbered from 0; return how many there are.

    An edge joins its nodes when its dual is below c_e (1 − margin): in that coordinate, or for L2 in length.
    """
    size = np.sqrt((u * u).sum(axis=1))[:, None] if kind == L2 else np.abs(u)
    return join_up(ends, size < (c * (1 - margin))[:, None], label)


def join_up(ends: Integers, joins: NDArray[np.bool_], label: Integers) -> Integers:
    """The same for edges that join their nodes in some coordinates (E, n), or, where joins is (E, 1), in all."""
    V, n = label.shape
    counts = np.zeros(n, dtype=np.int64)
    for k in range(joins.shape[1]):
        counts[k], label[:, k] = connected(V, *ends[joins[:, k]].T)
    if joins.shape[1] == 1:
        counts[:], label[:] = counts[0], label[:, :1]
    return counts


def _tops(label: Integers) -> Integers:
    """The first node of each node's cluster."""
    _, first, number = np.unique(label, return_index=True, return_inverse=True)
    return first[number]


def join_unseen(ends: Integers, seen: NDArray[np.bool_], w: Array, label: Integers, counts: Integers) -> None:
    """Join clusters in which no node is seen to their neighbours of the nearest value, coordinate by coordinate.

    A weight that no loss depends on is a weighted median of its neighbours' weights: the value of one of them.
    """
    V, n = label.shape
    away = np.repeat(np.abs(differences(ends, w)), 2, axis=0)
    for k in range(n):
        top = _tops(label[:, k])
        while True:
            known = np.zeros(V, dtype=bool)
            known[top[seen[:, k]]] = True
            start, goal = top[ends].ravel(), top[ends[:, ::-1]].ravel()
            open_ = np.flatnonzero((start != goal) & ~known[start])
            if not len(open_):
                break
            open_ = open_[np.lexsort((away[open_, k], start[open_]))]
            nearest = open_[np.flatnonzero(np.diff(start[open_], prepend=-1))]
            top = _tops(connected(V, np.append(np.arange(V), start[nearest]), np.append(top, goal[nearest]))[1])
        counts[k], label[:, k] = connected(V, np.arange(V), top)


def split(level: Integers, k: int, label: Integers, count: int) -> int:
    """Split the clusters of coordinate k between nodes with level ≥ 0 and others; return how many there are then."""
    own, high = label[:, k], level >= 0
    mixed = np.zeros(count, dtype=bool)
    mixed[own[high]] = True
    outside = np.zeros(count, dtype=bool)
    outside[own[~high]] = True
    mixed &= outside
    moved = np.where(mixed, count + np.cumsum(mixed) - 1, np.arange(count))
    label[high, k] = moved[own[high]]
    return count + int(mixed.sum())


def join_crossed(ends: Integers, w: Array, moved: Array, least: float, label: Integers, counts: Integers) -> bool:
    """Join neighbouring clusters whose values meet on the straight way from w to `moved`, and first so at both ends.

    Values less than `least` apart are the same. Return whether any meet; `moved` ← w in clusters that do.
    """
    V, n = label.shape
    (i, j), met = ends.T, False
    before, after = differences(ends, w), differences(ends, moved)
    with np.errstate(divide="ignore", invalid="ignore"):
        when = np.where((before == after) | (before * after > 0), 1.0, before / (before - after))
    apart = (label[i] == label[j]) | ((before * after > 0) & (np.abs(after) > least))
    when = np.where(apart, NEVER, when)
    first = np.full(V, NEVER)
    np.minimum.at(first, ends.ravel(), np.repeat(when.min(axis=1), 2))
    for k in range(n):
        top, meet = _tops(label[:, k]), when[:, k] < NEVER
        back, towards = np.zeros(V, dtype=bool), np.full(V, -1)
        back[top[ends[meet]]] = True
        joins = meet & (when[:, k] <= np.minimum(first[i], first[j]))
        towards[top[i[joins]]] = top[j[joins]]  # of several, the last
        back = back[top]
        moved[back, k] = w[back, k]
        links = np.flatnonzero(towards >= 0)
        if len(links):
            met = True
            tree = np.append(np.arange(V), links), np.append(top, towards[links])
            counts[k], label[:, k] = connected(V, *tree)
    return met


def average(label: Integers, counts: Integers, x: Array, out: Array) -> None:
    """out ← x averaged inside each cluster, coordinate by coordinate."""
    for k in range(label.shape[1]):
        own = label[:, k]
        total = np.bincount(own, weights=x[:, k], minlength=counts[k])
        out[:, k] = (total / np.bincount(own, minlength=counts[k]))[own]


def cut_forces(ends: Integers, c: Array, w: Array, out: Array) -> None:
    """out ← Dᵀ(c sign Dw): how total variation pulls at w."""
    out[:] = at_ends(ends, c[:, None] * np.sign(differences(ends, w)), len(w))
