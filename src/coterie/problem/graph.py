"""The empirical graph: nodes are local datasets, weighted edges join similar ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.problem.arrays import as_floats, as_whole


@dataclass(frozen=True, eq=False)
class EmpiricalGraph:
    """Undirected weighted graph G = (V, E, A), each edge once as (i, j) with i < j.

    Build one with :meth:`from_edges` or :meth:`from_any`, which check their input.

    Attributes
    ----------
    n_nodes : int
        |V|; nodes are numbered 0 … |V| − 1, and some may have no edge.
    edges : array of shape (E, 2)
        End points i < j, in lexicographic order.
    weights : array of shape (E,)
        A_e > 0.
    ids : tuple or None
        What the caller calls the nodes, where that differs from their numbers.
    """

    n_nodes: int
    edges: NDArray[np.int64]
    weights: NDArray[np.float64]
    ids: tuple[Hashable, ...] | None = None

    @classmethod
    def from_edges(
        cls, edges: ArrayLike, weights: ArrayLike | None = None, n_nodes: int | None = None
    ) -> EmpiricalGraph:
        """Build a graph from pairs of node numbers.

        Parameters
        ----------
        edges : array-like of shape (E, 2)
            Node numbers; the order inside a pair does not matter. A pair may be listed twice
            (say, once each way round) if both times carry the same weight.
        weights : array-like of shape (E,), optional
            Positive and finite; all 1 when left out.
        n_nodes : int, optional
            Needed when the last nodes have no edge; by default the largest number + 1.
        """
        pairs = _as_pairs(edges)
        A = _as_weights(weights, pairs)
        V = _count_nodes(pairs, n_nodes)
        loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if loops.size:
            raise ValueError(f"edge {loops[0]} joins node {pairs[loops[0], 0]} to itself; remove self-loops")
        pairs, A = _each_edge_once(np.sort(pairs, axis=1), A)
        pairs.flags.writeable = A.flags.writeable = False
        return cls(V, pairs, A)

    @classmethod
    def from_any(cls, graph: Any, nodes: Sequence[Hashable] | None = None) -> EmpiricalGraph:
        """Build a graph from a networkx graph, a scipy.sparse adjacency matrix or an edge frame.

        Parameters
        ----------
        graph : EmpiricalGraph, networkx.Graph, scipy.sparse matrix or array, or data frame
            networkx: the edge attribute "weight", 1 where absent. Sparse: symmetric, or one triangle
            only. Frame (pandas, polars, …): the first two columns name the nodes, a third one, if
            there is one, the weight.
        nodes : sequence, optional
            The ids of all nodes, in the order wanted: for a frame in which nodes without an edge
            cannot appear. By default networkx's order, or the sorted ids of a frame.
        """
        from coterie.problem.convert import edges_of  # brings in narwhals: only when asked

        if isinstance(graph, cls):
            return graph
        pairs, weights, ids = edges_of(graph, nodes)
        plain = cls.from_edges(pairs, weights, n_nodes=len(ids))
        if list(ids) == list(range(len(ids))):
            return plain
        return cls(plain.n_nodes, plain.edges, plain.weights, tuple(ids))

    @property
    def n_edges(self) -> int:
        """|E|."""
        return len(self.edges)

    @cached_property
    def D(self) -> Any:
        """Incidence matrix (E × V, sparse): +1 at the smaller node of an edge, −1 at the larger."""
        from scipy.sparse import csr_array

        E = self.n_edges
        signs = np.tile([1.0, -1.0], E)
        return csr_array((signs, self.edges.ravel(), np.arange(0, 2 * E + 1, 2)), shape=(E, self.n_nodes))

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """|N_i|, the number of neighbours of each node."""
        return np.bincount(self.edges.ravel(), minlength=self.n_nodes)

    @cached_property
    def components(self) -> NDArray[np.int64]:
        """The number of the connected component that each node lies in."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        i, j = self.edges.T
        adjacency = coo_array((self.weights, (i, j)), shape=(self.n_nodes, self.n_nodes))
        return connected_components(adjacency, directed=False)[1].astype(np.int64)

    def __repr__(self) -> str:
        return f"EmpiricalGraph({self.n_nodes} nodes, {self.n_edges} edges)"


def _as_pairs(edges: ArrayLike) -> NDArray[np.int64]:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"edges must have shape (E, 2), one pair of node numbers a row; got {pairs.shape}")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise TypeError(
            f"edges must hold whole node numbers, got {pairs.dtype}; for nodes with names, use EmpiricalGraph.from_any"
        )
    return pairs.astype(np.int64)


def _as_weights(weights: ArrayLike | None, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(len(pairs))
    A = as_floats(weights, "weights").copy()
    if A.shape != (len(pairs),):
        raise ValueError(f"there are {len(pairs)} edges but weights has shape {A.shape}")
    bad = np.flatnonzero(~(np.isfinite(A) & (A > 0)))
    if bad.size:
        i, j = pairs[bad[0]]
        raise ValueError(
            f"the weight of edge {bad[0]} (nodes {i} and {j}) is {A[bad[0]]}; "
            "weights must be positive and finite (leave an edge out instead of giving it weight 0)"
        )
    return A


def _count_nodes(pairs: NDArray[np.int64], n_nodes: int | None) -> int:
    largest = int(pairs.max(initial=-1))
    V = largest + 1 if n_nodes is None else as_whole(n_nodes, "n_nodes")
    if V < 1:
        raise ValueError("a graph needs at least one node; give n_nodes when there are no edges")
    outside = np.argwhere((pairs < 0) | (pairs >= V))
    if outside.size:
        e, end = outside[0]
        raise ValueError(f"edge {e} names node {pairs[e, end]}, but the {V} nodes are numbered 0 to {V - 1}")
    return V


def _each_edge_once(pairs: NDArray[np.int64], A: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, A = pairs[order], A[order]
    again = np.flatnonzero((pairs[1:] == pairs[:-1]).all(axis=1)) + 1
    clash = again[A[again] != A[again - 1]]
    if clash.size:
        k = clash[0]
        raise ValueError(
            f"the edge between nodes {pairs[k, 0]} and {pairs[k, 1]} is given twice, "
            f"with weights {A[k - 1]} and {A[k]}; keep one or add them up"
        )
    keep = np.ones(len(pairs), dtype=bool)
    keep[again] = False
    return pairs[keep], A[keep]
