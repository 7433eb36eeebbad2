"""The engine of "auto" for small problems: NumPy at first, and compiled kernels where that takes too long."""

from __future__ import annotations

from collections.abc import Callable

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Engine, Mode, Travel
from coterie.engines.numpy import NumpyEngine
from coterie.kernels import compilation
from coterie.kernels.choice import compile_from_now_on
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class GrowingEngine:
    """A NumpyEngine, until at a restart `is_impatient(n_iter)` says that it is time for a NumbaEngine.

    The anchor and Tz are one point then, from which the compiled engine goes on as any engine would.
    """

    def __init__(self, is_impatient: Callable[[int], bool], threads: int | None = None) -> None:
        self.is_impatient, self.threads, self.done = is_impatient, threads, 0
        self.engine: Engine = NumpyEngine()

    def prover(self, problem: BoundProblem) -> ArrayProver:
        return ArrayProver(problem, self.threads)

    def for_pairs(self) -> None:
        """A NumPy engine has none, and a compiled one goes on as it began."""

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        self.problem = problem
        self.engine.setup(problem, w, u)

    def set_steps(self, tau: Array, sigma: Array) -> None:
        self.engine.set_steps(tau, sigma)

    def advance(self, n_iter: int, mode: Mode) -> float:
        self.done += n_iter
        return self.engine.advance(n_iter, mode)

    def restart(self) -> Travel:
        travel = self.engine.restart()
        if isinstance(self.engine, NumpyEngine) and self.is_impatient(self.done):
            with compilation.running():
                from coterie.engines.numba import NumbaEngine

            compile_from_now_on()
            at = self.engine.point()
            self.engine = NumbaEngine(self.threads)
            self.engine.setup(self.problem, *at)
        return travel

    def point(self) -> tuple[Array, Array]:
        return self.engine.point()
