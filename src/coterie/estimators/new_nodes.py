"""Nodes that join later: a model from the neighbours' models, which stay as they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.estimators.between import between
from coterie.estimators.carry import carried
from coterie.problem import EmpiricalGraph, Problem
from coterie.problem.arrays import Array, as_floats
from coterie.problem.ids import numbering
from coterie.problem.penalties import as_penalty
from coterie.solver import Solution

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel


class LocalModel(NamedTuple):
    """The model of one node."""

    coef: Array
    intercept: float


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


def weights_for(model: NetworkedModel, neighbours: Any, X: Any, y: Any) -> LocalModel:
    """See :meth:`NetworkedModel.weights_for`."""
    w = model.scaling_.weights_back(_weights_for(model, neighbours, X, y)[None])[0]
    return LocalModel(w[: model.n_features_in_], float(w[-1]) if model.fit_intercept else 0.0)


def _weights_for(model: NetworkedModel, neighbours: Any, X: Any = None, y: Any = None) -> Array:
    """The same in the units of the problem that was solved."""
    joined = as_neighbours(neighbours)
    if not joined:
        raise ValueError("a node without neighbours has no model but its own; fit one to its rows")
    at, A = model.solution_.w[model.graph_.numbers(list(joined))], np.array(list(joined.values()))
    f = None if X is None else model._loss_of_one(X, y)
    if f is not None and model.lam_ == 0:  # the neighbours have no say
        return f.pooled(np.zeros(1, dtype=np.int64), 1)[0][0]
    return between(at, A if f is None else model.lam_ * A, as_penalty(model.penalty), f)


def with_nodes(
    model: NetworkedModel, neighbours: Mapping[Hashable, Any], X: Any, y: Any, groups: Any
) -> tuple[Problem, Solution]:
    """Return the problem with new nodes, and rows if X is given, and where to start to solve it."""
    if not isinstance(neighbours, Mapping):
        raise TypeError(f"add_nodes takes a dict of new id → its neighbours, got {neighbours!r}")
    if not hasattr(model, "problem_"):
        raise ValueError("a loaded model does not have its training rows; fit again with warm_start=True")
    graph = grown(model.graph_, neighbours)
    data = replace(model.problem_.data, n_nodes=graph.n_nodes)
    if X is not None:
        data = data.joined_with(model._rows(X, y, groups, None, graph, first=False)[0])
    start, old = carried(model.solution_, graph), set(model.graph_.names)
    for new, joined in neighbours.items():
        if known := {name: weight for name, weight in as_neighbours(joined).items() if name in old}:
            start.w[graph.numbers([new])] = _weights_for(model, known)
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
