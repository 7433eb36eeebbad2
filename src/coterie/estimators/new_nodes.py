"""Graphs that change after a fit: where to start from then, and models for new nodes from their neighbours' models."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from coterie.estimators.column_strength import of_weights
from coterie.estimators.fit_given_neighbours import fit_by_column, fit_given_neighbours
from coterie.estimators.offsets import Offset
from coterie.estimators.shared import hub_weight, with_hub
from coterie.estimators.space_time import SpaceTime, pairs_of
from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array, as_floats
from coterie.problem.ids import look_up, numbering, some_of
from coterie.problem.losses.base import LocalLosses
from coterie.problem.penalties import as_penalty
from coterie.problem.penalties.by_column import by_column
from coterie.solver import Solution

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel


class LocalModel(NamedTuple):
    """The model of one node."""

    coef: Array
    intercept: float | Array


class NewRows(NamedTuple):
    """Rows that come after a fit, as callers give them."""

    X: Any
    y: Any
    groups: Any = None
    sample_weight: Any = None
    offset: Offset | None = None

    @classmethod
    def of(
        cls, model: NetworkedModel, X: Any, y: Any, groups: Any, sample_weight: Any, offset: Any, exposure: Any
    ) -> Self | None:
        """What was given; None where there are no rows."""
        of_rows = {"y": y, "groups": groups, "sample_weight": sample_weight, "offset": offset, "exposure": exposure}
        if X is None and (given := [name for name, value in of_rows.items() if value is not None]):
            raise ValueError(f"{given[0]} is of rows, and there are none: give X as well")
        return None if X is None else cls(X, y, groups, sample_weight, Offset.for_model(model, offset, exposure))

    def in_nodes(self, model: NetworkedModel, graph: EmpiricalGraph) -> LocalDatasets:
        """The same in nodes of a graph, in the units that are solved in."""
        return model._rows(self.X, self.y, self.groups, self.sample_weight, graph, self.offset, first=False)[0]


def as_neighbours(neighbours: Any) -> dict[Hashable, float]:
    """Return neighbours with the weights of the edges to them; a mere sequence of ids means weight 1 each."""
    if isinstance(neighbours, Mapping):
        weights = as_floats(list(neighbours.values()), "the edge weights")
        for name, weight in zip(neighbours, weights, strict=True):
            if not 0 < weight < np.inf:
                raise ValueError(f"the edge to {name!r} has the weight {weight}; weights are positive and finite")
        return dict(zip(neighbours, weights.tolist(), strict=True))
    if isinstance(neighbours, str) or not isinstance(neighbours, Iterable):
        raise TypeError(f"neighbours are a sequence of node ids or a dict id → edge weight, got {neighbours!r}")
    ids = list(neighbours)
    numbering(ids)  # refuses an id that is listed twice
    return dict.fromkeys(ids, 1.0)


def weights_for(model: NetworkedModel, neighbours: Any, rows: NewRows | None = None) -> Array:
    """See :meth:`NetworkedModel.weights_for`; here in the units of the problem that was solved."""
    joined = as_neighbours(neighbours)
    if not joined and not model.shared:
        raise ValueError("a node without neighbours has no model but its own; fit one to its rows")
    numbers, A = model.graph_.numbers(list(joined)), np.array(list(joined.values()))
    if model.shared:
        m = 0 if rows is None else len(rows.y)
        numbers, A = np.append(numbers, model.graph_.n_nodes), np.append(A, hub_weight(model, m))
    at = model._weights_and_groups()[0][numbers]
    return _fitted(model, at, A, None if rows is None else model._loss_of_one(rows))


def _fitted(model: NetworkedModel, at: Array, A: Array, f: LocalLosses | None = None) -> Array:
    """The weights of one node, given those of its neighbours, and its own loss where it has rows."""
    penalty, c = as_penalty(model.penalty), A if f is None else model.lam_ * A
    if model.strengths_ is not None:
        strength = of_weights(model.strengths_, model._loss(model._unpenalised))
        return fit_by_column(at, c, by_column(penalty, strength), f)
    if f is not None and model.lam_ == 0:  # the neighbours do not count
        return f.pooled(np.zeros(1, dtype=np.int64), 1)[0][0]
    return fit_given_neighbours(at, c, penalty, f)


def is_place(model: NetworkedModel, neighbours: Any) -> bool:
    """Whether neighbours are places, of a model whose nodes are places at times, and no such nodes."""
    pairs, names = pairs_of(model.graph_), list(as_neighbours(neighbours))
    return pairs is not None and (set(names) <= set(pairs.first) or bool((look_up(names, numbering(pairs)) < 0).all()))


def weights_for_place(model: NetworkedModel, neighbours: Any) -> Array:
    """The weights (T, n) of a new place at each time, from those of its neighbours at that time."""
    joined, pairs = as_neighbours(neighbours), pairs_of(model.graph_)
    assert pairs is not None
    if not joined:
        raise ValueError("a place without neighbours has no model; name places that it is joined to")
    at = look_up(list(joined), numbering(pairs.first))
    if unknown := [name for name, number in zip(joined, at, strict=True) if number < 0]:
        raise ValueError(f"{unknown[0]!r} is not among the {len(pairs.first)} places, {some_of(pairs.first)}")
    slices = model._weights_and_groups()[0].reshape(len(pairs.second), len(pairs.first), -1)[:, at]
    A = np.array(list(joined.values()))
    return np.array([_fitted(model, w, A) for w in slices])


def with_places(
    model: NetworkedModel, neighbours: Mapping[Hashable, Any], rows: NewRows | None
) -> tuple[Problem, Solution]:
    """The same as :func:`with_nodes` for new places, which are then there at all times."""
    assert model.space_time_ is not None
    V, old = model.space_time_.space.n_nodes, set(model.space_time_.space.names)
    made = SpaceTime(grown(model.space_time_.space, neighbours), model.space_time_.time)
    graph, more = made.graph(model.time_strength_), len(neighbours)
    data = model.problem_.data
    data = replace(data, nodes=data.nodes + data.nodes // V * more, n_nodes=graph.n_nodes)
    if rows is not None:
        data = data.joined_with(rows.in_nodes(model, graph))
    start = warm_start(model.solution_, graph)
    for number, joined in enumerate(neighbours.values()):
        if known := {name: weight for name, weight in as_neighbours(joined).items() if name in old}:
            start.w[V + number :: V + more] = weights_for_place(model, known)
    model.space_time_ = made
    return replace(model.problem_, graph=graph, data=data), start


def with_nodes(
    model: NetworkedModel, neighbours: Mapping[Hashable, Any], rows: NewRows | None
) -> tuple[Problem, Solution]:
    """Return the problem with new nodes, and rows if there are any, and where to start to solve it."""
    if not isinstance(neighbours, Mapping):
        raise TypeError(f"add_nodes takes a dict of new id → its neighbours, got {neighbours!r}")
    if not hasattr(model, "problem_"):
        raise ValueError("a loaded model does not have its training rows; fit again with warm_start=True")
    if model.space_time_ is not None:
        return with_places(model, neighbours, rows)
    graph = grown(model.graph_, neighbours)
    data = replace(model.problem_.data, n_nodes=graph.n_nodes)
    if rows is not None:
        data = data.joined_with(rows.in_nodes(model, graph))
    if model.shared:
        graph, data = with_hub(graph, data, model.row_weight_)
    start, old = warm_start(model.solution_, graph), set(model.graph_.names)
    for new, joined in neighbours.items():
        if known := {name: weight for name, weight in as_neighbours(joined).items() if name in old}:
            start.w[graph.numbers([new])] = weights_for(model, known)
    return replace(model.problem_, graph=graph, data=data), start


def grown(graph: EmpiricalGraph, neighbours: Mapping[Hashable, Any]) -> EmpiricalGraph:
    """Return the graph with new nodes, each joined to its neighbours, old or new."""
    ids = [*graph.names, *neighbours]
    if again := sorted(map(repr, set(graph.names) & set(neighbours))):
        raise ValueError(f"already in the graph: {', '.join(again[:5])}")
    number, pairs, A = numbering(ids), [], []
    for new, joined in neighbours.items():
        for other, weight in as_neighbours(joined).items():
            if other not in number:
                raise ValueError(f"the new node {new!r} is joined to {other!r}, which is not in the graph")
            pairs.append((number[new], number[other]))
            A.append(weight)
    edges = np.concatenate([graph.edges, np.array(pairs, dtype=np.int64).reshape(-1, 2)])
    return EmpiricalGraph.from_edges(edges, np.concatenate([graph.weights, A]), ids=ids)


def warm_start(solution: Solution, graph: EmpiricalGraph) -> Solution:
    """Return a solution to start from on `graph`: weights and duals of nodes and edges that were there, else zero."""
    if graph is solution.graph:
        return solution
    old, n = solution.graph, solution.w.shape[1]
    to = look_up(list(old.names), numbering(graph.names))
    w = np.zeros((graph.n_nodes, n))
    w[to[to >= 0]] = solution.w[to >= 0]
    ends = to[old.edges]
    kept = (ends >= 0).all(axis=1)
    key = _keys(np.sort(ends[kept], axis=1), graph.n_nodes)
    sign = np.where(ends[kept, 0] < ends[kept, 1], 1.0, -1.0)[:, None]
    keys = _keys(graph.edges, graph.n_nodes)  # ascending, as edges are in lexicographic order
    place = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
    there = keys[place] == key if len(keys) else np.zeros(len(key), dtype=bool)
    u = np.zeros((graph.n_edges, n))
    u[place[there]] = (sign * solution.u[kept])[there]
    return replace(solution, w=w, u=u, graph=graph)


def _keys(edges: Array, n_nodes: int) -> Array:
    return edges[:, 0] * n_nodes + edges[:, 1]
