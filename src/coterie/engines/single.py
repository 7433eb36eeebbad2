"""Iterations in single precision, where gaps are loose or vectors long: certificates have all digits, whoever found a
point.

Half the memory is moved, and a register holds eight numbers in place of four. So weights and duals have columns of
zeros up to four, or up to whole blocks of eight: these stay zero.
"""

from __future__ import annotations

import numpy as np

from coterie.engines.base import LARGE, Mode, TooRough
from coterie.engines.numba import Factors, NumbaEngine, Primal
from coterie.kernels import BLOCK, UNROLL_UP_TO, aligned, is_wide, nodes
from coterie.kernels.choice import form_here
from coterie.kernels.forms import Form
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import ThinModel

FEWEST = 3  # columns from which on it pays
STIFFEST = 1e5  # τ times curvature: of a direction as stiff as that, a model in single precision has two digits left
LARGEST = 1e12  # numbers whose squares, and inverses, single precision holds


class SingleEngine(NumbaEngine):
    """The same iterations for quadratic losses, but for dual steps, and for thin models."""

    @staticmethod
    def suits(problem: BoundProblem) -> bool:
        """Whether there are kernels for it, and single precision holds its numbers."""
        q, c, n = problem.f.quadratic, problem.c, problem.n_features
        thin = is_wide(n) and problem.f.are_thin and len(problem.M) * n * n <= LARGE
        known = thin if q is None else FEWEST <= n <= UNROLL_UP_TO
        known &= problem.penalty.kernel is not None
        if not known or form_here() is not Form.THIS_N or len(c) * n > LARGE:
            return False
        largest = max(float(c.max(initial=0.0)), 0.0 if q is None else float(np.abs(q.centre).max(initial=0.0)))
        return largest <= LARGEST and float(c.min(initial=1.0)) >= 1 / LARGEST

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        super().setup(problem, w, u)
        width = self.w.shape[1]
        self.blocks, self.columns = _zeros(width), _zeros(problem.n_features)
        if is_wide(width):
            block, short = _zeros(BLOCK), width <= 2 * BLOCK
            self.blocks = block, block, width // BLOCK - 1
            self.thin_rooms = [
                (block, block) if short else tuple(np.empty((2, width), dtype=np.float32)) for _ in range(self.T)
            ]

    def _setup_prox(self, n: int) -> None:
        super()._setup_prox(n)
        if self.quadratic:
            self.low_rank, self.centre = False, self._own(self.centre)
            self.share3 = np.zeros((len(self.M), n, self.w.shape[1]), dtype=np.float32)

    def _thin_room(self, model: ThinModel) -> tuple[Array, Array]:
        rank, width = model.Z.shape[1], self.w.shape[1]
        return aligned((len(self.M), rank, width), np.float32), aligned((len(self.M), width), np.float32)

    def _bear(self, stiffness: float) -> None:
        if stiffness > STIFFEST:
            raise TooRough

    def set_steps(self, tau: Array, sigma: Array) -> None:
        super().set_steps(tau, sigma)
        self.tau, self.strength = self.tau.astype(np.float32), self.strength.astype(np.float32)

    def point(self) -> tuple[Array, Array]:
        w_hat, u_hat = self._given(self.w_hat), self._given(self.u if self.u_hat is None else self.u_hat)
        return self.order.nodes_out(w_hat), self.order.edges_out(u_hat)

    def _own(self, values: Array) -> Array:
        n = values.shape[1]
        own = aligned((len(values), _width(n)), np.float32)
        own[:, :n] = values
        return own

    def _given(self, values: Array) -> Array:
        return values[:, : self.problem.n_features].astype(np.float64)

    _taken = _own

    def _factors(self, mode: Mode) -> Factors:
        a, b, g = super()._factors(mode)
        return np.float32(a), np.float32(b), np.float32(g)  # type: ignore[return-value]

    def _primal(self, mode: Mode) -> Primal | None:
        if self.problem.f.quadratic is None:
            return super()._primal(mode)
        arrays = self.tau, self.place, self.share3, self.centre, self.w, self.w0
        return Primal(nodes.single_node_pass, [(self.blocks, self.columns)] * self.T, arrays)


def _width(n: int) -> int:
    """How many numbers a vector of n has, with zeros up to a whole register where that pays."""
    if n <= BLOCK:
        return 4 if n <= 4 else BLOCK
    return -(-n // BLOCK) * BLOCK if is_wide(n) else n


def _zeros(length: int) -> tuple[np.float32, ...]:
    return (np.float32(0),) * length
