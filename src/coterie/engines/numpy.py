"""The readable reference engine: the equations on NumPy arrays, with which every other engine must agree."""

from __future__ import annotations

import numpy as np

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Engine
from coterie.engines.bounded_rows import array_prover
from coterie.engines.equations import Equations
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class NumpyEngine(Equations, Engine):
    """NumPy arrays and SciPy's sparse incidence matrix; works with any loss and penalty."""

    eigh = staticmethod(np.linalg.eigh)

    def prover(self, problem: BoundProblem) -> ArrayProver:
        return array_prover(problem, threads=1)

    def for_pairs(self) -> None:
        """There is none: this engine takes the steps of the paper."""

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        self.problem, self.M = problem, problem.M
        self.begin(problem.f, w.copy(), u.copy())

    def point(self) -> tuple[Array, Array]:
        return self.w_hat.copy(), self.u_hat.copy()

    def differences(self, w: Array) -> Array:
        return self.problem.graph.D @ w

    def divergence(self, u: Array) -> Array:
        return self.problem.graph.D.T @ u

    def dual_step(self, u: Array) -> Array:
        return self.problem.penalty.dual_step(u, self.problem.c, self.sigma[:, 0])

    def prox(self, v: Array, tau: Array) -> Array:
        f = self.problem.f
        prox = f.prox if self.models.given_up else f.rough_prox
        return prox(v, tau, self.w_hat[self.M])

    def minimiser(self, s: Array) -> Array:
        assert self.problem.f.quadratic is not None
        return self.problem.f.quadratic.minimiser(s)
