"""Maximum flow: excess at some nodes goes along edges with room to nodes that lack as much, by SciPy's algorithm.

Arcs, rooms and rest are those of the compiled `coterie.kernels.route`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from coterie.kernels.reference.ends import Array, Integers

NO_ROOM = 1e-12  # of c_e: room that is not worth a way through it
UNITS = 2**30  # that all excess is made of: SciPy's flows are whole numbers


def arcs_of(ends: Integers, V: int) -> tuple[Integers, Any]:
    """first (V + 1) and arcs (2E, 2) of a graph."""
    order = np.argsort(ends.ravel(), kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(ends.ravel(), minlength=V))])
    return first, np.stack([order, ends[:, ::-1].ravel()[order]], axis=1).astype(np.int32)


def rooms(k: int, c: Array, fixed: Any, u: Array, room: Array) -> None:
    """room ← that of coordinate k; none where `fixed`: there the flow stays as it is."""
    both = np.stack([c + u[:, k], c - u[:, k]], axis=1)
    room[:] = np.where(fixed[:, k, None] | (both <= NO_ROOM * c[:, None]), 0.0, both).ravel()


def route(
    k: int, phases: int, first: Integers, arcs: Any, u: Array, room: Array, rest: Array, least: float, level: Integers
) -> bool:
    """Move u in coordinate k so that rest = Dᵀu + const vanishes, as far as possible; return whether no more is.

    What is below `least` stays. In the end, level ≥ 0 where what is left of the excess could go: the edges out of there
    are full. One call finds the flow in units of a small part of the excess, the next one in finer units.
    """
    level[:] = -1
    excess, lack = np.where(rest > least, rest, 0.0), np.where(rest < -least, -rest, 0.0)
    unit = excess.sum() / UNITS
    if unit == 0:
        return True
    V, none = len(rest), np.zeros(len(rest))
    order, heads, starts = _network(first, arcs)
    most = np.minimum(np.concatenate([room, excess, none, lack, none]) / unit, UNITS).astype(np.int32)
    graph = csr_matrix((most[order], heads, starts), shape=(V + 2, V + 2))
    sent = np.empty_like(most)
    sent[order] = maximum_flow(graph, V, V + 1).flow.data  # type: ignore[arg-type]
    flow, begun, ended = unit * sent[: len(room) : 2], sent[len(room) :][:V], sent[len(room) + 2 * V :][:V]
    u[:, k] -= flow
    room[::2] -= flow
    room[1::2] += flow
    rest -= unit * (begun - ended)
    level[_reached((most > sent)[order], heads, starts)] = 0
    return not begun.any() or level[lack > least].max(initial=-1) < 0


def sweep(k: int, first: Integers, arcs: Any, u: Array, room: Array, rest: Array) -> None:
    """Send what the ways along trees hold, every node to the one that it was found from, those found last first."""
    heads, is_open = np.empty(len(room), dtype=np.int64), (room > 0) & (room[np.arange(len(room)) ^ 1] > 0)
    heads[arcs[:, 0]] = arcs[:, 1]
    found, back = np.zeros(len(rest), dtype=bool), []
    for root in range(len(rest)):
        queue = [] if found[root] else [root]
        found[root] = True
        for i in queue:
            for a, j in arcs[first[i] : first[i + 1]]:
                if is_open[a] and not found[j]:
                    found[j] = True
                    queue.append(j)
                    back.append((j, a ^ 1))
    for i, a in reversed(back):
        amount = min(rest[i], room[a]) if rest[i] > 0 else -min(-rest[i], room[a ^ 1])
        u[a >> 1, k] += amount if a & 1 else -amount
        room[a] -= amount
        room[a ^ 1] += amount
        rest[i] -= amount
        rest[heads[a]] += amount


def _network(first: Integers, arcs: Any) -> tuple[Integers, Integers, Integers]:
    """Arcs, from a source V to every node and back, from every node to a sink V + 1 and back, as SciPy takes them.

    Sorted by where they begin and end: their order, their ends, and where those of each node start. As every arc has
    its opposite, SciPy adds none, and its flows have that order, too.
    """
    V, nodes = len(first) - 1, np.arange(len(first) - 1)
    at = np.empty((len(arcs), 2), dtype=np.int64)
    at[arcs[:, 0]] = np.stack([np.repeat(nodes, np.diff(first)), arcs[:, 1]], axis=1)
    source, sink = np.full(V, V), np.full(V, V + 1)
    tails = np.concatenate([at[:, 0], source, nodes, nodes, sink])
    heads = np.concatenate([at[:, 1], nodes, source, sink, nodes])
    order = np.argsort(tails * (V + 2) + heads, kind="stable")
    return order, heads[order].astype(np.int32), _starts(np.bincount(tails, minlength=V + 2))


def _starts(counts: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)


def _reached(is_open: Any, heads: Integers, starts: Integers) -> Integers:
    """The nodes that more could be sent to from the source, along arcs that are open."""
    V = len(starts) - 3
    left = _starts(np.add.reduceat(is_open, starts[:-1], dtype=np.int64))
    ways = csr_matrix((np.ones(left[-1], dtype=np.int8), heads[is_open], left), shape=(V + 2, V + 2))
    found = breadth_first_order(ways, V, directed=True, return_predecessors=False)
    return found[found < V]
