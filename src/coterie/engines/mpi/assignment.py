"""Which rank holds which node: equal work for all, and few edges between them."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.crew import Crew
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array

FEW_CUT, MANY = 0.03, 1_000_000  # of so many edges, few between ranges of nodes: no other assignment is looked for
WHOLE = 2**28  # what all nodes weigh together, for METIS
PLAIN = 4  # passes over its weights that a node costs beside its edges


def assign(problem: BoundProblem, crew: Crew) -> NDArray[np.int32]:
    """Return the rank of every node, which rank 0 decides."""
    of = np.zeros(problem.graph.n_nodes, dtype=np.int32)
    if crew.size > 1 and crew.rank == 0:
        of = best(problem.graph, work(problem), crew.size)
    return crew.of_first(of)


def work(problem: BoundProblem) -> Array:
    """About what each node costs in an iteration: its half of every edge, its weights, and its loss."""
    return work_of(problem.graph.degrees, problem.n_features, problem.M)


def work_of(degrees: NDArray[np.int64], n: int, labelled: NDArray[np.int64] | slice = slice(None)) -> Array:
    """The same where degrees are known, and which nodes have a loss: all, where that is not known."""
    cost = n * (degrees / 2 + PLAIN)
    cost[labelled] += n * n
    return cost


def best(graph: EmpiricalGraph, cost: Array, parts: int) -> NDArray[np.int32]:
    """Ranges of nodes, where these cut few edges; METIS's parts, where those cut fewer."""
    ranges = in_ranges(cost, parts)
    good = graph.n_edges > MANY and cut_part(graph, ranges) <= FEW_CUT
    if good or graph.n_edges == 0 or find_spec("pymetis") is None:
        return ranges
    metis = by_metis(graph, cost, parts)
    return metis if cut_part(graph, metis) < cut_part(graph, ranges) else ranges


def in_ranges(cost: Array, parts: int) -> NDArray[np.int32]:
    """One range of nodes, in their order, for each part."""
    until = np.cumsum(cost)
    middle = (until - 0.5 * cost) / until[-1]
    return np.minimum((middle * parts).astype(np.int32), parts - 1)


def by_metis(graph: EmpiricalGraph, cost: Array, parts: int) -> NDArray[np.int32]:
    """METIS's parts, with nodes weighted by what they cost."""
    import pymetis
    from scipy.sparse import coo_array

    i, j = graph.edges.T.astype(np.int32)
    V, ones = graph.n_nodes, np.ones(2 * len(i), dtype=np.int8)
    both = coo_array((ones, (np.r_[i, j], np.r_[j, i])), shape=(V, V)).tocsr()
    weights = np.maximum(cost * (WHOLE / cost.sum()), 1).astype(np.int32)
    rows = pymetis.CSRAdjacency(both.indptr.astype(np.int32), both.indices.astype(np.int32))
    _, of = pymetis.part_graph(parts, rows, vweights=weights)
    return np.asarray(of, dtype=np.int32)


def cut_part(graph: EmpiricalGraph, of: NDArray[np.int32]) -> float:
    """The part of the edges that join two parts."""
    return float((of[graph.edges[:, 0]] != of[graph.edges[:, 1]]).mean()) if graph.n_edges else 0.0
