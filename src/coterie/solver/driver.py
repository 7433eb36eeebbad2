"""The default method: epochs, balance, restarts. It knows engines only by their contract."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from coterie.engines.base import Engine, Mode
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver.balance import Steps
from coterie.solver.certificate import Certificate, certify, relative_gap
from coterie.solver.solution import Record, Solution, Status

BLOCK = 20  # iterations between two looks at the residual
SHRINK = 0.2  # an epoch ends when the residual has shrunk by this factor
LONGEST = 0.25  # … or when it has lasted this part of all iterations
TRY_OTHER = 4  # every so many epochs, the slower mode gets a chance
CHECK_FACTOR = 1.25  # the gap is computed when this many times the iterations of the last check are done


@dataclass
class Best:
    """The best weights and the best bound so far; they need not come from the same iteration."""

    problem: Problem
    began: float
    w: Array
    proof: Certificate
    objective: float
    history: list[Record] = field(default_factory=list)

    @classmethod
    def at(cls, problem: Problem, began: float, w: Array, u: Array) -> Best:
        proof = certify(problem, w, u)
        best = cls(problem, began, w.copy(), proof, proof.objective)
        best._note(0)
        return best

    @property
    def gap(self) -> float:
        return relative_gap(self.problem, self.objective, self.proof.dual_bound)

    def improve(self, w: Array, u: Array, n_iter: int) -> None:
        proof = certify(self.problem, w, u)
        if proof.objective < self.objective:
            self.w, self.objective = w.copy(), proof.objective
        if proof.dual_bound > self.proof.dual_bound:
            self.proof = proof
        self._note(n_iter)

    def _note(self, n_iter: int) -> None:
        seconds = time.perf_counter() - self.began
        self.history.append(Record(n_iter, self.objective, self.proof.dual_bound, self.gap, seconds))

    def solution(self, status: Status, n_iter: int) -> Solution:
        return Solution(
            w=self.w,
            u=self.proof.u,
            objective=self.objective,
            dual_bound=self.proof.dual_bound,
            gap=self.gap,
            unconditional=self.proof.unconditional,
            condition=self.proof.condition,
            status=status,
            n_iter=n_iter,
            seconds=time.perf_counter() - self.began,
            history=tuple(self.history),
            undetermined=self.problem.undetermined,
        )


class Race:
    """Chooses between the two modes by the rate at which each has shrunk the residual."""

    def __init__(self) -> None:
        self.rates: dict[Mode, float] = {}
        self.epochs = 0

    def choose(self) -> Mode:
        for mode in Mode:
            if mode not in self.rates:
                return mode
        faster = max(self.rates, key=lambda mode: self.rates[mode])
        slower = next(mode for mode in Mode if mode is not faster)
        return slower if self.epochs % TRY_OTHER == 0 else faster

    def report(self, mode: Mode, first: float, last: float, length: int) -> None:
        self.rates[mode] = float(np.log(first / last)) / length if last > 0 else np.inf
        self.epochs += 1


def drive(
    problem: Problem,
    engine: Engine,
    w: Array,
    u: Array,
    *,
    tol: float,
    max_iter: int,
    time_limit: float | None,
    callback: Callable[[Record], None] | None,
) -> Solution:
    """Iterate from (w, u) until the certified gap is at most tol, or a limit is reached."""
    best = Best.at(problem, time.perf_counter(), w, u)
    steps, race = Steps.of(problem), Race()
    engine.setup(problem, w, u)
    done, checked = 0, 0
    try:
        while True:
            engine.set_steps(steps.tau, steps.sigma)
            mode, epoch, first, before = race.choose(), 0, np.inf, np.inf
            while True:
                status = _verdict(best, done, tol, max_iter, time_limit)
                if status is not None:
                    return best.solution(status, done)
                r = engine.advance(BLOCK, mode)
                done, epoch = done + BLOCK, epoch + BLOCK
                first = r if first == np.inf else first
                if done >= max(CHECK_FACTOR * checked, checked + 2 * BLOCK) or r == 0:
                    best.improve(*engine.point(), done)
                    checked = done
                    if callback is not None:
                        callback(best.history[-1])
                if (
                    r <= SHRINK * first
                    or epoch >= max(2 * BLOCK, LONGEST * done)
                    or (mode is Mode.HALPERN and r <= 0.5 * first and r > before)
                ):
                    break
                before = r
            race.report(mode, first, r, epoch)
            steps.rebalance(engine.restart())
    except KeyboardInterrupt:
        return best.solution(Status.INTERRUPTED, done)


def _verdict(best: Best, done: int, tol: float, max_iter: int, time_limit: float | None) -> Status | None:
    if best.gap <= tol:
        return Status.OPTIMAL
    if done >= max_iter:
        return Status.ITERATION_LIMIT
    if time_limit is not None and time.perf_counter() - best.began >= time_limit:
        return Status.TIME_LIMIT
    return None
