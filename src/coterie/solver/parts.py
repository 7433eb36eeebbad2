"""Solve a problem of which every rank of an MPI job holds a part, and nobody the whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from coterie.engines.mpi.agreement import digest
from coterie.engines.mpi.clusters import PartClusters
from coterie.engines.mpi.components import Components
from coterie.engines.mpi.crew import Crew, crew
from coterie.engines.mpi.enclosure import PartEnclosure
from coterie.engines.mpi.engine import MpiEngine
from coterie.engines.mpi.outline import KnownRows, Outline, Sizes
from coterie.engines.mpi.part import Integers, OwnPart, Share, find
from coterie.engines.mpi.prover import PartProver
from coterie.kernels.choice import form_here, using
from coterie.kernels.forms import Form
from coterie.kernels.interruption import allow, interruptible
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import LocalLosses, Loss
from coterie.problem.penalties import Penalty
from coterie.problem.penalties.by_column import ByColumn
from coterie.solver.algorithm1 import initial
from coterie.solver.driver import drive
from coterie.solver.pace import Pace
from coterie.solver.part_steps import steps_of
from coterie.solver.solution import Record, Solution
from coterie.solver.units import Units, nearest_power, squares


@dataclass(frozen=True, eq=False)
class PartProblem:
    """What one rank has of a problem.

    Attributes
    ----------
    share : Share
        Of the graph.
    n_nodes, n_edges : int
        Of the whole network.
    rows : LabelledRows
        Of own nodes; M are places in `share.own`.
    loss, penalty, lam
        The same at all ranks.
    name : str
        What the whole problem is known by: a checkpoint of another name is not used.
    """

    share: Share
    n_nodes: int
    n_edges: int
    rows: LabelledRows
    loss: Loss
    penalty: Penalty
    lam: float
    name: str = ""

    @property
    def n_weights(self) -> int:
        return self.loss.n_weights(self.rows.X.shape[1])

    @property
    def about(self) -> tuple[Any, ...]:
        """What all ranks must agree on."""
        return self.loss, self.penalty, self.lam, self.n_nodes, self.n_edges, self.name


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


def joined(problem: PartProblem) -> OwnPart:
    """The part of this rank, joined up with those of others."""
    ranks = crew()
    _check(problem, ranks)
    with using(Form.NUMPY):  # what pays is known when the part is
        return OwnPart.joined(ranks, problem.share, problem.n_weights, partial(_stated, problem))


def take(engine: MpiEngine, prover: PartProver) -> None:
    """Let an engine work on the part of a prover."""
    engine.hold(prover)
    engine.steps = partial(steps_of, prover.part, prover.problem)  # type: ignore[attr-defined]


def _check(problem: PartProblem, ranks: Crew) -> None:
    """Refuse, at all ranks, what parts cannot be solved of."""
    if not problem.lam > 0:
        raise ValueError(f"lam must be above 0 where ranks hold parts, got {problem.lam!r}")
    if isinstance(problem.penalty, ByColumn):
        raise TypeError("ranks that hold parts know no strengths of columns: leave them out")
    if not ranks.any(len(problem.rows.M) > 0):
        raise ValueError("there is nothing to learn from: no rank has a labelled row")


def _stated(problem: PartProblem, nodes: Integers, own: int, graph: EmpiricalGraph) -> BoundProblem:
    """The problem of a part, in its own order of nodes."""
    which = find(problem.rows.M, find(problem.share.own, nodes[:own]))
    M = np.flatnonzero(which >= 0)
    f = _bound(problem.loss, problem.rows, which[M])
    if f.bounds is not None:
        raise TypeError("ranks that hold parts know no bounds on weights: leave lower, upper and positive out")
    return BoundProblem(graph, M, f, problem.n_weights, problem.penalty, problem.lam)


def _bound(loss: Loss, rows: LabelledRows, which: Integers) -> LocalLosses:
    """The losses of some nodes, of which there may be none."""
    if len(which):
        return loss.bind(rows.of_nodes(which))
    n, one = rows.X.shape[1], np.ones(1)
    nobody = LabelledRows(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), np.ones((1, n)), one, one)
    return loss.bind(nobody).of_nodes(which)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What of a part is the same for every λ.

    Attributes
    ----------
    problem : PartProblem
    part : OwnPart
        In the units of the user.
    components : Components
    known : KnownRows
        The rows that enclose minimisers.
    x, y : float
        Units of X and of y, which all ranks share.
    """

    problem: PartProblem
    part: OwnPart
    components: Components
    known: KnownRows
    x: float
    y: float

    @classmethod
    def of(cls, problem: PartProblem, part: OwnPart) -> Prepared:
        ranks, design = part.crew, part.problem.f.below
        assert design is not None
        x = _power_of_two(ranks, design.X)
        y = _power_of_two(ranks, design.y) if design.psi.scales else 1.0
        components = Components.found(part)
        rows = problem.rows.of_nodes(find(problem.rows.M, find(problem.share.own, part.nodes[part.problem.M])))
        return cls(problem, part, components, KnownRows.of(rows, part, components), x, y)

    def at(self, lam: float) -> tuple[OwnPart, Units, PartProver]:
        """The part at some λ in these units, and what proves."""
        problem, components, known, ranks = self.problem, self.components, self.known, self.part.crew
        stated, design = self.part.problem.at(lam), self.part.problem.f.below
        assert design is not None
        units = ranks.do(lambda: Units.given(stated, self.x, self.y), "measure its part")
        part = replace(self.part, problem=units.problem)
        part.problem.__dict__["undetermined"] = np.flatnonzero(components.of < 0)
        of_some = problem.loss.bind(known.rows)
        changed = of_some.in_units(self.x, self.y)
        constant = design.constant_loss / units.value if len(part.problem.M) else 0.0
        outline = Outline(
            Sizes.of(problem.n_nodes, problem.n_edges),
            part.own + np.arange(len(known.component)),
            of_some if changed is None else changed[0],
            part.problem.n_features,
            part.problem.penalty,
            part.problem.lam,
            digest((problem.name, problem.n_nodes, problem.n_edges, lam)).hex(),
            ranks.sum(constant),
            np.flatnonzero(components.of[: part.own] < 0),
        )
        enclosure = PartEnclosure(outline, part, components, known.component, known.complete)
        return part, units, PartProver(outline, part, enclosure)


def _power_of_two(ranks: Crew, x: Array) -> float:
    """As `units.power_of_two`, of the numbers of all ranks."""
    largest = ranks.most(float(np.abs(x).max(initial=0.0)))
    total, count = ranks.sums(*map(float, squares(x, largest)))
    return nearest_power(largest, total, count)


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
