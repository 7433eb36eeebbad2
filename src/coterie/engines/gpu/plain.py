"""The iteration in plain torch: the equations of `coterie.engines.equations`, on any device."""

from __future__ import annotations

import torch

from coterie.engines.equations import Equations
from coterie.engines.gpu.edges import Edges
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.losses import DeviceQuadratics, HostLosses
from coterie.problem import BoundProblem


class PlainIteration(Equations):
    """z = (w, u), z₀ and Tz as float64 tensors in the order of the graph."""

    dtype, eigh = torch.float64, staticmethod(torch.linalg.eigh)

    def __init__(self, problem: BoundProblem, edges: Edges, losses: HostLosses, w: Tensor, u: Tensor) -> None:
        self.edges, self.losses = edges, losses
        self.M = torch.as_tensor(problem.M, device=w.device)
        self.begin(losses, w.clone(), u.clone())

    def point(self) -> tuple[Tensor, Tensor]:
        return self.w_hat.clone(), self.u_hat.clone()

    def differences(self, w: Tensor) -> Tensor:
        return self.edges.differences(w)

    def divergence(self, u: Tensor) -> Tensor:
        return self.edges.divergence(u)

    def dual_step(self, u: Tensor) -> Tensor:
        return self.edges.dual_step(u, self.sigma)

    def prox(self, v: Tensor, tau: Tensor) -> Tensor:
        return self.losses.prox(v, tau, self.w_hat[self.M])

    def minimiser(self, s: Tensor) -> Tensor:
        assert isinstance(self.losses, DeviceQuadratics)
        return self.losses.minimiser(s)
