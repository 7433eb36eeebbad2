"""Edge lists out of the graph types that people already have."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import as_floats
from coterie.problem.ids import as_ids, look_up, numbering

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
    ids = as_ids(graph.nodes) if nodes is None else nodes
    edges = list(graph.edges(data="weight", default=1.0))
    weights = as_floats([a for _, _, a in edges], "the edge attribute 'weight'")
    return _numbered([i for i, _, _ in edges], [j for _, j, _ in edges], ids), weights, ids


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
            "a scipy.sparse matrix, a data frame of edges, or EmpiricalGraph.from_edges(pairs)"
        ) from None
    first, second, weight = edge_columns(frame)
    for name in frame.columns:
        missing = frame[name].is_null().to_numpy()
        if missing.any():
            raise ValueError(f"column {name!r} of the edge frame is empty in row {int(np.argmax(missing))}")
    a, b = _node_column(frame, first), _node_column(frame, second)
    ids = _sorted_ids(set(a) | set(b)) if nodes is None else nodes
    weights = None
    if weight is not None:
        try:
            weights = frame[weight].to_numpy().astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"column {weight!r} of the edge frame must hold numbers, the weights") from None
    return _numbered(a, b, ids), weights, ids


def edge_columns(frame: Any) -> tuple[str, str, str | None]:
    """The two columns that name nodes, and the one with the weights."""
    names = list(frame.columns)
    ends = [name for name in names if name != "weight"]
    if len(ends) == 2:
        return ends[0], ends[1], "weight" if len(names) == 3 else None
    if len(ends) == 3 and len(names) == 3:
        return ends[0], ends[1], ends[2]
    raise ValueError(f"an edge frame has the columns i, j and perhaps weight; this one has {names}")


def _node_column(frame: Any, name: str) -> list[Hashable]:
    ids = as_ids(frame[name])
    odd = next((k for k, value in enumerate(ids) if isinstance(value, float) and not value.is_integer()), None)
    if odd is not None:
        raise ValueError(
            f"column {name!r} of the edge frame names nodes, but holds {ids[odd]} in row {odd}; "
            "if it holds the weights, call it 'weight'"
        )
    return ids


def _sorted_ids(ids: set[Any]) -> list[Hashable]:
    try:
        return sorted(ids)
    except TypeError:
        raise TypeError("the node ids of the edge frame are of several types; give nodes= to say their order") from None


def _numbered(a: Sequence[Hashable], b: Sequence[Hashable], ids: Sequence[Hashable]) -> NDArray[np.int64]:
    number = numbering(ids)
    pairs = np.stack([look_up(a, number), look_up(b, number)], axis=1)
    if (pairs < 0).any():
        e, end = np.argwhere(pairs < 0)[0]
        raise ValueError(f"an edge names the node {(a, b)[end][e]!r}, which is not among the given nodes")
    return pairs
