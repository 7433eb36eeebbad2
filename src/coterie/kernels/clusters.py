"""Clusters that the dual variables show: nodes joined by edges with slack, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from coterie.kernels import L2
from coterie.kernels.compiling import inline_llvm, jit

NEVER = 2.0
FARTHEST = np.finfo(float).max  # compiled code does not know infinity


@inline_llvm
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@inline_llvm
def _unite(parent, i, j):
    a, b = _root(parent, i), _root(parent, j)
    parent[max(a, b)] = min(a, b)


@jit
def connected(V, i, j):
    """How many components there are, and the number of each node's."""
    parent, label = np.arange(V), np.empty((V, 1), dtype=np.int64)
    for e in range(len(i)):
        _unite(parent, i[e], j[e])
    return _number(parent, 0, label), label[:, 0]


@jit
def find_clusters(kind, ends, c, u, margin, label):
    """label[:, k] ← the cluster number of each node in coordinate k, numbered from 0; return how many there are.

    An edge joins its nodes when its dual is below c_e (1 − margin): in that coordinate, or for L2 in length.
    """
    V, n = label.shape
    counts = np.zeros(n, dtype=np.int64)
    parent = np.empty(V, dtype=np.int64)
    for k in range(n):
        if kind == L2 and k > 0:
            for i in range(V):  # an assignment of slices would take seconds to compile
                label[i, k] = label[i, 0]
            counts[k] = counts[0]
            continue
        for i in range(V):
            parent[i] = i
        for e in range(len(ends)):
            size = abs(u[e, k])
            if kind == L2:
                size = 0.0
                for q in range(n):
                    size += u[e, q] * u[e, q]
                size = np.sqrt(size)
            if size < c[e] * (1 - margin):
                _unite(parent, ends[e, 0], ends[e, 1])
        counts[k] = _number(parent, k, label)
    return counts


@jit
def _number(parent, k, label):
    """label[:, k] ← the number of each node's root, from 0 on; return how many there are."""
    count = 0
    for i in range(len(parent)):  # a root comes before the rest of its cluster
        r = _root(parent, i)
        if r == i:
            label[i, k] = count
            count += 1
        else:
            label[i, k] = label[r, k]
    return count


@jit
def _tops(label, k, parent, top):
    """parent ← the first node of each node's cluster."""
    for i in range(len(parent)):
        top[i] = -1
    for i in range(len(parent)):
        if top[label[i, k]] < 0:
            top[label[i, k]] = i
        parent[i] = top[label[i, k]]


@jit
def _join(parent, towards):
    """Join each cluster to the one that its top points to, if any; return whether any does."""
    joined = False
    for i in range(len(parent)):
        if towards[i] >= 0:
            _unite(parent, i, towards[i])
            joined = True
    return joined


@jit
def join_unseen(ends, seen, w, label, counts):
    """Join clusters in which no node is seen to their neighbours of the nearest value, coordinate by coordinate.

    A weight that no loss depends on is a weighted median of its neighbours' weights: the value of one of them.
    """
    V, n = label.shape
    parent, top, towards = np.empty(V, dtype=np.int64), np.empty(V, dtype=np.int64), np.empty(V, dtype=np.int64)
    known, nearest = np.empty(V, dtype=np.bool_), np.empty(V)
    for k in range(n):
        _tops(label, k, parent, top)
        joined = True
        while joined:
            for i in range(V):
                known[i], nearest[i], towards[i] = False, FARTHEST, -1
            for i in range(V):
                if seen[i, k]:
                    known[_root(parent, i)] = True
            for e in range(len(ends)):
                a, b = _root(parent, ends[e, 0]), _root(parent, ends[e, 1])
                distance = abs(w[ends[e, 0], k] - w[ends[e, 1], k])
                if a != b and not known[a] and distance < nearest[a]:
                    nearest[a], towards[a] = distance, b
                if a != b and not known[b] and distance < nearest[b]:
                    nearest[b], towards[b] = distance, a
            joined = _join(parent, towards)
        counts[k] = _number(parent, k, label)


@jit
def split(level, k, label, count):
    """Split the clusters of coordinate k between nodes with level ≥ 0 and others; return how many there are then."""
    V = len(level)
    inside, outside, moved = (
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_),
        np.empty(count, dtype=np.int64),
    )
    for i in range(V):
        if level[i] >= 0:
            inside[label[i, k]] = True
        else:
            outside[label[i, k]] = True
    total = count
    for old in range(count):
        moved[old] = old
        if inside[old] and outside[old]:
            moved[old] = total
            total += 1
    for i in range(V):
        if level[i] >= 0:
            label[i, k] = moved[label[i, k]]
    return total


@inline_llvm
def _meets(ends, e, k, w, moved, least, label):
    """When, from 0 to 1 on the straight way from w to `moved`, the clusters at the ends of an edge meet, or NEVER."""
    i, j = ends[e, 0], ends[e, 1]
    before, after = w[i, k] - w[j, k], moved[i, k] - moved[j, k]
    if label[i, k] == label[j, k] or (before * after > 0 and abs(after) > least):
        return NEVER
    return 1.0 if before == after or before * after > 0 else before / (before - after)


@jit
def join_crossed(ends, w, moved, least, label, counts):
    """Join neighbouring clusters whose values meet on the straight way from w to `moved`, and first so at both ends.

    Values less than `least` apart are the same. Return whether any meet; `moved` ← w in clusters that do.
    """
    V, n = label.shape
    parent, top, towards = np.empty(V, dtype=np.int64), np.empty(V, dtype=np.int64), np.empty(V, dtype=np.int64)
    first, back, any_met = np.full(V, NEVER), np.empty(V, dtype=np.bool_), False
    for k in range(n):
        for e in range(len(ends)):
            when = _meets(ends, e, k, w, moved, least, label)
            first[ends[e, 0]] = min(first[ends[e, 0]], when)
            first[ends[e, 1]] = min(first[ends[e, 1]], when)
    for k in range(n):
        _tops(label, k, parent, top)
        for i in range(V):
            towards[i], back[i] = -1, False
        for e in range(len(ends)):
            i, j = ends[e, 0], ends[e, 1]
            when = _meets(ends, e, k, w, moved, least, label)
            if when < NEVER:
                back[parent[i]] = back[parent[j]] = True
                if when <= min(first[i], first[j]):
                    towards[parent[i]] = parent[j]
        for i in range(V):
            if back[parent[i]]:
                moved[i, k] = w[i, k]
        if _join(parent, towards):
            any_met = True
            counts[k] = _number(parent, k, label)
    return any_met


@jit
def average(label, counts, x, out):
    """out ← x averaged inside each cluster, coordinate by coordinate."""
    V, n = label.shape
    for k in range(n):
        total, size = np.zeros(counts[k]), np.zeros(counts[k])
        for i in range(V):
            total[label[i, k]] += x[i, k]
            size[label[i, k]] += 1.0
        total /= size
        for i in range(V):
            out[i, k] = total[label[i, k]]


@jit
def cut_forces(ends, c, w, out):
    """out ← Dᵀ(c sign Dw): how total variation pulls at w."""
    out[:] = 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(w.shape[1]):
            force = c[e] * np.sign(w[i, k] - w[j, k])
            out[i, k] += force
            out[j, k] -= force
