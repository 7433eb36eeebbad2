"""The graph that a model is given, as the solver wants it, and its nodes by their ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array


def as_graph(graph: Any, groups: Any) -> EmpiricalGraph:
    """Return the graph to learn on; without any, the single node that all rows then belong to."""
    if graph is not None:
        return EmpiricalGraph.from_any(graph)
    if groups is not None:
        raise ValueError("groups says which node each row belongs to, but there is no graph; give graph= to the model")
    return EmpiricalGraph.from_edges([], n_nodes=1)


def node_ids(graph: EmpiricalGraph) -> Array:
    """The ids of the nodes as an array: of numbers, of strings, or of objects where they are mixed."""
    if graph.ids is None:
        return np.arange(graph.n_nodes)
    kinds = {type(name) for name in graph.ids}
    plain = len(kinds) == 1 and kinds <= {int, str, float}
    if plain:
        return np.array(graph.ids)
    ids = np.empty(graph.n_nodes, dtype=object)
    ids[:] = graph.ids
    return ids
