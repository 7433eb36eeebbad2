"""A node order in which neighbours lie close together in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array

WORTH_IT = 0.5  # a new order must shorten the mean distance of neighbours to this part
FITS_IN_CACHE = 1 << 20  # bytes of node data below which the order does not matter
FAR = 1 << 17  # bytes between the data of neighbours, on average, from which on they will not be found in cache


@dataclass(frozen=True, eq=False)
class Ordering:
    """Node i of the graph is node rank[i] inside; edge k inside is edge[k] of the graph, times sign[k]."""

    rank: NDArray[np.int64]
    ends: NDArray[np.uint32]
    edge: NDArray[np.int64] | None
    sign: Array | None

    @classmethod
    def as_given(cls, graph: EmpiricalGraph) -> Ordering:
        """The order of the graph itself."""
        return cls(np.arange(graph.n_nodes), graph.edges.astype(np.uint32), None, None)

    @classmethod
    def of(cls, graph: EmpiricalGraph, n: int) -> Ordering:
        """Keep the given order where all data fit the cache or Cuthill and McKee's is not much more local."""
        rank, as_given = np.arange(graph.n_nodes), cls.as_given(graph)
        if graph.n_nodes * n * 16 <= FITS_IN_CACHE or graph.n_edges == 0:
            return as_given
        span = float(np.abs(np.diff(graph.edges)).mean())
        if span <= 4 * np.sqrt(graph.n_nodes):
            return as_given
        order = _cuthill_mckee(graph)
        rank[order] = np.arange(graph.n_nodes)
        pairs = rank[graph.edges]
        if float(np.abs(np.diff(pairs)).mean()) > WORTH_IT * span:
            return as_given
        sign = np.where(pairs[:, 0] < pairs[:, 1], 1.0, -1.0)
        pairs.sort(axis=1)
        edge = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return cls(rank, pairs[edge].astype(np.uint32), edge, sign[edge][:, None])

    def regrouped(self, places: NDArray[np.int64]) -> Ordering:
        """The same with edge places[k] of this order as edge k."""
        edge = places if self.edge is None else self.edge[places]
        sign = np.ones((len(places), 1)) if self.sign is None else self.sign[places]
        return Ordering(self.rank, self.ends[places], edge, sign)

    def nodes_in(self, values: Array) -> Array:
        """Node values in the inner order."""
        inside = np.empty_like(values)
        inside[self.rank] = values
        return inside

    def nodes_out(self, values: Array) -> Array:
        return values[self.rank]

    def edges_in(self, values: Array) -> Array:
        """Duals (signed) or edge weights in the inner order; the given array itself where that is the same."""
        if self.edge is None:
            return values
        return values[self.edge] * (self.sign if values.ndim == 2 else 1.0)

    def edges_out(self, values: Array) -> Array:
        """Duals in the order of the graph; the given array is used up."""
        if self.edge is None or self.sign is None:
            return values
        outside = np.empty_like(values)
        outside[self.edge] = np.multiply(values, self.sign, out=values)
        return outside


def are_far(ends: NDArray[Any], V: int, n: int) -> bool:
    """Whether the data of neighbours, 2n numbers per node, lie so far apart that they should be asked for in time."""
    if V * n * 16 <= FITS_IN_CACHE or len(ends) == 0:
        return False
    i, j = ends.T
    return float((j - i).mean()) * n * 16 > FAR


def _cuthill_mckee(graph: EmpiricalGraph) -> NDArray[np.int64]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    i, j = graph.edges.T
    half = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(graph.n_nodes, graph.n_nodes))
    return reverse_cuthill_mckee((half + half.T).tocsr(), symmetric_mode=True).astype(np.int64)
