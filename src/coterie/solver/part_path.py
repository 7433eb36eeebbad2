"""A path of λ of a problem of which every rank of an MPI job holds a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coterie.engines.mpi.engine import MpiEngine
from coterie.engines.mpi.part import Integers, OwnPart
from coterie.kernels.choice import form_here, using
from coterie.kernels.interruption import interruptible
from coterie.problem.arrays import Array
from coterie.solver.algorithm1 import initial
from coterie.solver.driver import drive
from coterie.solver.pace import Pace, expecting
from coterie.solver.part_problem import PartProblem, Prepared, joined
from coterie.solver.parts import take
from coterie.solver.path import FIRST
from coterie.solver.solution import Solution, Status


@dataclass(frozen=True, eq=False)
class PartPath:
    """What one rank has of a path.

    Attributes
    ----------
    nodes : array of int
        What own nodes are called.
    weights : list of arrays
        Of own nodes, for each λ.
    gaps : list of float
    undetermined : array of int
        Places of own nodes that no label reaches.
    """

    nodes: Integers
    weights: list[Array]
    gaps: list[float]
    undetermined: Integers


@interruptible()
def solve_parts_path(
    problem: PartProblem,
    lams: Sequence[float],
    tol: float,
    *,
    max_iter: int = 100_000,
    progress: Callable[[float, float], None] | None = None,
) -> PartPath:
    """Solve for descending λ, from the last one up, each from the one before, together with all other ranks.

    The first one is solved to 1e-4 at least: others start from it. Raises KeyboardInterrupt, at all ranks, where
    Ctrl-C ends a solve.
    """
    part = joined(problem)
    with expecting(len(lams)):
        engine = MpiEngine(Pace(part.problem).form())
    solved: dict[int, Solution] = {}
    last = None
    asked = {"lams": list(lams), "tol": tol, "max_iter": max_iter}
    with using(engine.now), engine.together(problem=problem.about, **asked):
        prepared = Prepared.of(problem, part)
        for k in reversed(range(len(lams))):
            here, units, prover = prepared.at(lams[k])
            take(engine, prover)
            w, u = initial(here.problem) if last is None else units.into(*_from(here, last))
            ended = drive(
                prover.problem,
                engine,
                w,
                u,
                tol=min(tol, FIRST) if last is None else tol,
                max_iter=max_iter,
                callback=None,
                expected=last.n_iter if last else 0,
            )
            solved[k] = last = units.back(ended)
            Pace(here.problem).ended(last.n_iter, form_here())
            if last.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            if progress is not None:
                progress(lams[k], last.gap)
    found = [solved[k] for k in range(len(lams))]
    weights, gaps = [each.w for each in found], [each.gap for each in found]
    return PartPath(part.nodes[: part.own], weights, gaps, found[-1].undetermined)


def _from(part: OwnPart, last: Solution) -> tuple[Array, Array]:
    """Weights and duals of a part, halo and all, from a solution at a smaller λ, whose duals are feasible here."""
    w = np.zeros((part.problem.graph.n_nodes, last.w.shape[1]))
    u = np.zeros((part.problem.graph.n_edges, last.u.shape[1]))
    w[: part.own], u[: part.counted] = last.w, last.u * part.sign[: part.counted]
    part.halo(w)
    part.cut(u)
    return w, u
