"""Contraction of unlabelled nodes into the neighbour that outweighs all their others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from coterie.kernels.reference.ends import Array, Integers, at_ends, exactly_by_group

NEW, ON_THE_WALK, DONE = 0, 1, 2


def dominant_edges(
    V: int, ends: Integers, c: Array, labelled: NDArray[np.bool_], leaves_only: bool, via: Integers
) -> None:
    """via[i] ← an edge e of the unlabelled node i with c_e ≥ the sum of its other c, or −1.

    For squared variation (leaves_only) that is exact only where there is no other edge.
    """
    via[:], largest = -1, np.zeros(V)
    node, edge = ends.ravel(), np.repeat(np.arange(len(ends)), 2)
    order = np.lexsort((edge, -c[edge], node))
    first = order[np.flatnonzero(np.diff(node[order], prepend=-1))]
    via[node[first]], largest[node[first]] = edge[first], c[edge[first]]
    total, low = (part[:, 0] for part in exactly_by_group(node, c[edge, None], V))
    keep = np.bincount(node, minlength=V) == 1 if leaves_only else largest >= (total - largest) + low
    via[labelled | ~keep | (largest == 0)] = -1


def sum_parallel(edge_of: Integers, c: Array, total: Array) -> None:
    """total[e] ← the sum of the c of all edges that become part of e, rounded once."""
    hi, lo = exactly_by_group(edge_of, c[:, None], len(total))
    total[:] = (hi + lo)[:, 0]


def break_cycles(ends: Integers, via: Integers, root: Integers, order: Integers) -> int:
    """Follow via to a root for every node, dropping one link of each cycle.

    root[i] ← where i ends; order ← nodes such that each comes after those that it points at. Return its length.
    """
    V = len(via)
    goal = np.where(via >= 0, ends[via].sum(axis=1) - np.arange(V) if len(ends) else -1, -1).tolist()
    state, end = [NEW] * V, list(range(V))
    found: list[int] = []
    for i in range(V):
        walk = []
        while state[i] == NEW:
            state[i] = ON_THE_WALK
            walk.append(i)
            if goal[i] < 0:
                break
            i = goal[i]
        if state[i] == ON_THE_WALK:  # the end of the walk, or a cycle: this node becomes a root
            goal[i] = via[i] = -1
        for k in reversed(walk):
            end[k] = k if goal[k] < 0 else end[goal[k]]
            state[k] = DONE
        found += reversed(walk)
    root[:], order[:] = end, found
    return V


def spanning_forest(V: int, ends: Integers, via: Integers, order: Integers) -> None:
    """via[i] ← the edge that leads from i towards the root of its component, breadth first, or −1 at the root.

    order ← all nodes, each after the one that it points at.
    """
    links = coo_array((np.ones(len(ends), dtype=np.int8), tuple(ends.T)), shape=(V, V))
    component = connected_components(links, directed=False)[1]
    first = np.unique(component, return_index=True)[1]  # joined to a node V, from which all are reached
    i, j = np.concatenate([ends, np.stack([first, np.full(len(first), V)], axis=1)]).T
    links = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(V + 1, V + 1))
    nodes, before = breadth_first_order(links.tocsr(), V, directed=False)
    order[:], via[:] = nodes[1:], -1
    inner = order[before[order] < V]
    above = before[inner]
    key = ends.min(axis=1) * V + ends.max(axis=1)
    by_key = np.argsort(key)
    via[inner] = by_key[np.searchsorted(key[by_key], np.minimum(inner, above) * V + np.maximum(inner, above))]


def push_flows(ends: Integers, via: Integers, order: Integers, rest: Array, u: Array) -> None:
    """Set u on the via edges so that Dᵀu + rest vanishes at their nodes; outermost nodes first. Rest is used up."""
    others = np.ones(len(ends), dtype=bool)
    others[via[via >= 0]] = False
    rest += at_ends(ends[others], u[others], len(rest))
    for i in order[via[order] >= 0][::-1]:
        e = via[i]
        a, b = ends[e]
        j = b if a == i else a
        u[e] = -rest[i] if a == i else rest[i]
        rest[j] += rest[i]
        rest[i] = 0.0
