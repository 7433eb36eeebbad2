"""The default method: epochs, balance, restarts. It knows engines only by their contract."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from coterie.engines.base import Engine, Mode
from coterie.kernels.blas import one_thread
from coterie.kernels.interruption import TimeUp, allow, check, interruptible, seconds_left, time_is_up
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver import interior
from coterie.solver.balance import Steps, suit_pairs
from coterie.solver.best import Best
from coterie.solver.certificate import BATCH, MOST
from coterie.solver.joint_system import is_small
from coterie.solver.solution import Record, Solution, Status

BLOCK = 20  # iterations between two looks at the residual
SHRINK = 0.2  # an epoch ends when the residual has shrunk by this factor
LONGEST = 0.25  # … or when it has lasted this part of all iterations
TRY_OTHER = 4  # every so many epochs, the slower mode gets a chance
DIVERGES = 2.0  # times the residual of its first block: an epoch in pairs that ends like that is the last
ROUNDING = 1e-12  # a residual this much smaller than the largest has no more to give
SOONER = 2 / 3  # of the expected iterations have passed when the gap is first looked at …
LATEST = 120  # … but it is after this many, as a warm start may be much better than expected
CRAWLS = 200  # iterations without success, after which a small problem is worth second-order steps
FOREST = 240  # iterations after which a problem on a forest is finished by interior points (decision 13)
ROUND_COSTS = 16  # iterations, about; the certificate may take half as long as the iterations since the last one
UNWATCHED = 1.0  # seconds in which nobody waits for the next gap, unless asked to be told
LAST_SECONDS = 0.1  # for the last certificate, after a limit or Ctrl-C


class Race:
    """Chooses between the two modes by the rate at which each has shrunk the residual."""

    def __init__(self, *modes: Mode) -> None:
        self.modes = modes
        self.rates: dict[Mode, float] = {}
        self.epochs = 0

    def choose(self) -> Mode:
        untried = [mode for mode in self.modes if mode not in self.rates]
        if untried:
            return untried[0]
        faster, *others = sorted(self.modes, key=lambda mode: -self.rates[mode])
        return others[0] if others and self.epochs % TRY_OTHER == 0 else faster

    def report(self, mode: Mode, first: float, last: float, length: int) -> None:
        self.rates[mode] = float(np.log(first / last)) / length if min(first, last) > 0 else np.inf
        self.epochs += 1


@one_thread()
@interruptible()
def drive(
    problem: Problem,
    engine: Engine,
    w: Array,
    u: Array,
    *,
    tol: float,
    max_iter: int,
    callback: Callable[[Record], None] | None,
    expected: int = 0,
) -> Solution:
    """Iterate from (w, u) until the certified gap is at most tol, or a limit is reached: that of iterations, or time.

    `expected` is how many iterations it may take: certificates cost more than iterations, and the first one after
    the start waits until it has a chance.
    """
    best = Best(problem, tol, w, u, getattr(engine, "threads", None))
    try:
        best.begin(u, hurry=max_iter > 0 and callback is None)
        if best.reached() or max_iter == 0:
            return best.solution(best.reached() or Status.ITERATION_LIMIT, 0)
        check()
        plain, for_pairs = engine, getattr(engine, "for_pairs", None)
        if for_pairs is not None and suit_pairs(problem):
            engine = for_pairs()
        engine.setup(problem, w, u)
        check()
        steps = Steps.of(problem) if engine is plain else Steps.in_pairs()
    except (KeyboardInterrupt, TimeUp) as reason:
        return best.solution(_ended_by(reason), 0)
    small, forest = is_small(problem), interior.applies(problem)
    second_order = CRAWLS if small else max_iter + 1
    done, checked, look, largest, took = 0, 0, max(BLOCK, min(int(SOONER * expected), LATEST)), 0.0, 0.0
    try:
        race = Race(*steps.modes)
        while True:
            if forest and done >= FOREST:
                forest, done = False, done + _finish(problem, engine, best, max_iter - done)
                _look(best, engine, done, _last_rounds(done), callback)
                if reached := best.reached():
                    return best.solution(reached, done)
            engine.set_steps(steps.tau, steps.sigma)
            mode, epoch, first, before = race.choose(), 0, np.inf, np.inf
            while True:
                block = min(BLOCK, max_iter - done)
                r = engine.advance(block, mode)
                check()
                done, epoch = done + block, epoch + block
                first, largest = (r if first == np.inf else first), max(largest, r)
                over = _epoch_ends(mode, epoch, done, first, before, r) or (forest and done >= FOREST)
                travel = engine.restart() if over else None
                end = Status.ITERATION_LIMIT if done >= max_iter else None
                if seconds_left() <= took:  # there is time for one more certificate, and no more
                    end = end or Status.TIME_LIMIT
                if r <= ROUNDING * largest and (r == 0 or best.stuck):
                    end = end or Status.STALLED
                if done >= look or end is not None:
                    began = time.perf_counter()
                    rounds = _last_rounds(done) if end is not None else (done - checked) // ROUND_COSTS
                    _look(best, engine, done, rounds, callback, end is None and best.elapsed < UNWATCHED)
                    if best.reached() is None and (done >= second_order or (end is Status.STALLED and small)):
                        best.improve_by_newton(done)
                        small, second_order = False, max_iter + 1
                    checked, look, took = done, best.next_check(BLOCK), time.perf_counter() - began
                    if best.reached() or end is not None:
                        return best.solution(best.reached() or end or Status.STALLED, done)
                if travel is not None:
                    break
                before = r
            if mode is Mode.RELAXED and r > 1.01 * first:  # cannot happen while the steps are short enough
                steps.be_careful()
            if mode is Mode.PAIRS and r > DIVERGES * first:
                plain.setup(problem, *engine.point())
                engine, steps = plain, Steps.of(problem)
                race = Race(*steps.modes)
            race.report(mode, first, r, epoch)
            steps.rebalance(travel)
    except (KeyboardInterrupt, TimeUp) as reason:
        allow(LAST_SECONDS + min(seconds_left(), 0.0))
        with suppress(KeyboardInterrupt, TimeUp):  # a second Ctrl-C skips the last certificate
            check()
            best.improve(*engine.point(), done, _last_rounds(done))
        return best.solution(best.reached() or _ended_by(reason), done)


def _ended_by(reason: BaseException) -> Status:
    return Status.TIME_LIMIT if isinstance(reason, TimeUp) else Status.INTERRUPTED


def _look(
    best: Best, engine: Engine, done: int, rounds: int, callback: Callable[[Record], None] | None, hurry: bool = False
) -> None:
    """Compute the gap, and tell."""
    best.improve(*engine.point(), done, rounds, hurry and callback is None)
    if callback is not None:
        callback(best.history[-1])


def _finish(problem: Problem, engine: Engine, best: Best, most: int) -> int:
    """Let an interior-point method go on from the engine's weights, and the engine from there; return its steps."""
    inside = interior.Interior(problem, engine.point()[0])
    steps = inside.run(best.goal, most, time_is_up)
    engine.setup(problem, inside.w, inside.u)
    return steps


def _last_rounds(done: int) -> int:
    """The last certificate may take as long as half the iterations did."""
    return min(MOST, max(BATCH, done // ROUND_COSTS))


def _epoch_ends(mode: Mode, epoch: int, done: int, first: float, before: float, r: float) -> bool:
    if mode in (Mode.DUAL, Mode.PAIRS):
        return r > before
    shrunk = r <= SHRINK * first or (mode is Mode.HALPERN and r <= 0.5 * first and r > before)
    return shrunk or epoch >= max(2 * BLOCK, LONGEST * done)
