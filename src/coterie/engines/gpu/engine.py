"""The engine on a GPU: a problem moves there once, and only scalars come back until the end."""

from __future__ import annotations

from typing import Any

import torch

from coterie.engines.base import Mode, Travel
from coterie.engines.gpu.device import choose
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.plain import PlainIteration
from coterie.engines.gpu.prover import DeviceProver
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class GpuEngine:
    """Iterations and proofs on one device. Weights and duals that it hands over are tensors there."""

    def __init__(self, device: Any = None, dtype: Any = None, fused: bool = True) -> None:
        self.device, self.dtype, self.fused = choose(device), dtype or torch.float64, fused
        self._prover: DeviceProver | None = None

    def prover(self, problem: BoundProblem) -> DeviceProver:
        """The prover of a problem: one for both, as it holds the edges and the losses."""
        if self._prover is None or self._prover.problem is not problem:
            if problem.penalty.kernel is None:
                raise TypeError(
                    f'{type(problem.penalty).__name__} has no form for a GPU; solve it with engine="numpy" or "auto"'
                )
            self._prover = DeviceProver(problem, self.device, self.fused)
        return self._prover

    def for_pairs(self) -> None:
        """There is none: pairs are solved one after the other."""

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        prover = self.prover(problem)
        parts = problem, prover.edges
        self.iteration: Any
        if self.fused:
            from coterie.engines.gpu.fused import FusedIteration

            point = self._in(w), self._in(u)
            self.iteration = FusedIteration(*parts, prover.layout, prover.losses, *point, self.dtype)
        else:
            self.iteration = PlainIteration(*parts, prover.losses, self._in(w), self._in(u))

    def _in(self, x: Any) -> Tensor:
        return torch.as_tensor(x, dtype=torch.float64, device=self.device)

    def set_steps(self, tau: Array, sigma: Array) -> None:
        self.iteration.set_steps(self._in(tau), self._in(sigma))

    def advance(self, n_iter: int, mode: Mode) -> float:
        return self.iteration.advance(n_iter, mode)

    def restart(self) -> Travel:
        return self.iteration.restart()

    def point(self) -> tuple[Tensor, Tensor]:
        return self.iteration.point()
