"""The engine on a GPU: a problem moves there once, and only scalars come back until the end."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from coterie.engines.base import Engine, Mode, Travel
from coterie.engines.gpu.device import choose, refuse_large
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.plain import PlainIteration
from coterie.engines.gpu.prover import DeviceProver
from coterie.kernels import compilation
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

NOISE = 16  # times what rounding makes of a residual: with less, single precision has no more to give


class GpuEngine(Engine):
    """Iterations and proofs on one device. Weights and duals that it hands over are tensors there.

    Iterations begin in single precision. At the first restart where the residual is not far above what rounding makes
    of it, they go on in double precision. What is proven is proven in double precision, whatever iterates.

    Parameters
    ----------
    device : str, default=None
        A device of torch; None: the GPU.
    dtype : torch.dtype, default=None
        Of the iterations, from first to last; None: as above.
    fused : bool, default=None
        Whether iterations are Triton's kernels, or plain torch; None: Triton's, where they can run.
    """

    unwatched = 10.0  # a proof takes as long as hundreds of iterations

    def __init__(self, device: Any = None, dtype: Any = None, fused: bool | None = None) -> None:
        self.device, self.dtype = choose(device), dtype
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"
        self.fused = self.device.type == "cuda" or interpreted if fused is None else fused
        self._prover: DeviceProver | None = None
        self.ready: set[tuple[Mode, Any]] = set()

    def prover(self, problem: BoundProblem) -> DeviceProver:
        """The prover of a problem: one for iterations as well, as it holds the edges and the losses."""
        if self._prover is None or self._prover.problem is not problem:
            if problem.penalty.kernel is None:
                raise TypeError(
                    f'{type(problem.penalty).__name__} has no form for a GPU; solve it with engine="numpy" or "auto"'
                )
            self._prover = None  # what it holds is free from here on
            refuse_large(problem, self.device)
            self._prover = DeviceProver(problem, self.device, self.fused)
        return self._prover

    def for_pairs(self) -> None:
        """There is none: pairs are solved one after the other."""

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        self.problem = problem
        self._begin(self._in(w), self._in(u), self.dtype or torch.float32)

    def _begin(self, w: Tensor, u: Tensor, dtype: Any) -> None:
        prover = self.prover(self.problem)
        self.iteration: Any = None
        if not self.fused:
            self.iteration = PlainIteration(self.problem, prover.edges, prover.losses, w, u)
            return
        with compilation.running():
            from coterie.engines.gpu.fused import FusedIteration

        self.iteration = FusedIteration(self.problem, prover.edges, prover.layout, prover.losses, w, u, dtype)

    def lanczos(self, s: Array, d: Array, start: Array, steps: int) -> tuple[Array, Array]:
        """The tridiagonal matrix of ½ T^½ Dᵀ diag(s) D T^½, T = 1/d, on the device: see `kernels.norms`."""
        edges, root = self.prover(self.problem).edges, self._in(d)[:, None].rsqrt()
        weight, x = 0.5 * self._in(s)[:, None], self._in(start)[:, None]
        alpha, beta = x.new_zeros(steps), x.new_zeros(steps)
        before, q = torch.zeros_like(x), x / x.norm()
        for k in range(steps):
            y = root * edges.divergence(weight * edges.differences(q * root))
            alpha[k] = (q * y).sum()
            y -= alpha[k] * q + (beta[k - 1] * before if k else 0.0)
            beta[k] = y.norm()
            before, q = q, y / beta[k]
        a, b = torch.stack([alpha, beta]).cpu().numpy()
        ends = np.flatnonzero(~(b >= 1e-12))  # what comes after that means nothing
        last = int(ends[0]) + 1 if len(ends) else steps
        return a[:last], b[:last]

    def _in(self, x: Any) -> Tensor:
        return torch.as_tensor(x, dtype=torch.float64, device=self.device)

    def set_steps(self, tau: Array, sigma: Array) -> None:
        self.iteration.set_steps(self._in(tau), self._in(sigma))

    def advance(self, n_iter: int, mode: Mode) -> float:
        way = mode, self.iteration.dtype
        with nullcontext() if way in self.ready else compilation.running():  # the first block compiles
            self.residual: float = self.iteration.advance(n_iter, mode)
        self.ready.add(way)
        return self.residual

    def restart(self) -> Travel:
        travel: Travel = self.iteration.restart()
        if self.fused and self.dtype is None and self.residual <= NOISE * self.iteration.noise():
            self._begin(*self.point(), torch.float64)
        return travel

    def point(self) -> tuple[Tensor, Tensor]:
        w, u = self.iteration.point()
        return w, u
