"""What the constructor of a model is given, as the solver wants it."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.penalties import GroupTotalVariation, Penalty, SquaredVariation, TotalVariation

PENALTIES: dict[str, Penalty] = {
    "l1": TotalVariation(),
    "l2": GroupTotalVariation(),
    "squared": SquaredVariation(),
}


def as_graph(graph: Any, groups: Any) -> EmpiricalGraph:
    """Return the graph to learn on; without any, the single node that all rows then belong to."""
    if graph is not None:
        return EmpiricalGraph.from_any(graph)
    if groups is not None:
        raise ValueError("groups says which node each row belongs to, but there is no graph; give graph= to the model")
    return EmpiricalGraph.from_edges([], n_nodes=1)


def as_penalty(penalty: str | Penalty) -> Penalty:
    """Return the penalty of that name."""
    if isinstance(penalty, str) and penalty not in PENALTIES:
        raise ValueError(f"there is no penalty {penalty!r}; choose one of {', '.join(PENALTIES)}")
    return PENALTIES[penalty] if isinstance(penalty, str) else penalty


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
