"""Edge lists out of the graph types that people already have."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Edges = tuple[NDArray[np.int64], NDArray[np.float64] | None, Sequence[Hashable]]


def edges_of(graph: Any, nodes: Sequence[Hashable] | None) -> Edges:
    """Return pairs of node numbers, weights, and the ids that the numbers stand for."""
    from scipy.sparse import issparse

    if issparse(graph):
        return _from_sparse(graph, nodes)
    if hasattr(graph, "nodes") and hasattr(graph, "is_directed"):
        return _from_networkx(graph, nodes)
    return _from_frame(graph, nodes)


def _from_networkx(graph: Any, nodes: Sequence[Hashable] | None) -> Edges:
    if graph.is_directed():
        raise ValueError("the graph is directed; convert it with .to_undirected() first")
    ids = list(graph.nodes) if nodes is None else list(nodes)
    ends = [(a, b) for a, b in graph.edges()]
    weights = np.array([w for _, _, w in graph.edges(data="weight", default=1.0)], dtype=np.float64)
    return _numbered([a for a, _ in ends], [b for _, b in ends], ids), weights, ids


def _from_sparse(graph: Any, nodes: Sequence[Hashable] | None) -> Edges:
    V, columns = graph.shape
    if columns != V:
        raise ValueError(f"an adjacency matrix is square; this one has shape {graph.shape}")
    if nodes is not None and len(nodes) != V:
        raise ValueError(f"the adjacency matrix has {V} rows, but {len(nodes)} node ids were given")
    entries = graph.tocoo(copy=True)
    entries.sum_duplicates()
    i, j, a = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data.astype(np.float64)
    stored = a != 0
    i, j, a = i[stored], j[stored], a[stored]
    if (i < j).any() and (i > j).any():
        difference = (graph - graph.T).tocoo()
        off = np.flatnonzero(difference.data != 0)
        if off.size:
            r, c = difference.row[off[0]], difference.col[off[0]]
            raise ValueError(
                f"the adjacency matrix is not symmetric: entries ({r}, {c}) and ({c}, {r}) differ; "
                "give a symmetric matrix or one triangle only"
            )
    return np.stack([i, j], axis=1), a, range(V) if nodes is None else nodes


def _from_frame(graph: Any, nodes: Sequence[Hashable] | None) -> Edges:
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(graph, eager_only=True)
    except TypeError:
        raise TypeError(
            f"cannot read a graph from {type(graph).__name__}; give a networkx graph, "
            "a scipy.sparse matrix or a data frame of edges"
        ) from None
    names = frame.columns
    if len(names) not in (2, 3):
        raise ValueError(f"an edge frame has the columns i, j and perhaps weight; this one has {names}")
    for name in names:
        missing = frame[name].is_null().to_numpy()
        if missing.any():
            raise ValueError(f"column {name!r} of the edge frame is empty in row {int(np.argmax(missing))}")
    a, b = frame[names[0]].to_list(), frame[names[1]].to_list()
    ids = _sorted_ids(set(a) | set(b)) if nodes is None else list(nodes)
    weights = None
    if len(names) == 3:
        try:
            weights = frame[names[2]].to_numpy().astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"column {names[2]!r} of the edge frame must hold numbers, the weights") from None
    return _numbered(a, b, ids), weights, ids


def _sorted_ids(ids: set[Any]) -> list[Hashable]:
    try:
        return sorted(ids)
    except TypeError:
        raise TypeError("the node ids of the edge frame are of several types; give nodes= to say their order") from None


def _numbered(a: Sequence[Hashable], b: Sequence[Hashable], ids: Sequence[Hashable]) -> NDArray[np.int64]:
    number = {name: k for k, name in enumerate(ids)}
    if len(number) < len(ids):
        again = next(name for k, name in enumerate(ids) if number[name] != k)
        raise ValueError(f"the node id {again!r} is listed twice")
    for name in (*a, *b):
        if name not in number:
            raise ValueError(f"an edge names the node {name!r}, which is not among the given nodes")
    return np.array([[number[p], number[q]] for p, q in zip(a, b, strict=True)], dtype=np.int64).reshape(-1, 2)
