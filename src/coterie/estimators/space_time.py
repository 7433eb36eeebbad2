"""Models of places at times: two graphs in, their product inside, and slices of it where only the past is known."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import date, datetime
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from coterie.graphs.product import product_graph
from coterie.graphs.similarity_recipe import SimilarityGraph
from coterie.graphs.times import is_after, what_they_say
from coterie.problem import EmpiricalGraph, Problem
from coterie.problem.arrays import Array
from coterie.problem.ids import Pairs, as_ids, look_up, numbering, some_of, written

STRENGTHS = (0.1, 1.0, 10.0)
"""The strengths in time that cross-validation tries, relative to `alike`: see docs/decisions/0034-space-time.md."""

CARRIED = "times after"
"""How the warning begins that says that models of the last time are carried forward."""


class SpaceTime(NamedTuple):
    """The graph of the places and the graph of the times."""

    space: EmpiricalGraph
    time: EmpiricalGraph

    @classmethod
    def of(cls, graph: Any) -> Self | None:
        """The two graphs of a pair (space, time); None of anything else, such as a pair of edges."""
        if not isinstance(graph, tuple | list) or len(graph) != 2:
            return None
        if any(isinstance(part, SimilarityGraph) for part in graph):
            raise TypeError(
                "a SimilarityGraph cannot be one of two graphs; give the graph of places that ct.similarity_graph makes"
            )
        made = any(isinstance(part, EmpiricalGraph) for part in graph)
        if not made and (isinstance(graph, list) or isinstance(graph[1], tuple | list)):
            return None
        try:
            time = EmpiricalGraph.from_any(graph[1])
        except (TypeError, ValueError) as error:
            raise type(error)(f"the second graph is that of the times, as ct.time_graph makes it: {error}") from None
        _check_order(time)
        return cls(EmpiricalGraph.from_any(graph[0]), time)

    def graph(self, strength: float) -> EmpiricalGraph:
        """The product, in which edges in time count so many times as much."""
        return product_graph(self.space, self.time, (1.0, strength))

    @property
    def alike(self) -> float:
        """The strength with which the median edge in time weighs what the median edge in space does."""
        if not self.space.n_edges or not self.time.n_edges:
            return 1.0
        return float(np.median(self.space.weights) / np.median(self.time.weights))


def pairs_of(graph: EmpiricalGraph) -> Pairs | None:
    """The places and the times of a product graph; None of any other."""
    return graph.ids if isinstance(graph.ids, Pairs) else None


def places_of(graph: EmpiricalGraph) -> int | None:
    """How many nodes each time has; None where nodes have no times."""
    pairs = pairs_of(graph)
    return None if pairs is None else len(pairs.first)


def until(problem: Problem, n_nodes: int) -> Problem:
    """The problem of the first times, which have so many nodes: as if the later ones had not come yet."""
    graph, data, pairs = problem.graph, problem.data, pairs_of(problem.graph)
    assert pairs is not None
    there, rows = graph.edges[:, 1] < n_nodes, data.nodes < n_nodes  # edges are (i, j) with i < j
    times = pairs.second[: n_nodes // len(pairs.first)]
    past = EmpiricalGraph(n_nodes, graph.edges[there], graph.weights[there], Pairs(pairs.first, times))
    kept = {name: getattr(data, name)[rows] for name in ("X", "y", "nodes", "weights")}
    offset = None if data.offset is None else data.offset[rows]
    return replace(problem, graph=past, data=replace(data, n_nodes=n_nodes, offset=offset, **kept))


def carried(w: Array, graph: EmpiricalGraph) -> Array:
    """The weights of all nodes of a product graph from those of its first times: the last of them stays."""
    if len(w) == graph.n_nodes:
        return w
    V = places_of(graph)
    assert V is not None
    return np.concatenate([w, np.tile(w[-V:], ((graph.n_nodes - len(w)) // V, 1))])


def last_known(nodes: NDArray[np.int64], past: EmpiricalGraph) -> NDArray[np.int64]:
    """The nodes of the first times that stand for these nodes."""
    V = places_of(past)
    return nodes if V is None else np.where(nodes < past.n_nodes, nodes, past.n_nodes - V + nodes % V)


def nodes_of_rows(graph: EmpiricalGraph, ids: Any, later: bool) -> NDArray[np.int64]:
    """Return the node of each id.

    later : a place after the last time has its model of the last time, which a warning says; otherwise it is refused.
    """
    pairs = pairs_of(graph)
    if pairs is None:
        return graph.numbers(ids)
    names = _as_pairs(as_ids(ids), pairs)
    numbers = look_up(names, graph._number_of)
    if not (numbers < 0).any():
        return numbers
    unknown = np.flatnonzero(numbers < 0)
    place = numbering(pairs.first)
    new: set[Any] = set()
    for k in unknown:
        _check_pair(names[k], f"row {k}", pairs, place, later)
        pair: Any = names[k]
        numbers[k] = place[pair[0]] + len(pairs) - len(place)
        new.add(pair[1])
    if goes_round(graph):
        raise ValueError(f"times go round, so that none comes after the last; the model does not know {some_of(new)}")
    warnings.warn(
        f"{CARRIED} {written(pairs.second[-1])} are predicted with the models of that time: {some_of(sorted(new))}",
        UserWarning,
        stacklevel=5,
    )
    return numbers


def unknown_to(graph: EmpiricalGraph, ids: Any) -> NDArray[np.bool_]:
    """Whether the node of each id is none of a product graph: of those that `nodes_of_rows` takes, a time to come."""
    pairs = pairs_of(graph)
    assert pairs is not None
    return look_up(_as_pairs(as_ids(ids), pairs), graph._number_of) < 0


def _as_pairs(names: list[Any], pairs: Pairs) -> list[Any]:
    """The same names as tuples; where times are dates, midnights are these."""
    names = [tuple(name) if isinstance(name, list) else name for name in names]
    if not isinstance(pairs.second[0], date) or isinstance(pairs.second[0], datetime):
        return names
    return [(name[0], _as_date(name[1])) if isinstance(name, tuple) and len(name) == 2 else name for name in names]


def _as_date(when: Any) -> Any:
    midnight = isinstance(when, datetime) and when.tzinfo is None and when.time() == datetime.min.time()
    return when.date() if midnight else when


def _check_pair(name: Any, row: str, pairs: Pairs, place: Any, later: bool) -> None:
    """Refuse what is no known place at a known time, nor, with `later`, at one that comes after the last."""
    if not isinstance(name, tuple) or len(name) != 2:
        raise ValueError(f"nodes are pairs (place, time), such as {written(pairs[0])}; {row} has {written(name)}")
    where, when = name
    if where not in place and when in place and where in pairs.second:
        raise ValueError(
            f"nodes are pairs (place, time), such as {written(pairs[0])}; {row} has the time first, {written(name)}"
        )
    if where not in place:
        hint = "; weights_for gives a new place its neighbours' models, add_nodes adds it" if later else ""
        raise ValueError(f"{row}: {written(where)} is not among the {len(place)} places, {some_of(pairs.first)}{hint}")
    last: Any = pairs.second[-1]
    if not later or not is_after(when, last):
        more = f", and not after the last, {written(last)}" if later else ""
        raise ValueError(
            f"{row}: the time {written(when)} is not among the {len(pairs.second)} times, {some_of(pairs.second)}{more}"
        )


def goes_round(graph: EmpiricalGraph) -> bool:
    """Whether the last time is joined to the first, as months of the year are; False where nodes have no times."""
    pairs = pairs_of(graph)
    return pairs is not None and len(pairs.second) > 2 and _joins(graph, len(pairs) - len(pairs.first))


def _joins(graph: EmpiricalGraph, last: int) -> bool:
    """Whether there is an edge from the first node to this one."""
    return bool((graph.edges == (0, last)).all(axis=1).any())


def _check_order(time: EmpiricalGraph) -> None:
    """Refuse numbers and dates that do not ascend, unless they go round: what comes next is told from the order."""
    if time.n_nodes > 2 and _joins(time, time.n_nodes - 1):
        return
    try:
        said = what_they_say(time.names)
        late = next((k for k, (before, after) in enumerate(pairwise(said)) if not before < after), None)
    except (TypeError, ValueError):  # the order of names that tell no time is that of the graph
        return
    if late is not None:
        raise ValueError(
            f"the times of the second graph do not ascend: {written(time.names[late])} comes before "
            f"{written(time.names[late + 1])}; ct.time_graph puts them in order"
        )
