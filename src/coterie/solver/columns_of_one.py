"""Strengths by column as units of columns: a problem with strengths of one, whose solution is a good start.

With weights v_k = t_k w_k of columns x_k/t_k, t_k = s_k (√s_k for squared variation), all strengths are one, so that
compiled kernels and second-order methods solve it. Columns that no edge counts have long steps there. Its columns are
rounded: what is proven of it is not proven of the problem, which goes on from there, and mostly is at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from coterie.engines.base import Engine
from coterie.kernels.forms import Form
from coterie.kernels.interruption import interruptible
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses
from coterie.problem.reuse import reused
from coterie.solver.solution import Record, Solution, Status

FREE = 0.01  # t of columns that no edge counts: 10⁴ times the step, as nothing else holds them back (decision 30)
CLOSER = 0.9  # of the tolerance, so that what is proven a second time is within it
SOONER = 0.8  # of the iterations and of the time: strengths of very different sizes can make it the harder problem


Telling = Callable[[Record], None] | None


class Asked(NamedTuple):
    """What is asked of a solve."""

    tol: float
    max_iter: int
    limit: float
    callback: Telling
    start: Solution | None
    engine: str | Engine
    threads: int | None
    balance: float | None = None


Solve = Callable[[BoundProblem, Asked], tuple[Solution, Form]]


@dataclass(frozen=True, eq=False)
class ColumnsOfOne:
    """The problem with strengths of one, and t."""

    problem: BoundProblem
    t: Array

    @classmethod
    def of(cls, problem: BoundProblem) -> ColumnsOfOne | None:
        """None where there are no strengths but 1 and ∞, or the losses do not know how."""
        penalty = problem.by_column
        if penalty is None:
            return None
        t = np.where(penalty.free, FREE, penalty.unit)
        f = None if (t == 1).all() else reused(_in_columns, problem.f, t)
        return None if f is None else cls(replace(problem, f=f, penalty=penalty.of_one), t)

    def first(self, solved: Solve, problem: BoundProblem, asked: Asked) -> tuple[Solution, Form]:
        """Solve this one, then go on with `problem`; mostly there is nothing left to do."""
        start = asked.start and replace(asked.start, w=asked.start.w * self.t, u=asked.start.u / self.t)
        with interruptible():
            sooner = asked._replace(
                tol=CLOSER * asked.tol,
                max_iter=int(SOONER * asked.max_iter),
                limit=SOONER * asked.limit,
                start=start,
                balance=None,
            )
            found, _ = solved(self.problem, sooner)
        first = replace(found, w=found.w / self.t, u=found.u * self.t)
        interrupted = first.status is Status.INTERRUPTED
        rest, form = solved(
            problem,
            Asked(
                asked.tol,
                0 if interrupted else asked.max_iter - first.n_iter,
                asked.limit - first.seconds,
                _telling(asked.callback, first),
                first,
                self._engine_of_the_rest(problem, asked.engine),
                None,
            ),
        )
        whole = replace(
            rest,
            n_iter=first.n_iter + rest.n_iter,
            seconds=first.seconds + rest.seconds,
            history=first.history + tuple(_later(record, first) for record in rest.history),
            status=Status.INTERRUPTED if interrupted and rest.status is Status.ITERATION_LIMIT else rest.status,
        )
        return whole, form

    @staticmethod
    def _engine_of_the_rest(problem: BoundProblem, engine: str | Engine) -> str:
        """The engine that goes on: the one that was asked for, if it knows strengths."""
        if engine == "mpi" or (engine in ("auto", "numba") and problem.penalty.edge_kernel is not None):
            return str(engine)
        return "numpy"


def _in_columns(f: LocalLosses, t: Array) -> LocalLosses | None:
    """The losses of columns x_k/t_k; a path has them once, as what is kept for all its λ is known by its losses."""
    return f.in_columns(t)


def _telling(callback: Telling, first: Solution) -> Telling:
    """A callback that is told of what goes on from a first solution."""
    return None if callback is None else lambda record: callback(_later(record, first))


def _later(record: Record, first: Solution) -> Record:
    """A record of what goes on from a first solution."""
    return record._replace(n_iter=record.n_iter + first.n_iter, seconds=record.seconds + first.seconds)
