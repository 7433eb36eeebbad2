"""Maximum flow: excess at some nodes goes along edges with room to nodes that lack as much (Dinic's algorithm).

The flow u_e of an edge runs from its first node to its second and stays in [−c_e, c_e]. Every edge is two arcs, 2e at
its first node and 2e + 1 at its second: ``room[a]`` is how much more can leave that node along it. The arcs at node i
are arcs[first[i]:first[i + 1], 0], and the nodes that they lead to stand in the other column.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import inline_llvm, jit

NO_ROOM = 1e-12  # of c_e: room that is not worth a way through it


@jit
def arcs_of(ends, V):
    """first (V + 1) and arcs (2E, 2) of a graph."""
    first = np.zeros(V + 1, dtype=np.int64)
    for e in range(len(ends)):
        first[ends[e, 0] + 1] += 1
        first[ends[e, 1] + 1] += 1
    for i in range(V):
        first[i + 1] += first[i]
    free, arcs = first[:-1].copy(), np.empty((2 * len(ends), 2), dtype=np.int32)
    for e in range(len(ends)):
        for side in range(2):
            i = ends[e, side]
            arcs[free[i], 0], arcs[free[i], 1] = 2 * e + side, ends[e, 1 - side]
            free[i] += 1
    return first, arcs


@jit
def rooms(k, c, fixed, u, room):
    """room ← that of coordinate k; none where `fixed`: there the flow stays as it is."""
    for e in range(len(c)):
        free = 0.0 if fixed[e, k] else 1.0
        room[2 * e], room[2 * e + 1] = free * (c[e] + u[e, k]), free * (c[e] - u[e, k])
        for a in (2 * e, 2 * e + 1):
            if room[a] <= NO_ROOM * c[e]:
                room[a] = 0.0


@inline_llvm
def _levels(first, arcs, room, rest, least, level, queue):
    """level ← steps from the nearest excess, −1 where none leads; return whether any leads to a lack."""
    head, tail, nearest = 0, 0, len(level)
    for i in range(len(level)):
        level[i] = -1
        if rest[i] > least:
            level[i] = 0
            queue[tail] = i
            tail += 1
    while head < tail and level[queue[head]] < nearest:
        i = queue[head]
        head += 1
        for p in range(first[i], first[i + 1]):
            j = arcs[p, 1]
            if level[j] < 0 and room[arcs[p, 0]] > 0:
                level[j] = level[i] + 1
                queue[tail] = j
                tail += 1
                if rest[j] < -least:
                    nearest = min(nearest, level[j])
    return nearest < len(level)


@inline_llvm
def _find_way(source, first, arcs, room, rest, least, level, at, path):
    """A way from the source, level by level, to a node that lacks something: its end (−1: none) and its length."""
    i, length = source, 0
    while level[i] == 0 or rest[i] >= -least:
        while at[i] < first[i + 1]:
            if level[arcs[at[i], 1]] == level[i] + 1 and room[arcs[at[i], 0]] > 0:
                break
            at[i] += 1
        if at[i] < first[i + 1]:
            path[length] = i
            length += 1
            i = arcs[at[i], 1]
        elif length == 0:
            return -1, 0
        else:
            length -= 1
            i = path[length]
            at[i] += 1
    return i, length


@inline_llvm
def _push(k, source, sink, length, arcs, u, room, rest, at, path):
    """Send along a way as much as it holds."""
    amount = min(rest[source], -rest[sink])
    for d in range(length):
        amount = min(amount, room[arcs[at[path[d]], 0]])
    for d in range(length):
        a = arcs[at[path[d]], 0]
        u[a >> 1, k] += amount if a & 1 else -amount
        room[a] -= amount
        room[a ^ 1] += amount
    rest[source] -= amount
    rest[sink] += amount


@jit
def route(k, phases, first, arcs, u, room, rest, least, level):
    """Move u in coordinate k so that rest = Dᵀu + const vanishes, as far as possible; return whether no more is.

    Each phase sends all that the shortest ways hold. What is below `least` stays. In the end, level ≥ 0 where what is
    left of the excess could go: the edges out of there are full.
    """
    V = len(rest)
    queue, path = np.empty(V, dtype=np.int64), np.empty(V, dtype=np.int64)
    for _ in range(phases):
        if not _levels(first, arcs, room, rest, least, level, queue):
            return True
        at = first[:-1].copy()
        for source in range(V):
            while level[source] == 0 and rest[source] > least:
                sink, length = _find_way(source, first, arcs, room, rest, least, level, at, path)
                if sink < 0:
                    break
                _push(k, source, sink, length, arcs, u, room, rest, at, path)
    return False


@jit
def sweep(k, first, arcs, u, room, rest):
    """Send what the ways along trees hold, every node to the one that it was found from, those found last first.

    It takes one pass where excess and lack are small and everywhere, for which `route` takes a phase for each length.
    """
    V = len(rest)
    queue, back = np.empty(V, dtype=np.int64), np.full(V, -2)
    tail = 0
    for root in range(V):
        if back[root] > -2:
            continue
        queue[tail], back[root], head = root, -1, tail
        tail += 1
        while head < tail:
            i = queue[head]
            head += 1
            for p in range(first[i], first[i + 1]):
                a, j = arcs[p]
                if back[j] == -2 and room[a] > 0 and room[a ^ 1] > 0:
                    back[j] = a ^ 1
                    queue[tail] = j
                    tail += 1
    ends = np.empty(len(room), dtype=np.int64)
    for p in range(len(arcs)):
        ends[arcs[p, 0]] = arcs[p, 1]
    for q in range(V - 1, -1, -1):
        i = queue[q]
        a = back[i]
        if a >= 0:
            amount = min(rest[i], room[a]) if rest[i] > 0 else -min(-rest[i], room[a ^ 1])
            u[a >> 1, k] += amount if a & 1 else -amount
            room[a] -= amount
            room[a ^ 1] += amount
            rest[i] -= amount
            rest[ends[a]] += amount
