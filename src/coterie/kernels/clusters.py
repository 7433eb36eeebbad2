"""Clusters that the dual variables show: nodes joined by edges with slack, coordinate by coordinate."""

from __future__ import annotations

import numpy as np

from coterie.kernels import inlined, jit
from coterie.kernels.edges import L2


@inlined
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


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
                a, b = _root(parent, ends[e, 0]), _root(parent, ends[e, 1])
                if a < b:
                    parent[b] = a
                elif b < a:
                    parent[a] = b
        count = 0
        for i in range(V):  # a root comes before the rest of its cluster
            r = _root(parent, i)
            if r == i:
                label[i, k] = count
                count += 1
            else:
                label[i, k] = label[r, k]
        counts[k] = count
    return counts


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
