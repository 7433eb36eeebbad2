"""The graph of a model in its file: ids as JSON can hold them, and of places at times the two graphs alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any

import numpy as np

from coterie.estimators.space_time import SpaceTime, pairs_of
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.ids import Pairs

TIMES = 4  # the first schema with ids that are dates, and with places at times
KINDS_OF_TIME: dict[str, Callable[[str], Any]] = {
    "datetime64": np.datetime64,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}


def names_of(graph: EmpiricalGraph) -> dict[str, Any]:
    """What the nodes are called; of places at times, what these are."""
    pairs = pairs_of(graph)
    if pairs is not None:
        return {"schema": TIMES, "nodes": {"places": _plain(pairs.first), "times": _plain(pairs.second)}}
    names = None if graph.ids is None else _plain(graph.ids)
    dated = any(isinstance(name, dict) for name in names or ())
    return {"nodes": names} | ({"schema": TIMES} if dated else {})


def edges_of(graph: EmpiricalGraph, both: SpaceTime | None, first: EmpiricalGraph | None) -> dict[str, Array]:
    """The edges and their weights; of a product, those of its two graphs.

    first : the graph as it was given, where weights were adapted, which are then written beside it.
    """
    if first is not None:
        return edges_of(first, both, None) | {"adapted_weights": graph.weights}
    if both is None:
        return {"edges": graph.edges, "weights": graph.weights}
    parts = zip(("space", "time"), both, strict=True)
    return {f"{name}_{what}": getattr(part, what) for name, part in parts for what in ("edges", "weights")}


def graph_of(record: dict[str, Any], arrays: dict[str, Array]) -> tuple[EmpiricalGraph, SpaceTime | None]:
    """The graph that was saved and, of a product that the model made, the two graphs."""
    names, V = record["nodes"], len(arrays["w"])
    if not isinstance(names, dict):
        ids = None if names is None else list(map(_id, names))
        return EmpiricalGraph.from_edges(arrays["edges"], arrays["weights"], n_nodes=V, ids=ids), None
    places, times = list(map(_id, names["places"])), list(map(_id, names["times"]))
    if "edges" in arrays:
        plain = EmpiricalGraph.from_edges(arrays["edges"], arrays["weights"], n_nodes=V)
        return EmpiricalGraph(V, plain.edges, plain.weights, Pairs(tuple(places), tuple(times))), None
    space, time = (
        EmpiricalGraph.from_edges(arrays[f"{name}_edges"], arrays[f"{name}_weights"], len(ids), ids)
        for name, ids in (("space", places), ("time", times))
    )
    both = SpaceTime(space, time)
    return both.graph(record["time_strength"]), both


def _plain(ids: Sequence[Any]) -> list[Any]:
    return [_json_id(name) for name in ids]


def _json_id(name: Any) -> Any:
    if isinstance(name, float) and not isfinite(name):
        raise ValueError(f"{name} is the id of a node; a model file takes finite numbers and strings")
    if isinstance(name, tuple):
        return [_json_id(part) for part in name]
    if isinstance(name, np.datetime64):
        return {"datetime64": str(name)}
    if isinstance(name, date):
        return {"datetime" if isinstance(name, datetime) else "date": name.isoformat()}
    if name is None or isinstance(name, str | int | float | bool):
        return name
    raise TypeError(
        f"the node id {name!r} is a {type(name).__name__}; "
        "a model file takes strings, numbers, dates and tuples of them, so make it one of these before the fit"
    )


def _id(name: Any) -> Any:
    """What `_json_id` was given."""
    if isinstance(name, dict):
        ((kind, text),) = name.items()
        return KINDS_OF_TIME[kind](text)
    return tuple(map(_id, name)) if isinstance(name, list) else name
