"""A problem of which every rank of an MPI job holds a part, and nobody the whole: stated, and prepared for any λ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie.engines.mpi.agreement import digest
from coterie.engines.mpi.components import Components
from coterie.engines.mpi.crew import Crew, crew
from coterie.engines.mpi.enclosure import PartEnclosure
from coterie.engines.mpi.outline import KnownRows, Outline, Sizes
from coterie.engines.mpi.part import BoundPart, Integers, OwnPart, Share, find
from coterie.engines.mpi.prover import PartProver
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem, EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import LocalLosses, Loss
from coterie.problem.penalties import Penalty
from coterie.problem.penalties.by_column import ByColumn
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
        part = replace(self.part, problem=BoundPart.of(units.problem, np.flatnonzero(components.of < 0)))
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
            np.flatnonzero(components.of[: part.own] < 0),
            digest((problem.name, problem.n_nodes, problem.n_edges, lam)).hex(),
            ranks.sum(constant),
        )
        enclosure = PartEnclosure(outline, part, components, known.component, known.complete)
        return part, units, PartProver(outline, part, enclosure)


def joined(problem: PartProblem) -> OwnPart:
    """The part of this rank, joined up with those of others."""
    ranks = crew()
    _check(problem, ranks)
    with using(Form.NUMPY), ranks.profile.phase("taking a part"):  # what pays is known when the part is
        return OwnPart.joined(ranks, problem.share, problem.n_weights, partial(_stated, problem))


def _check(problem: PartProblem, ranks: Crew) -> None:
    """Refuse, at all ranks, what parts cannot be solved of."""
    if not problem.lam > 0:
        raise ValueError(f"lam must be above 0 where ranks hold parts, got {problem.lam!r}")
    if isinstance(problem.penalty, ByColumn) and problem.penalty.free.any():
        raise TypeError("ranks that hold parts know no strengths of 0: leave them out")
    if not ranks.any(len(problem.rows.M) > 0):
        raise ValueError("there is nothing to learn from: no rank has a labelled row")


def _stated(problem: PartProblem, nodes: Integers, own: int, graph: EmpiricalGraph) -> BoundProblem:
    """The problem of a part, in its own order of nodes."""
    which = find(problem.rows.M, find(problem.share.own, nodes[:own]))
    M = np.flatnonzero(which >= 0)
    f = _bound(problem.loss, problem.rows, which[M])
    return BoundProblem(graph, M, f, problem.n_weights, problem.penalty, problem.lam)


def _bound(loss: Loss, rows: LabelledRows, which: Integers) -> LocalLosses:
    """The losses of some nodes, of which there may be none."""
    if len(which):
        return loss.bind(rows.of_nodes(which))
    n, one = rows.X.shape[1], np.ones(1)
    nobody = LabelledRows(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), np.ones((1, n)), one, one)
    return loss.bind(nobody).of_nodes(which)


def _power_of_two(ranks: Crew, x: Array) -> float:
    """As `units.power_of_two`, of the numbers of all ranks."""
    largest = ranks.most(float(np.abs(x).max(initial=0.0)))
    total, count = ranks.sums(*map(float, squares(x, largest)))
    return nearest_power(largest, total, count)
