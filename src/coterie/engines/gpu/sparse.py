"""Lasso on a device: see `coterie.problem.losses.lasso` and `coterie.kernels.reference.descent`."""

from __future__ import annotations

from typing import Any

import torch

from coterie.engines.equations import by_node
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.losses import DeviceQuadratics, HostLosses
from coterie.engines.gpu.rows import Support
from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.descent import TRY_SUPPORT
from coterie.problem.losses.sparse_quadratics import (
    CONJUGATE_SWEEPS,
    MAX_SWEEPS,
    PROX_ACCURACY,
    SPLIT_CURVATURE,
    SparseQuadratics,
)

MOST = 1 << 26  # numbers of matrices that are solved together


class DeviceSparseQuadratics(HostLosses):
    """L_i(w) = q_i(w) + Σ_k alpha_k |w_k|."""

    def __init__(self, f: SparseQuadratics, device: Any) -> None:
        super().__init__(f, device)
        self.quadratics = q = DeviceQuadratics(f.q, device)
        self.alpha = self._in(f.alpha)
        self.H = (q.V.transpose(1, 2) * q.h[:, None, :]) @ q.V
        self.b = q.spectral(q.h, q.centre)

    def exact(self, w: Tensor) -> Tensor:
        return self.quadratics.exact(w) + w.abs() @ self.alpha

    def support(self, p: Tensor, w: Tensor) -> Support:
        return self.quadratics.support(p, w)

    def ceiling(self, level: float, w: Tensor) -> float:
        return self.quadratics.ceiling(level, w)

    def model(self, w: Tensor, before: Tensor | None) -> None:
        return None

    def prox(self, v: Tensor, tau: Tensor, start: Tensor) -> Tensor:
        """Mostly no weight changes its sign; the others take longer."""
        t = self.quadratics.prox(v - tau[:, None] * self.alpha * start.sign(), tau, start)
        rest = torch.nonzero(~((self.alpha == 0) | (t * start > 0)).all(1))[:, 0]
        if len(rest):
            target = self.b[rest] + v[rest] / tau[rest, None]
            t[rest] = self._minimise(target, 1.0 / tau[rest], start[rest], MAX_SWEEPS, rest)
        return t

    def split_dual(self, p: Tensor, near: Tensor) -> Tensor:
        """The box's part of p, with some curvature at `near`, so that noise in p does not send w far away."""
        q = self.quadratics
        trace = SPLIT_CURVATURE * (q.h.sum(1) / p.shape[1] + torch.finfo(torch.float64).tiny)
        target = self.b + p + trace[:, None] * near
        w = self._minimise(target, trace, near, CONJUGATE_SWEEPS, None)
        slope = q.gradient(torch.where(torch.isfinite(w), w, near))
        return torch.clamp(p - slope, -self.alpha, self.alpha)

    def _minimise(self, target: Tensor, curvature: Tensor, start: Tensor, most: int, of: Tensor | None) -> Tensor:
        """argmin ½ zᵀ(H_i + curvature)z − ⟨target, z⟩ + Σ alpha|z|, by coordinate descent and exact solves."""
        out, nodes = start.clone(), torch.arange(len(start), device=self.device)
        H = self.H if of is None else self.H[of]
        kappa, z = curvature[:, None], start.clone()
        for sweep in range(most):
            if not len(nodes) or time_is_up():
                break
            done = torch.zeros(len(nodes), dtype=torch.bool, device=self.device)
            if sweep % TRY_SUPPORT == 0:
                z, done = self._on_support(H, target, kappa, z)
            moved, change = self._sweep(H, target, kappa, z)
            z = torch.where(done[:, None], z, moved)
            done |= change <= PROX_ACCURACY * target.abs().amax(1)
            out[nodes] = z
            left = ~done
            nodes, H, target, kappa, z = nodes[left], H[left], target[left], kappa[left], z[left]
        return out

    def _on_support(self, H: Tensor, target: Tensor, kappa: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Solve for the coordinates that are not zero, with their signs; keep it where nothing contradicts it."""
        support = (z != 0) | (self.alpha == 0)
        aim = torch.where(support, target - z.sign() * self.alpha, 0.0)
        step = torch.empty_like(z)
        each = max(MOST // z.shape[1] ** 2, 1)
        for first in range(0, len(z), each):
            part = slice(first, first + each)
            A = torch.where(support[part, :, None] & support[part, None, :], H[part], 0.0)
            A = A + torch.diag_embed(torch.where(support[part], kappa[part], 1.0))
            step[part] = torch.linalg.solve_ex(A, aim[part])[0]
        agrees = (self.alpha == 0) | (step * z > 0)
        stationary = torch.where(support, agrees, (target - by_node(H, step)).abs() <= self.alpha).all(1)
        return torch.where(stationary[:, None], step, z), stationary

    def _sweep(self, H: Tensor, target: Tensor, kappa: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Minimise over one coordinate after the other; return the weights, and the largest change of a gradient."""
        x, slope, change = z.clone(), target - kappa * z - by_node(H, z), torch.zeros_like(z[:, 0])
        for k in range(z.shape[1]):
            diagonal = H[:, k, k] + kappa[:, 0]
            aim = slope[:, k] + diagonal * x[:, k]
            soft = (aim - self.alpha[k]).clamp(min=0.0) - (-aim - self.alpha[k]).clamp(min=0.0)
            move = soft / diagonal - x[:, k]
            x[:, k] += move
            slope[:, k] -= kappa[:, 0] * move
            slope -= H[:, k] * move[:, None]
            change = torch.maximum(change, move.abs() * diagonal)
        return x, change
