"""The readable reference engine: every line is an equation, every other engine must agree with it."""

from __future__ import annotations

import numpy as np

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import RELAXATION, Mode, Travel
from coterie.engines.models import Models
from coterie.kernels.interruption import check
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class NumpyEngine:
    """NumPy arrays and SciPy's sparse incidence matrix; works with any loss and penalty."""

    def prover(self, problem: BoundProblem) -> ArrayProver:
        return ArrayProver(problem, threads=1)

    def for_pairs(self) -> None:
        """There is none: this engine takes the steps of the paper."""

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        self.problem = problem
        self.w, self.u = w.copy(), u.copy()
        self.w_hat, self.u_hat = self.w, self.u
        self.w0, self.u0, self.k = self.w, self.u, 0
        self.models = Models(problem.f)

    def set_steps(self, tau: Array, sigma: Array) -> None:
        self.tau, self.sigma = tau[:, None], sigma[:, None]

    def advance(self, n_iter: int, mode: Mode) -> float:
        self.model = self.models.around(self.w_hat[self.problem.M])
        if self.model is not None:
            self.spectrum = np.linalg.eigh(self.model.H)
        for last in reversed(range(n_iter)):
            self._apply_dual() if mode is Mode.DUAL else self._apply()
            if not last:
                residual = self._residual(mode)
            self._move(mode)
            check()
        return residual

    def restart(self) -> Travel:
        self.w, self.u = self.w_hat, self.u_hat
        primal = np.sqrt(self._over_nodes((self.w - self.w0) ** 2 / self.tau))
        dual = np.sqrt(self._over_edges((self.u - self.u0) ** 2 / self.sigma))
        self.w0, self.u0, self.k = self.w, self.u, 0
        return Travel(primal, dual)

    def point(self) -> tuple[Array, Array]:
        return self.w_hat.copy(), self.u_hat.copy()

    def _apply(self) -> None:
        """(ŵ, û) = T(w, u)."""
        problem = self.problem
        D, M = problem.graph.D, problem.M
        v = self.w - self.tau * (D.T @ self.u)
        v[M] = self._primal_update(v[M], self.tau[M])
        self.w_hat = self._told(v)
        moved = self.u + self.sigma * (D @ (2 * self.w_hat - self.w))
        self.u_hat = problem.penalty.dual_step(moved, problem.c, self.sigma[:, 0])

    def _primal_update(self, v: Array, tau: Array) -> Array:
        """PU_i, or that of the model: c + (I + τH)⁻¹(v − c − τ slope)."""
        centre = self.models.centre
        if self.model is None or centre is None:
            return self.problem.f.prox(v, tau[:, 0], self.w_hat[self.problem.M])
        h, Q = self.spectrum
        along = np.einsum("ikr,ik->ir", Q, v - centre - tau * self.model.slope)
        return centre + np.einsum("ikr,ir->ik", Q, along / (1 + tau * np.maximum(h, 0.0)))

    def _apply_dual(self) -> None:
        """ŵ = argmin f + ⟨Dᵀu, ·⟩, û = prox(u + σDŵ)."""
        problem = self.problem
        assert problem.f.quadratic is not None
        v = problem.graph.D.T @ self.u
        v[problem.M] = problem.f.quadratic.minimiser(v[problem.M])
        self.w_hat = self._told(v)
        moved = self.u + self.sigma * (problem.graph.D @ self.w_hat)
        self.u_hat = problem.penalty.dual_step(moved, problem.c, self.sigma[:, 0])

    def _residual(self, mode: Mode) -> float:
        """r² = |dw|²/τ + |du|²/σ − 2⟨du, D dw⟩ for dz = Tz − z; for dual steps |du|²/σ alone."""
        dw, du = self.w_hat - self.w, self.u_hat - self.u
        if mode is Mode.DUAL:
            return float(np.sqrt(self._over_edges(du**2 / self.sigma)))
        r2 = self._over_nodes(dw**2 / self.tau) + self._over_edges(du**2 / self.sigma)
        r2 -= 2 * self._over_edges(du * (self.problem.graph.D @ dw))
        return float(np.sqrt(max(r2, 0.0)))

    def _told(self, w_hat: Array) -> Array:
        """ŵ, with what others have to tell of it."""
        return w_hat

    def _over_nodes(self, terms: Array) -> float:
        return float(terms.sum())

    def _over_edges(self, terms: Array) -> float:
        return float(terms.sum())

    def _move(self, mode: Mode) -> None:
        if mode is Mode.RELAXED:
            self.w = self.w + RELAXATION * (self.w_hat - self.w)
            self.u = self.u + RELAXATION * (self.u_hat - self.u)
        elif mode is Mode.DUAL:
            self.u, self.u0 = self.u_hat + self.k / (self.k + 3) * (self.u_hat - self.u0), self.u_hat
            self.w = self.w_hat
        else:
            a = (self.k + 1) / (self.k + 2)
            self.w = a * (2 * self.w_hat - self.w) + (1 - a) * self.w0
            self.u = a * (2 * self.u_hat - self.u) + (1 - a) * self.u0
        self.k += 1
