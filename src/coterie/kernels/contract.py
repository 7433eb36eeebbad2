"""Contraction of unlabelled nodes into the neighbour that outweighs all their others."""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.exact import add, strict


@strict
def dominant_edges(V, ends, c, labelled, leaves_only, via):
    """via[i] ← an edge e of the unlabelled node i with c_e ≥ the sum of its other c, or −1.

    For squared variation (leaves_only) that is exact only where there is no other edge.
    """
    total, low, largest = np.zeros(V), np.zeros(V), np.zeros(V)
    degree = np.zeros(V, dtype=np.int64)
    via[:] = -1
    for e in range(len(ends)):
        for side in range(2):
            i = ends[e, side]
            total[i], low[i] = add(total[i], low[i], c[e])
            degree[i] += 1
            if c[e] > largest[i]:
                largest[i] = c[e]
                via[i] = e
    for i in range(V):
        keep = degree[i] == 1 if leaves_only else largest[i] >= (total[i] - largest[i]) + low[i]
        if labelled[i] or not keep:
            via[i] = -1


@strict
def sum_parallel(edge_of, c, total):
    """total[e] ← the sum of the c of all edges that become part of e, rounded once."""
    low = np.zeros(len(total))
    for k in range(len(edge_of)):
        e = edge_of[k]
        total[e], low[e] = add(total[e], low[e], c[k])
    for e in range(len(total)):
        total[e] += low[e]


@inline_llvm
def _other_end(ends, e, i):
    return ends[e, 0] if ends[e, 1] == i else ends[e, 1]


@jit
def break_cycles(ends, via, root, order):
    """Follow via to a root for every node, dropping one link of each cycle.

    root[i] ← where i ends; order ← nodes such that each comes after those that it points at. Return its length.
    """
    V = len(via)
    state = np.zeros(V, dtype=np.uint8)  # 0 new, 1 on the present walk, 2 done
    walk = np.empty(V, dtype=np.int64)
    found = 0
    for start in range(V):
        if state[start] == 2:
            continue
        length = 0
        i = start
        while state[i] == 0:
            state[i] = 1
            walk[length] = i
            length += 1
            if via[i] < 0:
                break
            i = _other_end(ends, via[i], i)
        if state[i] == 1:  # the end of the walk, or a cycle: this node becomes a root
            via[i] = -1
            root[i] = i
        for back in range(length - 1, -1, -1):
            k = walk[back]
            if via[k] >= 0:
                root[k] = root[_other_end(ends, via[k], k)]
            state[k] = 2
            order[found] = k
            found += 1
    return found


@jit
def spanning_forest(V, ends, via, order):
    """via[i] ← the edge that leads from i towards the root of its component, breadth first, or −1 at the root.

    order ← all nodes, each after the one that it points at.
    """
    begins = np.zeros(V + 1, dtype=np.int64)
    for e in range(len(ends)):
        begins[ends[e, 0] + 1] += 1
        begins[ends[e, 1] + 1] += 1
    begins = np.cumsum(begins)
    place = begins[:-1].copy()
    incident = np.empty(2 * len(ends), dtype=np.int64)
    for e in range(len(ends)):
        for side in range(2):
            incident[place[ends[e, side]]] = e
            place[ends[e, side]] += 1
    reached = np.zeros(V, dtype=np.bool_)
    via[:] = -1
    found, next_up = 0, 0
    for root in range(V):
        if reached[root]:
            continue
        reached[root] = True
        order[found] = root
        found += 1
        while next_up < found:
            i = order[next_up]
            next_up += 1
            for k in range(begins[i], begins[i + 1]):
                j = _other_end(ends, incident[k], i)
                if not reached[j]:
                    reached[j] = True
                    via[j] = incident[k]
                    order[found] = j
                    found += 1


@jit
def push_flows(ends, via, order, rest, u):
    """Set u on the via edges so that Dᵀu + rest vanishes at their nodes; outermost nodes first. Rest is used up."""
    n = u.shape[1]
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        if via[i] == e or via[j] == e:
            continue
        for k in range(n):
            rest[i, k] += u[e, k]
            rest[j, k] -= u[e, k]
    for position in range(len(order) - 1, -1, -1):
        i = order[position]
        e = via[i]
        if e < 0:
            continue
        first = ends[e, 0] == i
        j = _other_end(ends, e, i)
        for k in range(n):
            flow = -rest[i, k] if first else rest[i, k]
            u[e, k] = flow
            rest[j, k] += rest[i, k]
            rest[i, k] = 0.0
