"""Iterations in single precision, where loose gaps are asked for: certificates have all digits, whoever found a point.

Half the memory is moved, and a register holds eight numbers in place of four. So weights and duals have columns of
zeros up to four or eight: these stay zero.
"""

from __future__ import annotations

import numpy as np

from coterie.engines.base import LARGE, Mode
from coterie.engines.numba import Factors, NumbaEngine, Primal
from coterie.kernels import UNROLL_UP_TO, aligned, nodes
from coterie.kernels.choice import form_here
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

FEWEST = 3  # columns from which on it pays
LARGEST = 1e12  # numbers whose squares, and inverses, single precision holds


class SingleEngine(NumbaEngine):
    """The same iterations for quadratic losses, but for dual steps."""

    @staticmethod
    def suits(problem: BoundProblem) -> bool:
        """Whether there are kernels for it, and single precision holds its numbers."""
        q, c = problem.f.quadratic, problem.c
        if q is None or not FEWEST <= problem.n_features <= UNROLL_UP_TO or form_here() is not Form.THIS_N:
            return False
        if len(c) * problem.n_features > LARGE:
            return False
        largest = max(float(np.abs(q.centre).max(initial=0.0)), float(c.max(initial=0.0)))
        return largest <= LARGEST and float(c.min(initial=1.0)) >= 1 / LARGEST

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        super().setup(problem, w, u)
        self.blocks, self.columns = ((np.float32(0),) * size for size in (self.w.shape[1], problem.n_features))

    def _setup_prox(self, n: int) -> None:
        super()._setup_prox(n)
        self.low_rank, self.centre = False, self._own(self.centre)
        self.share3 = np.zeros((len(self.M), n, self.w.shape[1]), dtype=np.float32)

    def set_steps(self, tau: Array, sigma: Array) -> None:
        super().set_steps(tau, sigma)
        self.tau, self.strength = self.tau.astype(np.float32), self.strength.astype(np.float32)

    def point(self) -> tuple[Array, Array]:
        n, u_hat = self.problem.n_features, self.u if self.u_hat is None else self.u_hat
        w_hat, u_hat = (x[:, :n].astype(np.float64) for x in (self.w_hat, u_hat))
        return self.order.nodes_out(w_hat), self.order.edges_out(u_hat)

    def _own(self, values: Array) -> Array:
        n = values.shape[1]
        own = aligned((len(values), n if n > 8 else 8 if n > 4 else 4), np.float32)
        own[:, :n] = values
        return own

    def _factors(self, mode: Mode) -> Factors:
        a, b, g = super()._factors(mode)
        return np.float32(a), np.float32(b), np.float32(g)  # type: ignore[return-value]

    def _primal(self, mode: Mode) -> Primal:
        arrays = self.tau, self.place, self.share3, self.centre, self.w, self.w0
        return Primal(nodes.single_node_pass, [(self.blocks, self.columns)] * self.T, arrays)
