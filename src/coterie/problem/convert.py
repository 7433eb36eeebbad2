"""Edge lists out of the graph types that people already have."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array, as_floats
from coterie.problem.ids import as_ids, look_up, numbering

Edges = tuple[NDArray[np.int64], NDArray[np.float64] | None, Sequence[Hashable]]

WEIGHT = "weight"
ENDS = ("from", "to"), ("source", "target"), ("i", "j")  # names of columns that leave no doubt


class Measure(NamedTuple):
    """Which column or edge attribute holds weights, or distances that become weights; None: not said."""

    weight: str | None = None
    distance: str | None = None


UNSAID = Measure()


def typical_distance(d: Array) -> float:
    """The median of the distances that are not zero; 1 where all are."""
    return float(np.median(d[d > 0])) if (d > 0).any() else 1.0


def weights_from_distances(d: Array, typical: float | None = None) -> Array:
    """1/(d + s/10), with s the typical distance: coincident nodes get 10/s, not infinity. None: that of d."""
    return 1.0 / (d + (typical_distance(d) if typical is None else typical) / 10)


def edges_of(graph: Any, nodes: Sequence[Hashable] | None, measure: Measure = UNSAID) -> Edges:
    """Return pairs of node numbers, weights, and the ids that the numbers stand for."""
    if measure.weight is not None and measure.distance is not None:
        raise ValueError("give weight= or distance=, not both")
    from scipy.sparse import csr_array, issparse

    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.shape[0] == graph.shape[1] != 2:
        graph = csr_array(graph)
    if issparse(graph):
        return _from_sparse(graph, nodes)
    if isinstance(graph, Mapping):
        return _from_neighbours(graph, nodes)
    if isinstance(graph, list | tuple | np.ndarray):
        return _from_pairs(graph, nodes)
    if hasattr(graph, "nodes") and hasattr(graph, "is_directed"):
        return _from_networkx(graph, nodes, measure)
    return _from_frame(graph, nodes, measure)


def _from_networkx(graph: Any, nodes: Sequence[Hashable] | None, measure: Measure) -> Edges:
    if graph.is_directed():
        raise ValueError("the graph is directed; convert it with .to_undirected() first")
    ids = as_ids(graph.nodes) if nodes is None else nodes
    name = measure.distance or measure.weight or WEIGHT
    edges = list(graph.edges(data=True))
    pairs = _numbered([i for i, _, _ in edges], [j for _, j, _ in edges], ids)
    missing = [(i, j) for i, j, data in edges if name not in data]
    if len(missing) == len(edges) and measure == UNSAID:
        _warn_of_unused({key for _, _, data in edges for key in data}, "edge attribute")
        return pairs, None, ids
    if missing:
        raise ValueError(f"the edge {missing[0][0]!r} – {missing[0][1]!r} has no attribute {name!r}; give it one")
    values = as_floats([data[name] for _, _, data in edges], f"the edge attribute {name!r}")
    return pairs, _measured(values, name, measure), ids


def _from_pairs(graph: Any, nodes: Sequence[Hashable] | None) -> Edges:
    """Pairs of ids, or triples with weights."""
    given = graph.tolist() if isinstance(graph, np.ndarray) else list(graph)
    lengths = {len(edge) if isinstance(edge, list | tuple) else 0 for edge in given}
    if not lengths <= {2} and not lengths <= {3}:
        raise ValueError("a list of edges has pairs of node ids, or triples (id, id, weight), and not both")
    a, b = ([edge[end] for edge in given] for end in (0, 1))
    ids = _sorted_ids({*a, *b}) if nodes is None else nodes
    weights = as_floats([edge[2] for edge in given], "the third of each edge, its weight") if lengths == {3} else None
    return _numbered(a, b, ids), weights, ids


def _from_neighbours(graph: Mapping[Any, Any], nodes: Sequence[Hashable] | None) -> Edges:
    """A dict of each node's neighbours, a sequence, or another dict with weights; an edge may stand at both ends."""
    weight: dict[frozenset[Any], float] = {}
    ids: dict[Hashable, None] = dict.fromkeys(graph)
    for i, others in graph.items():
        for j in others:
            a = float(others[j]) if isinstance(others, Mapping) else 1.0
            if weight.setdefault(frozenset((i, j)), a) != a:
                raise ValueError(f"the edge {i!r} – {j!r} has the weight {a} at {i!r}, and another at {j!r}")
            ids[j] = None
    ends = [tuple(edge) if len(edge) == 2 else (*edge, *edge) for edge in weight]
    wanted = list(ids) if nodes is None else nodes
    pairs = _numbered([i for i, _ in ends], [j for _, j in ends], wanted).reshape(-1, 2)
    return pairs, np.array(list(weight.values())), wanted


def _measured(values: Array, name: str, measure: Measure) -> Array:
    """Weights as they are; distances as weights."""
    if measure.distance is None:
        return values
    bad = np.flatnonzero(~((values >= 0) & np.isfinite(values)))
    if bad.size:
        raise ValueError(f"{name!r} holds the distance {values[bad[0]]} (edge {bad[0]}); distances are finite and ≥ 0")
    return weights_from_distances(values)


def _warn_of_unused(names: Sequence[str] | set[str], what: str) -> None:
    """Without weights, a column beside the nodes may be meant for them."""
    if names:
        listed = ", ".join(map(repr, sorted(map(str, names))))
        warnings.warn(
            f"every edge gets the weight 1, and the {what} {listed} is not used: weights stand in one called 'weight'; "
            "name another with weight, or distances with distance",
            stacklevel=2,
        )


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


def _from_frame(graph: Any, nodes: Sequence[Hashable] | None, measure: Measure) -> Edges:
    import narwhals.stable.v1 as nw

    try:
        frame = nw.from_native(graph, eager_only=True)
    except TypeError:
        raise TypeError(
            f"cannot read a graph from {type(graph).__name__}; give a networkx graph, an adjacency matrix, "
            "a data frame of edges, a list of pairs, or a dict of neighbours"
        ) from None
    first, second, weight = edge_columns(frame.columns, measure)
    for name in (first, second, *([] if weight is None else [weight])):
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
        weights = _measured(weights, weight, measure)
    return _numbered(a, b, ids), weights, ids


def edge_columns(names: Sequence[str], measure: Measure = UNSAID) -> tuple[str, str, str | None]:
    """The two columns that name nodes, and the one with weights or distances, if there is one; others are not used."""
    named = measure.distance or measure.weight
    if named is not None and named not in names:
        raise ValueError(f"there is no column {named!r} among the columns of the edges, which are {list(names)}")
    weight = named or (WEIGHT if WEIGHT in names else None)
    others = [name for name in names if name != weight]
    lower = {name.lower(): name for name in others}
    ends = next(([lower[i], lower[j]] for i, j in ENDS if i in lower and j in lower), others[:2])
    if len(ends) < 2:
        raise ValueError(f"an edge frame has two columns of nodes, and perhaps weight; this one has {list(names)}")
    if weight is None:
        _warn_of_unused([name for name in others if name not in ends], "column")
    return ends[0], ends[1], weight


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
