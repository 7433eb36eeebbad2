"""Solve a problem of which every rank of an MPI job holds a part, and nobody the whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from coterie.engines.mpi.clusters import PartClusters
from coterie.engines.mpi.engine import MpiEngine
from coterie.engines.mpi.part import Integers, OwnPart
from coterie.engines.mpi.prover import PartProver
from coterie.kernels.choice import form_here, using
from coterie.kernels.interruption import allow, interruptible
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.solver.algorithm1 import initial
from coterie.solver.driver import drive
from coterie.solver.pace import Pace
from coterie.solver.part_problem import PartProblem, Prepared, joined
from coterie.solver.part_steps import steps_of
from coterie.solver.solution import Record, Solution

__all__ = ["PartProblem", "PartSolution", "solve_parts"]


@dataclass(frozen=True, eq=False)
class PartSolution:
    """What one rank has of a solution.

    Attributes
    ----------
    part : OwnPart
    solution : Solution
        w of own nodes, u of counted edges, and undetermined nodes among the own ones; the rest is about the whole.
    clusters : int
        How many clusters the whole network has.
    """

    part: OwnPart
    solution: Solution
    clusters: int

    @property
    def nodes(self) -> Integers:
        """What own nodes are called, in the order of w."""
        return self.part.nodes[: self.part.own]

    @property
    def pairs(self) -> Integers:
        """The ends i < j of counted edges, in the order of u."""
        return np.sort(self.part.nodes[self.part.counted_ends], axis=1)


@interruptible()
def solve_parts(
    problem: PartProblem,
    tol: float = 1e-6,
    *,
    max_iter: int = 100_000,
    time_limit: float | None = None,
    callback: Callable[[Record], None] | None = None,
) -> PartSolution:
    """Solve to a certified relative gap, together with all other ranks, which call it with their own parts."""
    began, part = time.perf_counter(), joined(problem)
    engine = MpiEngine(Pace(part.problem).form())
    limit = inf if time_limit is None else time_limit
    allow(limit)
    asked: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "time_limit": limit, "callback": callback is not None}
    with using(engine.now), engine.together(problem=problem.about, **asked):
        part, units, prover = Prepared.of(problem, part).at(problem.lam)
        take(engine, prover)
        w, u = initial(part.problem)
        solution = drive(prover.problem, engine, w, u, tol=tol, max_iter=max_iter, callback=units.telling(callback))
        solution = replace(units.back(solution), seconds=time.perf_counter() - began)
        Pace(part.problem).ended(solution.n_iter, form_here())
        return PartSolution(part, solution, _count_clusters(part, solution.w))


def take(engine: MpiEngine, prover: PartProver) -> None:
    """Let an engine work on the part of a prover."""
    engine.hold(prover)
    engine.steps = partial(steps_of, prover.part, prover.problem)


def _count_clusters(part: OwnPart, w: Array) -> int:
    """How many connected sets of nodes have the same weights."""
    here = np.zeros((part.problem.graph.n_nodes, w.shape[1]))
    here[: part.own] = w
    part.halo(here)
    i, j = part.problem.graph.edges.T
    alike = np.ones(len(i), dtype=bool)
    for column in here.T:  # one by one: all at once would be as large as the duals
        alike &= column[i] == column[j]
    graph = EmpiricalGraph(len(here), part.problem.graph.edges[alike], part.problem.graph.weights[alike])
    label = graph.components[:, None]
    return PartClusters(part, label, np.array([label.max() + 1]), part.single).total
