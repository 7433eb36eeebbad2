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
    V, at = len(rest), np.empty((len(room), 2), dtype=np.int64)
    at[arcs[:, 0]] = np.stack([np.repeat(np.arange(V), np.diff(first)), arcs[:, 1]], axis=1)
    nodes = np.arange(V)
    tails = np.concatenate([at[:, 0], np.full(V, V), nodes])
    heads = np.concatenate([at[:, 1], nodes, np.full(V, V + 1)])
    most = np.minimum(np.concatenate([room, excess, lack]) / unit, UNITS).astype(np.int32)
    graph = csr_matrix((most, (tails, heads)), shape=(V + 2, V + 2))
    sent = csr_matrix(maximum_flow(graph, V, V + 1).flow)  # type: ignore[arg-type]
    flow = unit * np.asarray(sent[at[::2, 0], at[::2, 1]]).ravel()
    u[:, k] -= flow
    room[::2] -= flow
    room[1::2] += flow
    rest -= unit * (sent[V].toarray().ravel()[:V] + sent[V + 1].toarray().ravel()[:V])
    level[_reached(graph, sent, V)] = 0
    return not sent[V].sum() or level[lack > least].max(initial=-1) < 0


def _reached(graph: csr_matrix, sent: csr_matrix, V: int) -> Integers:
    """The nodes that more could be sent to."""
    left = graph - sent
    left.data = (left.data > 0).astype(np.int8)
    left.eliminate_zeros()
    found = breadth_first_order(left, V, directed=True, return_predecessors=False)
    return found[found < V]
