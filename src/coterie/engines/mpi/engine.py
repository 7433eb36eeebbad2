"""The engine of a rank: it holds its part, iterates on it, and proves with all others together."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from coterie.engines.base import Engine, Mode, Travel
from coterie.engines.mpi.agreement import digest, refuse_differences
from coterie.engines.mpi.assignment import assign
from coterie.engines.mpi.checkpoint import checkpoints
from coterie.engines.mpi.crew import crew
from coterie.engines.mpi.iteration import NumbaPart, NumpyPart
from coterie.engines.mpi.outline import Outline
from coterie.engines.mpi.part import Part
from coterie.engines.mpi.prover import PartProver
from coterie.kernels.forms import Form
from coterie.kernels.interruption import agree, in_lockstep
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class MpiEngine(Engine):
    """One of the ranks of a job. All of them are given the same problem, and do the same at the same time.

    Parameters
    ----------
    form : Form
        Of the kernels: what rank 0 says is used by all.
    """

    def __init__(self, form: Form = Form.NUMPY) -> None:
        self.crew = crew()
        self.now = Form(int(self.crew.of_first(np.array([form.value]))[0]))
        self._prover: PartProver | None = None

    @contextmanager
    def together(self, **given: Any) -> Iterator[None]:
        """Inside, all ranks see one clock, and end together; they must have been given the same."""
        with self.crew.ending_together(), in_lockstep(self.crew.clock), warnings.catch_warnings():
            if self.crew.rank:  # rank 0 says it for all
                warnings.simplefilter("ignore")
            kept = checkpoints()
            given["way of keeping checkpoints"] = None if kept is None else (kept.every, kept.resume)
            refuse_differences(self.crew, given)
            with self.crew.profile.phase("solving"):
                yield

    def prover(self, problem: BoundProblem) -> PartProver:
        """The prover of a problem: with it, the part of this rank."""
        if self._prover is None or self._prover.problem is not problem:
            self._prover = None  # what it holds is free from here on
            with self.crew.profile.phase("taking a part"):
                part = Part.of(problem, assign(problem, self.crew), self.crew)
            self._prover = PartProver(problem, part)
        return self._prover

    def hold(self, prover: PartProver) -> None:
        """Work on the part of a prover, whose problem nobody holds as a whole."""
        self._prover = prover

    def for_pairs(self) -> None:
        """There is none: pairs are solved one after the other."""

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        agree()
        self.part = self.prover(problem).part
        self.iteration: Engine = (NumpyPart if self.now is Form.NUMPY else NumbaPart)(self.part)
        here, duals = self.part.nodes_in(w), self.part.duals_in(u)
        self.kept = checkpoints()
        if self.kept is not None:
            name = problem.name if isinstance(problem, Outline) else digest(problem).hex()
            self.kept.begin(name, self.part, here, duals)
        self.iteration.setup(self.part.problem, here, duals)

    def set_steps(self, tau: Array, sigma: Array) -> None:
        self.iteration.set_steps(self.part.nodes_in(tau), self.part.edges_in(sigma))

    def advance(self, n_iter: int, mode: Mode) -> float:
        if self.kept is not None and self.kept.is_due():
            self.kept.write(self.part, *self.iteration.point())
        with self.crew.profile.phase("iterating"):
            residual = self.iteration.advance(n_iter, mode)
            agree()
        self.crew.profile.iterations += n_iter
        if self.kept is not None:
            self.kept.done += n_iter
        return residual

    def restart(self) -> Travel:
        return self.iteration.restart()

    def point(self) -> tuple[Array, Array]:
        return self.iteration.point()
