"""The default method: epochs, balance, restarts. It knows engines only by their contract."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import isfinite

import numpy as np

from coterie.engines.base import Engine, TooRough
from coterie.kernels.blas import one_thread
from coterie.kernels.interruption import (
    TimeUp,
    allow,
    check,
    interruptible,
    seconds_left,
    seconds_worked,
    time_is_up,
)
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.solver.balance import Steps, ascends, suit_pairs
from coterie.solver.certificate import BATCH, MOST
from coterie.solver.epochs import BLOCK, Epoch, Race
from coterie.solver.incumbent import Incumbent, unproven
from coterie.solver.pace import LOOSE, may_be_rough
from coterie.solver.solution import Record, Solution, Status
from coterie.solver.whole import interior
from coterie.solver.whole.joint_system import is_small
from coterie.solver.whole.polish import is_large

ROUGH = 1e-5  # of the largest residual: single precision has no more to give
EXHAUSTED = 1e-12  # a residual this much smaller than the largest has no more to give
SOONER = 2 / 3  # of the expected iterations have passed when the gap is first looked at …
FAR = 60  # iterations after which a large problem is first looked at, where a tight gap is asked for
LATEST = 120  # … but it is after this many, as a warm start may be much better than expected
CRAWLS = 200  # iterations without success, after which a small problem is worth second-order steps …
PATIENT = 1_000  # … or after so many, where the end seems near, or was from the start …
AGAIN = 2  # … and once more after so many times as many, from weights that are better by then
FOREST = 240  # iterations after which a problem on a forest is finished by interior points (decision 13)
ROUND_COSTS = 16  # iterations, about; the certificate may take half as long as the iterations since the last one
LAST_SECONDS = 0.1  # for the last certificate, after a limit or Ctrl-C


@one_thread()
@interruptible()
def drive(
    problem: BoundProblem,
    engine: Engine,
    w: Array,
    u: Array,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[Record], None] | None,
    expected: int = 0,
    omega: float | None = None,
) -> Solution:
    """Iterate from (w, u) until the certified gap is at most tol, or a limit is reached: that of iterations, or time.

    `expected` is how many iterations it may take: certificates cost more than iterations, and the first one after
    the start waits until it has a chance. `omega` is the balance of the first steps, where it is known.
    """
    try:
        prover = engine.prover(problem)
    except TimeUp:
        return unproven(problem, w, u)
    incumbent = Incumbent(prover, tol, prover.scatter(w))
    if not isfinite(incumbent.objective):  # weights from elsewhere, too large for this problem
        w = np.zeros_like(w)
        incumbent = Incumbent(prover, tol, prover.scatter(w))
    run: Run | None = None
    try:
        incumbent.begin(prover.scatter(u, edges=True), hurry=max_iter > 0 and callback is None)
        if incumbent.reached() or max_iter == 0:
            return incumbent.solution(incumbent.reached() or Status.ITERATION_LIMIT, 0)
        check()
        new = Run(problem, engine, incumbent, max_iter, callback, expected)
        new.begin(w, u)
        if omega is not None:
            new.steps.omega = omega
        run = new
        return run.to_its_end()
    except (KeyboardInterrupt, TimeUp) as reason:
        ended = Status.TIME_LIMIT if isinstance(reason, TimeUp) else Status.INTERRUPTED
        return incumbent.solution(ended, 0) if run is None else run.cut_short(ended)


class Run:
    """One solve: what has been done, and when to look at the gap next."""

    def __init__(
        self,
        problem: BoundProblem,
        engine: Engine,
        incumbent: Incumbent,
        max_iter: int,
        callback: Callable[[Record], None] | None,
        expected: int,
    ) -> None:
        self.problem, self.incumbent, self.max_iter, self.callback = problem, incumbent, max_iter, callback
        self.plain, self.pairs = engine, engine.for_pairs() if suit_pairs(problem) else None
        rough = may_be_rough(problem, incumbent.tol) and not ascends(problem)
        self.rough = engine.rougher(problem) if rough else None
        self.engine = next(one for one in (self.pairs, self.rough, engine) if one is not None)
        here = incumbent.prover.arrays is not None
        self.small, self.forest = here and is_small(problem), here and interior.applies(problem)
        self.second_order = (PATIENT if incumbent.warm else CRAWLS) if self.small else max_iter + 1
        self.done, self.checked = 0, 0
        self.look = max(self._first_look(here), min(int(SOONER * expected), LATEST))
        self.began, self.unwatched = seconds_worked(), engine.unwatched
        self.largest, self.took = 0.0, 0.0  # the largest residual, and the seconds of the last certificate

    def _first_look(self, here: bool) -> int:
        """When the gap is first looked at, if nothing is expected."""
        far = self.incumbent.tol < LOOSE and not self.incumbent.warm
        return FAR if far and here and is_large(self.problem) else BLOCK

    def begin(self, w: Array, u: Array) -> None:
        """Set the engine up, and choose steps."""
        self.engine.setup(self.problem, w, u)
        check()
        if self.engine is self.pairs:
            self.steps = Steps.in_pairs()
        elif self.engine.steps is not None:
            self.steps = self.engine.steps()
        else:
            self.steps = Steps.of(self.problem, self.engine.lanczos)
        self.race = Race(*self.steps.modes)

    def to_its_end(self) -> Solution:
        """Epoch after epoch."""
        while (ended := self._epoch()) is None:
            pass
        return self.incumbent.solution(ended, self.done)

    def cut_short(self, ended: Status) -> Solution:
        """What is best after a time limit or Ctrl-C; a second Ctrl-C skips the last certificate."""
        allow(LAST_SECONDS + min(seconds_left(), 0.0))
        with suppress(KeyboardInterrupt, TimeUp):
            check()
            self.incumbent.improve(*self.engine.point(), self.done, self._last_rounds)
        return self.incumbent.solution(self.incumbent.reached() or ended, self.done)

    def _epoch(self) -> Status | None:
        """Iterate until the next restart; return how the solve ends, if it does."""
        if self.forest and self.done >= FOREST:
            self._finish_forest()
            if reached := self.incumbent.reached():
                return reached
        self.engine.set_steps(self.steps.tau, self.steps.sigma)
        epoch, travel = self.race.next_epoch(), None
        while travel is None:
            try:
                self._advance(epoch)
            except TooRough:
                self._go_on_plainly()
                return None
            if epoch.is_over(self.done) or (self.forest and self.done >= FOREST):
                travel = self.engine.restart()
            if ended := self._look_if_due(epoch.last):
                return ended
        if self.engine is not self.plain and (epoch.went_wrong or self._is_too_rough(epoch)):
            self._go_on_plainly()
            return None
        if epoch.went_wrong:
            self.steps.be_careful()
        self.race.report(epoch)
        self.steps.rebalance(travel)
        return None

    def _go_on_plainly(self) -> None:
        """Let the engine that was given go on from this point, with steps of its own or, where it can, with these."""
        w, u = self.engine.point()
        omega, self.engine = None if self.engine is self.pairs else self.steps.omega, self.plain
        self.begin(w, u)
        self.steps.omega = self.steps.omega if omega is None else omega

    def _is_too_rough(self, epoch: Epoch) -> bool:
        """Whether a rougher engine has no more to give, or has been at it for long and is far from the end."""
        late = self.done >= PATIENT and self.incumbent.crawls
        return self.engine is self.rough and (late or epoch.last <= ROUGH * self.largest)

    def _advance(self, epoch: Epoch) -> None:
        """One block of iterations."""
        block = min(BLOCK, self.max_iter - self.done)
        epoch.note(block, self.engine.advance(block, epoch.mode))
        check()
        self.done += block
        self.largest = max(self.largest, epoch.last)

    def _look_if_due(self, residual: float) -> Status | None:
        """Compute the gap where it is time to, or there is no more time; return how the solve ends, if it does."""
        end = self._limit(residual)
        if self.done < self.look and end is None:
            return None
        began = seconds_worked()
        rounds = (self.done - self.checked) // ROUND_COSTS if end is None else self._last_rounds
        self._tell(rounds, hurry=end is None and began - self.began < self.unwatched)
        stalled = end is Status.STALLED and self.small
        if self.incumbent.reached() is None and (self._crawls() or stalled):
            self.incumbent.improve_by_newton(self.done)
            self.second_order = AGAIN * self.done
        self.checked, self.look, self.took = self.done, self.incumbent.next_check(BLOCK), seconds_worked() - began
        return self.incumbent.reached() or end

    def _crawls(self) -> bool:
        """Whether second-order steps are due: not where iterations are about to succeed."""
        return self.done >= self.second_order and (self.done >= PATIENT or self.incumbent.crawls)

    def _limit(self, residual: float) -> Status | None:
        """The limit that is reached, if one is."""
        if self.done >= self.max_iter:
            return Status.ITERATION_LIMIT
        if seconds_left() <= self.took:  # there is time for one more certificate, and no more
            return Status.TIME_LIMIT
        exhausted = residual <= EXHAUSTED * self.largest and self.engine is not self.rough
        if exhausted and (residual == 0 or self.incumbent.stuck):
            return Status.STALLED
        return None

    def _tell(self, rounds: int, hurry: bool = False) -> None:
        """Compute the gap, and tell."""
        self.incumbent.improve(*self.engine.point(), self.done, rounds, hurry and self.callback is None)
        if self.callback is not None:
            self.callback(self.incumbent.history[-1])

    def _finish_forest(self) -> None:
        """Let an interior-point method go on from the engine's weights, and the engine from there."""
        inside = interior.Interior(self.problem, self.engine.point()[0])
        self.done += inside.run(self.incumbent.goal, self.max_iter - self.done, time_is_up)
        self.engine.setup(self.problem, inside.w, inside.u)
        self.forest = False
        self._tell(self._last_rounds)

    @property
    def _last_rounds(self) -> int:
        """The last certificate may take as long as half the iterations did."""
        return min(MOST, max(BATCH, self.done // ROUND_COSTS))
