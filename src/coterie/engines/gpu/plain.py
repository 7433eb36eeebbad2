"""The iteration in plain torch: every line is an equation of `coterie.engines.numpy`, on any device."""

from __future__ import annotations

from typing import Any

import torch

from coterie.engines.base import RELAXATION, Mode, Travel
from coterie.engines.gpu.edges import Edges
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.losses import DeviceQuadratics, HostLosses, by_node
from coterie.engines.models import Models
from coterie.kernels.interruption import check
from coterie.problem import BoundProblem


class PlainIteration:
    """z = (w, u), z₀ and Tz as float64 tensors in the order of the graph."""

    dtype = torch.float64

    def __init__(self, problem: BoundProblem, edges: Edges, losses: HostLosses, w: Tensor, u: Tensor) -> None:
        self.problem, self.edges, self.losses = problem, edges, losses
        self.w, self.u = w.clone(), u.clone()
        self.w_hat, self.u_hat = self.w, self.u
        self.w0, self.u0, self.k = self.w, self.u, 0
        self.M = torch.as_tensor(problem.M, device=w.device)
        self.models: Any = Models(losses)

    def set_steps(self, tau: Tensor, sigma: Tensor) -> None:
        self.tau, self.sigma = tau[:, None], sigma[:, None]

    def advance(self, n_iter: int, mode: Mode) -> float:
        self.model = self.models.around(self.w_hat[self.M])
        if self.model is not None:
            self.spectrum = torch.linalg.eigh(self.model.H)
        for last in reversed(range(n_iter)):
            self._apply_dual() if mode is Mode.DUAL else self._apply()
            if not last:
                residual = self._residual(mode)
            self._move(mode)
            check()
        return residual

    def restart(self) -> Travel:
        self.w, self.u = self.w_hat, self.u_hat
        primal = float(((self.w - self.w0) ** 2 / self.tau).sum()) ** 0.5
        dual = float(((self.u - self.u0) ** 2 / self.sigma).sum()) ** 0.5
        self.w0, self.u0, self.k = self.w, self.u, 0
        return Travel(primal, dual)

    def point(self) -> tuple[Tensor, Tensor]:
        return self.w_hat.clone(), self.u_hat.clone()

    def _apply(self) -> None:
        """(ŵ, û) = T(w, u)."""
        v = self.w - self.tau * self.edges.divergence(self.u)
        v[self.M] = self._primal_update(v[self.M], self.tau[self.M])
        self.w_hat = v
        moved = self.u + self.sigma * self.edges.differences(2 * self.w_hat - self.w)
        self.u_hat = self.edges.dual_step(moved, self.sigma)

    def _primal_update(self, v: Tensor, tau: Tensor) -> Tensor:
        """PU_i, or that of the model: c + (I + τH)⁻¹(v − c − τ slope)."""
        centre = self.models.centre
        if self.model is None or centre is None:
            return self.losses.prox(v, tau[:, 0], self.w_hat[self.M])
        h, Q = self.spectrum
        along = by_node(Q.transpose(1, 2), v - centre - tau * self.model.slope)
        return centre + by_node(Q, along / (1 + tau * h.clamp(min=0.0)))

    def _apply_dual(self) -> None:
        """ŵ = argmin f + ⟨Dᵀu, ·⟩, û = prox(u + σDŵ)."""
        assert isinstance(self.losses, DeviceQuadratics)
        self.w_hat = self.losses.minimiser(self.edges.divergence(self.u))
        self.u_hat = self.edges.dual_step(self.u + self.sigma * self.edges.differences(self.w_hat), self.sigma)

    def _residual(self, mode: Mode) -> float:
        """r² = |dw|²/τ + |du|²/σ − 2⟨du, D dw⟩ for dz = Tz − z; for dual steps |du|²/σ alone."""
        dw, du = self.w_hat - self.w, self.u_hat - self.u
        dual = (du**2 / self.sigma).sum()
        if mode is Mode.DUAL:
            return float(dual) ** 0.5
        r2 = (dw**2 / self.tau).sum() + dual - 2 * (du * self.edges.differences(dw)).sum()
        return max(float(r2), 0.0) ** 0.5

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
