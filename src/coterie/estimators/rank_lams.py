"""The λ to try where every rank of an MPI job holds a part: evenly spaced below the largest useful one."""

from __future__ import annotations

import numpy as np

from coterie.engines.mpi.components import Components
from coterie.engines.mpi.crew import crew
from coterie.engines.mpi.outline import KnownRows
from coterie.engines.mpi.part import Integers, OwnPart, find
from coterie.io.errors import TooLargeError
from coterie.io.memory import in_words, memory_available
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.largest_lam import small_flow
from coterie.problem.penalties import GroupTotalVariation, SquaredVariation
from coterie.problem.penalties.by_column import without_strengths
from coterie.solver.part_problem import PartProblem, joined
from coterie.solver.path import below, hardly_apart

EDGE_BYTES = 200  # an edge, at most, at rank 0: its ends, weight and one column of a flow


def rank_lam_grid(problem: PartProblem, n_lams: int, smallest: float) -> list[float]:
    """As `lam_grid`, from what the rows that all ranks know demand of the edges, which rank 0 is told.

    Where these are not all rows, demands are taken to be as many times as large as there are more rows.
    """
    ranks, part = crew(), joined(problem)
    squared = isinstance(without_strengths(problem.penalty, problem.n_weights)[0], SquaredVariation)
    ranks.do(lambda: None if ranks.rank else _refuse_many(problem.n_edges), "find the largest useful lam")
    components = Components.found(part)
    rows = problem.rows.of_nodes(find(problem.rows.M, find(problem.share.own, part.nodes[part.problem.M])))
    known = KnownRows.of(rows, part, components)
    more = ranks.sum(len(rows.y)) / len(known.rows.y)
    pairs, weights = _edges_at_first(part)

    def largest() -> float:
        if ranks.rank:
            return 0.0
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        graph = EmpiricalGraph(problem.n_nodes, pairs[order], weights[order])
        f = problem.loss.bind(known.rows)
        _, p = f.pooled(known.component, len(components.sizes))
        flow = _strength_needed(problem, graph, known.nodes, -more * p)
        if squared:
            return hardly_apart(flow, f.pooled(np.zeros_like(known.component), 1)[0][0])
        return flow

    found = float(ranks.of_first(np.array([ranks.do(largest, "find the largest useful lam")]))[0])
    if not found > 0:
        raise ValueError("labels make no demand on the edges, so that every lam gives the same models: give --lam 1")
    return below(found, n_lams, smallest**2 if squared else smallest)


def _edges_at_first(part: OwnPart) -> tuple[Integers, Array]:
    """All edges and their weights, at rank 0."""
    ranks, counts = part.crew, part.crew.for_first(part.counted)
    pairs = np.sort(part.nodes[part.counted_ends], axis=1)
    weights = part.problem.graph.weights[: part.counted]
    return ranks.swapped(pairs, counts)[0], ranks.swapped(weights, counts)[0]


def _strength_needed(problem: PartProblem, graph: EmpiricalGraph, nodes: Integers, p: Array) -> float:
    """The λ under which a small flow meets these demands, found one column at a time: all would be a whole dual."""
    plain, strength = without_strengths(problem.penalty, p.shape[1])
    size, together = np.zeros(graph.n_edges), isinstance(plain, GroupTotalVariation)
    for column, s in zip(p.T, strength, strict=True):
        if not column.any() or np.isinf(s):  # nodes that are equal anyway demand nothing
            continue
        demand = np.zeros((graph.n_nodes, 1))
        demand[nodes, 0] = column
        u = np.abs(small_flow(graph, demand, lambda u: float((np.abs(u[:, 0]) / graph.weights).max()))[:, 0]) / s
        size = np.hypot(size, u) if together else np.maximum(size, u)
    return float((size / graph.weights).max(initial=0.0))


def _refuse_many(n_edges: int) -> None:
    needed, there = EDGE_BYTES * n_edges, memory_available()
    if needed > there:
        raise TooLargeError(
            f"it is told all {n_edges:,} edges for that, which takes {in_words(needed)}, and {in_words(there)} are "
            "available; give a number for --lam"
        )
