"""A component that all nodes share: one node without labels, the hub, that is joined to every other.

Its weights w₀ are drawn to all nodes', and every node's to w₀, so that w_i = w₀ + v_i with a penalty on v_i beside that
on the edges of the graph. The hub is a node of the problem like any other: solver and certificate know nothing of it.
It is the last node, and stays out of what a model says of its nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph, LocalDatasets
from coterie.problem.arrays import Array
from coterie.problem.ids import as_ids, look_up, numbering

HUB = "shared by all nodes"
"""What the hub is called in `solution_.graph`."""


STRENGTH = 0.1
"""Of an edge to the hub, in mean edge weights of the graph: little beside neighbours that are alike, and where there
are no edges λ alone says how strong it is (docs/decisions/0032-what-statisticians-expect.md)."""


def hub_weights(graph: EmpiricalGraph, data: LocalDatasets, one: float) -> Array:
    """The weights of the edges to the hub: by rows, as those of nodes in the objective; a node without any has one."""
    rows, total = data.labelled, np.full(graph.n_nodes, one)
    total[rows.M] = np.bincount(np.repeat(np.arange(len(rows.M)), rows.m), rows.weights)
    unit = float(graph.weights.mean()) if graph.n_edges else 1.0
    return STRENGTH * unit * total / total[rows.M].mean()


def hub_weight(model: Any, m: int) -> float:
    """The weight of the edge from the hub to a new node of m rows, by those of the nodes that there are."""
    graph, known = model.solution_.graph, model.n_labelled_ > 0
    spokes = graph.weights[~inner_edges(graph)]
    return float(spokes[known].sum() / model.n_labelled_[known].sum() * max(m, 1))


def with_hub(graph: EmpiricalGraph, data: LocalDatasets, one: float = 1.0) -> tuple[EmpiricalGraph, LocalDatasets]:
    """Join every node to one more node, which has no rows; `one` is what a row weighs."""
    V = graph.n_nodes
    if HUB in graph.names:
        raise ValueError(f"a node is called {HUB!r}, as the shared component is; give it another name")
    spokes = np.column_stack([np.arange(V), np.full(V, V)])
    edges, A = np.concatenate([graph.edges, spokes]), np.concatenate([graph.weights, hub_weights(graph, data, one)])
    ids = [*graph.names, HUB]
    return EmpiricalGraph.from_edges(edges, A, n_nodes=V + 1, ids=ids), replace(data, n_nodes=V + 1)


def inner_edges(graph: EmpiricalGraph) -> Array:
    """Which edges of a graph with a hub do not lead to it."""
    return np.asarray(graph.edges[:, 1] < graph.n_nodes - 1)


def without_hub(graph: EmpiricalGraph) -> EmpiricalGraph:
    """The graph that `with_hub` was given."""
    V, inner = graph.n_nodes - 1, inner_edges(graph)
    names = list(graph.names)[:V]
    ids = None if names == list(range(V)) else names
    return EmpiricalGraph.from_edges(graph.edges[inner], graph.weights[inner], n_nodes=V, ids=ids)


def numbers_or_hub(graph: EmpiricalGraph, ids: Any) -> NDArray[np.int64]:
    """The numbers of nodes of a graph with a hub; the hub's for those that are not in it."""
    found = look_up(as_ids(ids), numbering(graph.names))
    return np.where(found < 0, graph.n_nodes - 1, found)
