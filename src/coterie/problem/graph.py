"""The empirical graph: nodes are local datasets, weighted edges join similar ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.problem.arrays import LARGEST, as_floats, as_whole
from coterie.problem.ids import as_ids, look_up, numbering, some_of


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
    ids : sequence, default=None
        What the caller calls the nodes; None where they are called by their numbers.

    Examples
    --------
    >>> import coterie as ct
    >>> ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], weights=[1.0, 0.5], ids=["a", "b", "c"])
    EmpiricalGraph(3 nodes, 2 edges)
    """

    n_nodes: int
    edges: NDArray[np.int64]
    weights: NDArray[np.float64]
    ids: Sequence[Hashable] | None = None

    @classmethod
    def from_edges(
        cls,
        edges: ArrayLike,
        weights: ArrayLike | None = None,
        n_nodes: int | None = None,
        ids: Sequence[Hashable] | None = None,
    ) -> EmpiricalGraph:
        """Build a graph from pairs of node numbers.

        Parameters
        ----------
        edges : array-like of shape (E, 2)
            Node numbers; the order inside a pair does not matter. A pair may be listed twice
            (say, once each way round) if both times carry the same weight.
        weights : array-like of shape (E,), default=None
            Positive and finite. None: all 1.
        n_nodes : int, default=None
            Needed when the last nodes have no edge. None: the number of ids, or the largest number + 1.
        ids : sequence, default=None
            What to call node 0, 1, …; all different. None: by their numbers.

        Returns
        -------
        EmpiricalGraph
            With each edge once.

        Raises
        ------
        ValueError
            If an edge joins a node to itself, is given two weights, or names a node that there is not.
        """
        pairs = _as_pairs(edges)
        listed = None if ids is None else as_ids(ids)
        V = _count_nodes(pairs, len(listed) if listed is not None and n_nodes is None else n_nodes)
        call = range(V) if listed is None else _checked(listed, V)
        A = _as_weights(weights, pairs, call)
        loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if loops.size:
            raise ValueError(f"edge {loops[0]} joins node {call[pairs[loops[0], 0]]!r} to itself; remove self-loops")
        pairs, A = _each_edge_once(np.sort(pairs, axis=1), A, call)
        pairs.flags.writeable = A.flags.writeable = False
        return cls(V, pairs, A, None if listed is None or listed == list(range(V)) else tuple(listed))

    @classmethod
    def from_any(
        cls,
        graph: Any,
        nodes: Sequence[Hashable] | None = None,
        *,
        weight: str | None = None,
        distance: str | None = None,
    ) -> EmpiricalGraph:
        """Build a graph from what people have: networkx, an adjacency matrix, a frame, a list or a dict of edges.

        Parameters
        ----------
        graph : EmpiricalGraph, networkx.Graph, matrix, data frame, list or dict
            networkx: the edge attribute "weight", if edges have it. Matrix (scipy.sparse, or NumPy with more than two
            rows): symmetric, or one triangle only. List: pairs of ids, or triples with weights. Dict: the neighbours of
            each node, a list of ids or a dict of id → weight. Frame (pandas, polars, …): two columns name the nodes,
            those called from and to, source and target or i and j, or else the first two; a column called "weight",
            wherever it stands, holds the weights. Without weights all are 1. Other columns are not used.
        nodes : sequence, default=None
            The ids of all nodes, in the order wanted: for a frame in which nodes without an edge
            cannot appear. None: networkx's order, or the sorted ids of a frame. An
            EmpiricalGraph has its order already: other nodes are refused.
        weight : str, default=None
            Another name of the column, or edge attribute, with the weights: large where nodes are alike.
        distance : str, default=None
            Instead, the column or attribute with distances d, finite and ≥ 0. Weights are then 1/(d + s/10), with s
            the median of the distances that are not zero.

        Returns
        -------
        EmpiricalGraph
            An EmpiricalGraph is returned as it is.

        Raises
        ------
        ValueError
            If the edges make no graph, or nodes does not name the graph's own nodes.
        """
        from coterie.problem.convert import Measure, edges_of  # brings in narwhals: only when asked

        wanted = None if nodes is None else as_ids(nodes, "nodes")
        if isinstance(graph, cls):
            if wanted is not None and wanted != list(graph.names):
                raise ValueError("the graph has its own nodes, and nodes= names others or another order; leave it out")
            return graph
        pairs, weights, ids = edges_of(graph, wanted, Measure(weight, distance))
        return cls.from_edges(pairs, weights, ids=ids)

    @property
    def n_edges(self) -> int:
        """|E|."""
        return len(self.edges)

    @property
    def names(self) -> Sequence[Hashable]:
        """What the nodes are called: `ids`, or their numbers."""
        return range(self.n_nodes) if self.ids is None else self.ids

    @cached_property
    def _number_of(self) -> Mapping[Hashable, int]:
        return numbering(self.names)

    def numbers(self, ids: Any) -> NDArray[np.int64]:
        """Return the node numbers of ids.

        Parameters
        ----------
        ids : sequence, array or column
            Ids of nodes, in any order and number.

        Returns
        -------
        array of int
            One number per id.

        Raises
        ------
        ValueError
            If an id is not among the nodes; the message names it.
        """
        if self.ids is None and isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu":
            known = (ids >= 0) & (ids < self.n_nodes)
            if known.all():
                return ids.astype(np.int64)
        names = as_ids(ids)
        numbers = look_up(names, self._number_of)
        if (numbers < 0).any():
            unknown = some_of(names[k] for k in np.flatnonzero(numbers < 0))
            nodes = f"called {some_of(self.ids or ())}"
            if self.ids is None:
                nodes = f"numbered 0 to {self.n_nodes - 1}; a graph that is made with ids= has names"
            alike = {str(name) for name in self.names} & {str(names[k]) for k in np.flatnonzero(numbers < 0)}
            other = "; a number and its text are two names: convert one of them" if alike else ""
            raise ValueError(
                f"not among the {self.n_nodes} nodes of the graph: {unknown} (its nodes are {nodes}){other}"
            )
        return numbers

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
        raise ValueError(f"edges must have shape (E, 2), one pair of node numbers per row; got {pairs.shape}")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise TypeError(
            f"edges must hold whole node numbers, got {pairs.dtype}; for nodes with names, use EmpiricalGraph.from_any"
        )
    return pairs.astype(np.int64)


def _as_weights(weights: ArrayLike | None, pairs: NDArray[np.int64], call: Sequence[Hashable]) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(len(pairs))
    A = as_floats(weights, "weights").copy()
    if A.shape != (len(pairs),):
        raise ValueError(f"there are {len(pairs)} edges but weights has shape {A.shape}")
    bad = np.flatnonzero(~((A <= LARGEST) & (A > 0)))
    if bad.size:
        i, j = pairs[bad[0]]
        raise ValueError(
            f"the weight of edge {bad[0]} (nodes {call[i]!r} and {call[j]!r}) is {A[bad[0]]}; "
            f"weights must be positive and finite, up to {LARGEST:g} (leave an edge out instead of giving it weight 0)"
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


def _checked(ids: list[Hashable], V: int) -> list[Hashable]:
    if len(ids) != V:
        raise ValueError(f"there are {V} nodes but {len(ids)} ids")
    numbering(ids)
    return ids


def _each_edge_once(
    pairs: NDArray[np.int64], A: NDArray[np.float64], call: Sequence[Hashable]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, A = pairs[order], A[order]
    again = np.flatnonzero((pairs[1:] == pairs[:-1]).all(axis=1)) + 1
    clash = again[A[again] != A[again - 1]]
    if clash.size:
        k = clash[0]
        i, j = pairs[k]
        raise ValueError(
            f"the edge between nodes {call[i]!r} and {call[j]!r} is given twice, "
            f"with weights {A[k - 1]} and {A[k]}; keep one or add them up"
        )
    keep = np.ones(len(pairs), dtype=bool)
    keep[again] = False
    return pairs[keep], A[keep]
