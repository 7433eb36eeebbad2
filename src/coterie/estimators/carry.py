"""A solution carried over to a graph that has changed, to start from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.ids import look_up, numbering
from coterie.solver import Solution


def carried(solution: Solution, graph: EmpiricalGraph) -> Solution:
    """Return weights and duals for `graph`: the old ones for nodes and edges that were there, else zero."""
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
