"""The operations of dual repair on a device: see `coterie.engines.corrections`, whose operations these are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from coterie.engines.equations import by_node
from coterie.engines.gpu.edges import Edges
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.recording import repeatable
from coterie.kernels.gradients import ConjugateGradients, as_it_is
from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference import unseen
from coterie.kernels.reference.flow import LEAST_WEIGHT
from coterie.problem import BoundProblem


class Corrections:
    """Corrections −S D N φ of duals, (N Dᵀ S D N) φ = N Dᵀ u, with more weight S on edges that have slack."""

    def __init__(self, problem: BoundProblem, device: Any) -> None:
        self.problem, self.device, self.edges = problem, device, Edges(problem, device)
        V, n, E, box = problem.graph.n_nodes, problem.n_features, problem.graph.n_edges, problem.f.l1_box
        self.needs_repair = (E > 0 or box is not None) and not problem.sees_all
        self.largest_strength = float(problem.c.max(initial=0.0))
        self.M = self._in(problem.M)
        rows = problem.f.row_space
        self.row_space = None if rows is None else self._in(rows)
        self.scales = True
        self.lower: Any = None
        self.upper: Any = None
        if box is not None:
            ends = np.zeros((2, V, n))
            ends[0, problem.M], ends[1, problem.M] = box
            self.scales = bool((ends[0] <= 0).all() and (ends[1] >= 0).all())
            self.lower, self.upper = self._in(ends)
        self.lost = self._lost_edges()
        self.marks = torch.zeros((E, n), dtype=torch.float32, device=device)

    def _in(self, x: Any) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(x), device=self.device)

    def _lost_edges(self) -> Tensor | None:
        """Edges of components without a label, where there are some."""
        if not len(self.problem.undetermined):
            return None
        gone = np.zeros(self.problem.graph.n_nodes, dtype=bool)
        gone[self.problem.undetermined] = True
        return self._in(gone[self.problem.graph.edges[:, 0]])[:, None]

    def keep_flat(self, x: Tensor) -> None:
        """x ← Nx."""
        if self.row_space is None:
            x.index_fill_(0, self.M, 0.0)
        else:
            known = x[self.M]
            x[self.M] = known - by_node(self.row_space.transpose(1, 2), by_node(self.row_space, known))

    def clip(self, u: Tensor) -> None:
        u.copy_(self.edges.into_domain(u))
        if self.lost is not None:
            u.masked_fill_(self.lost, 0.0)

    def residual(self, u: Tensor, s: Tensor | None) -> float:
        self.rest = self.edges.divergence(u)
        if s is not None:
            self.rest += s
        self.keep_flat(self.rest)
        return float(self.rest.abs().max())

    def weigh(self, u: Tensor) -> None:
        self.S = self.edges.slack_weights(u, self.marks)

    def descent(self, s: Tensor | None) -> Descent:
        """Conjugate gradients for (DᵀSD + G) φ = rest where no data see φ; G weighs ground edges as S does edges."""
        self.G = None
        if s is not None:
            least = 0.5 * LEAST_WEIGHT * (self.upper - self.lower)
            self.G = torch.maximum(torch.minimum(self.upper - s, s - self.lower), least)
        laplacian = self.laplacian()
        diagonal = laplacian.diagonal()
        if self.G is not None:
            diagonal += self.G

        def product(x: Tensor, out: Tensor) -> None:
            laplacian.apply(x, out)
            if self.G is not None:
                out.addcmul_(self.G, x)

        return Descent(product, self.rest, diagonal, (self.M, self.row_space), self.marks.numel())

    def laplacian(self) -> Any:
        """DᵀSD."""
        return Laplacian(self.edges, self.S)

    def moved(self, u: Tensor, descent: Descent) -> Tensor:
        """u − SDφ."""
        return u - self.S * self.edges.differences(descent.x)

    def stretch(self, u: Tensor, s: Tensor | None, descent: Descent) -> float:
        most = self.edges.stretch(self.moved(u, descent))
        if s is not None:
            moved = s - self.G * descent.x
            ratio = torch.where(moved > 0, moved / self.upper, moved / self.lower)
            most = max(most, float(torch.where(moved == 0, 0.0, ratio).max()))
        return most

    def correct(self, u: Tensor, s: Tensor | None, descent: Descent, factor: float) -> None:
        moved = self.moved(u, descent).div_(factor)
        self.marks = self.edges.pushed(moved)
        u.copy_(self.edges.into_domain(moved))
        if s is not None:
            s.copy_(torch.clamp((s - self.G * descent.x) / factor, self.lower, self.upper))


class Laplacian:
    """DᵀSD by passes over the edges."""

    def __init__(self, edges: Edges, S: Tensor) -> None:
        self.edges, self.S = edges, S

    def apply(self, x: Tensor, out: Tensor) -> None:
        out.copy_(self.edges.divergence(self.S * self.edges.differences(x)))

    def diagonal(self) -> Tensor:
        return self.edges.at_ends(self.S.double())


class Descent(ConjugateGradients):
    """Conjugate gradients on tensors; a step reads nothing on the host, which asks for two numbers after it."""

    def __init__(self, apply: Any, rest: Tensor, diagonal: Tensor, seen: Any, duals: int) -> None:
        self.apply, self.duals = apply, duals
        self.inverse = torch.where(diagonal > 0, 1 / diagonal, diagonal)
        self.leave = self._leaving(seen)
        self._begin(rest, torch.zeros_like(rest), torch.empty_like(rest), torch.empty_like(rest))
        self.told = rest.new_tensor([0.0, self.rz])  # the last curvature and ⟨r, z⟩
        self.step: Any = None

    def _leaving(self, seen: Any) -> Any:
        nodes, rows = seen
        if rows is None:
            self.inverse.index_fill_(0, nodes, 0.0)
            return as_it_is
        F = torch.empty_like(rows)
        unseen.factorise(None, nodes, rows, self.inverse, F)

        def leave(r: Tensor, z: Tensor) -> None:
            z[nodes] -= by_node(F.transpose(1, 2), by_node(F, r[nodes]))

        return leave

    def _inner(self, a: Tensor, b: Tensor) -> float:
        return float((a * b).sum())

    def run(self, most: int, accuracy: float) -> Tensor:
        for _ in range(most):
            if self.rz <= accuracy**2 * self.first or time_is_up():
                break
            if self.step is None and self.steps:  # the first one compiles
                self.step = repeatable(self._step, self.duals, self.x.device)
            (self.step or self._step)()
            self.steps += 1
            curvature, self.rz = self.told.tolist()
            if curvature <= 0:
                break
        return self.x

    def _step(self) -> None:
        """As in `ConjugateGradients.run`; where p has no curvature, x stays."""
        self.apply(self.p, self.Ap)
        curvature, before = (self.p * self.Ap).sum(), self.told[1].clone()
        alpha = torch.where(curvature > 0, before / curvature, 0.0)
        self.x.addcmul_(alpha, self.p)
        self.r.addcmul_(alpha, self.Ap, value=-1)
        torch.mul(self.inverse, self.r, out=self.z)
        self.leave(self.r, self.z)
        after = (self.r * self.z).sum()
        self.p.mul_(after / before).add_(self.z)
        self.told.copy_(torch.stack([curvature, after]))
