"""The engine of "auto": NumPy or compiled kernels, and faster ones where a solve takes so long that they pay."""

from __future__ import annotations

from collections.abc import Callable

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Engine, Mode, Travel
from coterie.engines.bounded_rows import array_prover
from coterie.engines.numpy import NumpyEngine
from coterie.kernels import compilation
from coterie.kernels.choice import from_now_on
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class GrowingEngine(Engine):
    """An engine with the form of kernels that `form(n_iter)` names, which may become a faster one at a restart.

    The anchor and Tz are one point then, from which the new engine goes on as any engine would.
    """

    def __init__(self, form: Callable[[int], Form], threads: int | None = None) -> None:
        self.form, self.threads, self.done = form, threads, 0
        self.now: Form = form(0)
        self.engine = engine_of(self.now, threads)

    def prover(self, problem: BoundProblem) -> ArrayProver:
        return array_prover(problem, self.threads)

    def for_pairs(self) -> Engine | None:
        """What the engine has at first; it goes on as it began."""
        return self.engine.for_pairs()

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        self.problem = problem
        self.engine.setup(problem, w, u)

    def set_steps(self, tau: Array, sigma: Array) -> None:
        self.engine.set_steps(tau, sigma)

    def advance(self, n_iter: int, mode: Mode) -> float:
        self.done += n_iter
        return self.engine.advance(n_iter, mode)

    def restart(self) -> Travel:
        travel, form = self.engine.restart(), self.form(self.done)
        if form > self.now:
            self.now, at = form, self.engine.point()
            self.engine = engine_of(form, self.threads)
            from_now_on(form)
            self.engine.setup(self.problem, *at)
        return travel

    def point(self) -> tuple[Array, Array]:
        return self.engine.point()


def engine_of(form: Form, threads: int | None) -> Engine:
    """The engine that works with kernels of this form."""
    if form is Form.NUMPY:
        return NumpyEngine()
    with compilation.running():
        from coterie.engines.numba import NumbaEngine

    return NumbaEngine(threads)
