"""Borders between clusters: `reference.borders`, compiled."""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import jit


@jit
def borders(ends, unknown, c, u, K):
    """The pairs of clusters that share edges, (B, 2) and in order, how strong these are together, and their dual."""
    p, q, of_edge, of_dual = _crossings(ends, unknown, c, u)
    order = _sorted(q, K)
    order = order[_sorted(p[order], K)]
    pairs, strength, dual = np.empty((len(p), 2), dtype=np.int64), np.zeros(len(p)), np.zeros(len(p))
    b = -1
    for s in order:
        if b < 0 or pairs[b, 0] != p[s] or pairs[b, 1] != q[s]:
            b += 1
            pairs[b, 0], pairs[b, 1] = p[s], q[s]
        strength[b] += of_edge[s]
        dual[b] += of_dual[s]
    return pairs[: b + 1], strength[: b + 1], dual[: b + 1]


@jit
def _crossings(ends, unknown, c, u):
    """The clusters p < q at the ends of every edge and coordinate where these differ, its strength and its dual."""
    most = len(ends) * unknown.shape[1]
    p, q = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    strength, dual, s = np.empty(most), np.empty(most), 0
    for e in range(len(ends)):
        for k in range(unknown.shape[1]):
            one, other = unknown[ends[e, 0], k], unknown[ends[e, 1], k]
            if one != other:
                p[s], q[s], strength[s] = min(one, other), max(one, other), c[e]
                dual[s] = u[e, k] if one > other else -u[e, k]
                s += 1
    return p[:s], q[:s], strength[:s], dual[:s]


@jit
def _sorted(key, K):
    """The order that sorts keys below K; of those that are the same, the first stays first."""
    free, order = np.zeros(K + 1, dtype=np.int64), np.empty(len(key), dtype=np.int64)
    for t in key:
        free[t + 1] += 1
    for t in range(K):
        free[t + 1] += free[t]
    for s in range(len(key)):
        order[free[key[s]]] = s
        free[key[s]] += 1
    return order
