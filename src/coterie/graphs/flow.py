"""Flows from the nodes of an undirected graph to some of its nodes, by SciPy's maximum flow.

SciPy takes capacities of 32 bits. Here they are multiplied by a power of two such that the whole supply stays
below 2³⁰, and rounded down: each capacity is off by less than 2⁻²⁹ of the supply, and simple fractions are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array

MOST = 2**30 - 1  # twice this, which a residual capacity can reach, still fits in 32 bits
TRIES = 50  # flows that best_sink may compute; a few are enough on all graphs that we know


@dataclass(frozen=True, eq=False)
class Network:
    """A graph with capacities and the nodes that absorb flow.

    Attributes
    ----------
    edges : array of shape (E, 2)
    A : array of shape (E,)
        Capacities, in either direction.
    sinks : mask of shape (V,)
    """

    edges: NDArray[np.int64]
    A: Array
    sinks: NDArray[np.bool_]

    @property
    def n_nodes(self) -> int:
        """The number of nodes V; the source is node V and the sink node V + 1 of the flow."""
        return len(self.sinks)

    @cached_property
    def capacity(self) -> Array:
        """The capacity of all edges at each node."""
        i, j = self.edges.T
        return np.bincount(i, self.A, self.n_nodes) + np.bincount(j, self.A, self.n_nodes)

    def cut_edges(self, side: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The edges that leave a set of nodes."""
        return np.flatnonzero(side[self.edges[:, 0]] != side[self.edges[:, 1]])


@dataclass(frozen=True, eq=False)
class Cut:
    """A maximum flow, told by the smallest of the minimum cuts.

    Attributes
    ----------
    flow : float
        What reaches the sinks: the value of the cut, in floating point.
    side : mask of shape (V,)
        The nodes on the side of the source: they have more supply than can leave them.
    residual : sparse array of shape (V + 2, V + 2)
        What each arc could still carry, times scale.
    scale : float
    """

    flow: float
    side: NDArray[np.bool_]
    residual: Any
    scale: float


def min_cut(network: Network, supply: Array) -> Cut:
    """Send as much as possible of what each node supplies to the sinks."""
    from scipy.sparse.csgraph import maximum_flow

    V, total = network.n_nodes, float(supply.sum())
    source, sink = V, V + 1
    scale = 2.0 ** np.floor(np.log2(MOST / total)) if total > 0 else 1.0
    (i, j), of = network.edges.T, np.flatnonzero(supply)
    to = np.flatnonzero(network.sinks)
    A = np.floor(scale * np.minimum(network.A, total))
    arcs = _matrix(
        np.concatenate([i, j, np.full(len(of), source), to]),
        np.concatenate([j, i, of, np.full(len(to), sink)]),
        np.concatenate([A, A, np.floor(scale * supply[of]), np.full(len(to), MOST)]),
        V + 2,
    )
    residual = arcs - maximum_flow(arcs, source, sink).flow if to.size else arcs
    side = _reached(residual, source)[:V]
    flow = float(network.A[network.cut_edges(side)].sum() + supply[~side].sum())
    return Cut(flow, side, residual, scale)


def best_sink(network: Network, cut: Cut, left: float) -> tuple[int, float]:
    """Find the node that, as one more sink, adds most to the flow; return it and what it adds.

    A node adds the maximum flow from the source to it in the residual network. That is at most what its arcs can
    carry. And when a node has been tried, whatever lies beyond its minimum cut adds no more than it does. So few
    nodes need to be tried. Where several add the same, one with large capacity is taken.

    Parameters
    ----------
    network : Network
    cut : Cut
        Of this network; some supply does not arrive.
    left : float
        How much does not.
    """
    from scipy.sparse.csgraph import maximum_flow

    nodes = np.flatnonzero(cut.side)
    source = len(nodes)
    enough = min(int(np.ceil(cut.scale * left)), MOST)
    kept = np.append(nodes, network.n_nodes).astype(np.int32)
    arcs = cut.residual[kept][:, kept]
    arcs.data = np.minimum(arcs.data, enough)
    bound = np.minimum(arcs.sum(axis=0, dtype=np.int64)[:source], enough)
    order = np.lexsort((-network.capacity[nodes], -bound))
    best, most, tries = order[0], 0, 0
    worth_trying = np.ones(source + 1, dtype=bool)
    for v in order:
        if bound[v] <= most or tries == TRIES:
            break
        if worth_trying[v]:
            flow = maximum_flow(arcs, source, v)
            tries += 1
            if flow.flow_value > most:
                best, most = v, int(flow.flow_value)
            worth_trying &= _reached(arcs - flow.flow, source)
    return int(nodes[best]), float(min(most / cut.scale, left))


def _matrix(rows: Array, columns: Array, capacities: Array, n: int) -> Any:
    from scipy.sparse import coo_array

    whole = np.int32  # of the capacities and, for older versions of SciPy, also of the node numbers
    arcs = coo_array((capacities.astype(whole), (rows.astype(whole), columns.astype(whole))), shape=(n, n)).tocsr()
    arcs.eliminate_zeros()
    return arcs


def _reached(residual: Any, source: int) -> NDArray[np.bool_]:
    """The nodes that the source can still send to."""
    from scipy.sparse.csgraph import breadth_first_order

    residual.eliminate_zeros()
    reached = np.zeros(residual.shape[0], dtype=bool)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = True
    return reached
