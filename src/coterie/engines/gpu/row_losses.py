"""Sums over rows of a smooth ψ on a device: batched Newton steps, see `coterie.problem.losses.row_losses`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from coterie.engines.equations import by_node
from coterie.engines.gpu.exact import EPS, Tensor
from coterie.engines.gpu.losses import HostLosses, Model
from coterie.engines.gpu.psi import Family
from coterie.engines.gpu.rows import Rows, Support
from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.model import EVERYWHERE
from coterie.kernels.reference.node_solvers import HALVINGS
from coterie.problem.losses.row_losses import (
    CLOSER,
    CONJUGATE_STEPS,
    FEW,
    MAX_STEPS,
    PROX_ACCURACY,
    RowLosses,
)


class _Nodes(NamedTuple):
    """Nodes i with the function L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2; None: the anchor is z itself."""

    psi: Family
    X: Tensor
    y: Tensor
    share: Tensor
    p: Tensor
    anchor: Tensor | None
    ridge: Tensor
    curvature: Tensor

    def among(self, which: Tensor) -> _Nodes:
        return _Nodes(self.psi, *(None if part is None else part[which] for part in self[1:]))

    def arguments(self, z: Tensor) -> Tensor:
        """e of every row."""
        return self.psi.argument(by_node(self.X, z), self.y)

    def objective(self, z: Tensor, d: Tensor) -> Tensor:
        """The function at z, where z is d from the anchor."""
        loss = (self.share * self.psi.psi(self.arguments(z), self.y)).sum(1)
        return loss + (0.5 * self.ridge * z * z - self.p * z + 0.5 * self.curvature * d * d).sum(1)

    def from_anchor(self, z: Tensor) -> Tensor:
        return torch.zeros_like(z) if self.anchor is None else z - self.anchor

    def gradient(self, z: Tensor) -> tuple[Tensor, ...]:
        """The gradient, the bend of each row, and the largest entries of the gradient and of what it is made of."""
        e, d = self.arguments(z), self.from_anchor(z)
        pull = self.share * self.psi.direction(self.y) * self.psi.slope(e, self.y)
        g = self.ridge * z - self.p + self.curvature * d + by_node(self.X.transpose(1, 2), pull)
        size = self.ridge * z.abs() + self.p.abs() + self.curvature * d.abs()
        size = size + by_node(self.X.abs().transpose(1, 2), pull.abs())
        return g, self.share * self.psi.working_bend(e, self.y), g.abs().amax(1), size.amax(1)

    def newton_step(self, g: Tensor, bend: Tensor) -> Tensor:
        H = (self.X * bend[:, :, None]).transpose(1, 2) @ self.X + torch.diag_embed(self.ridge + self.curvature)
        return torch.linalg.solve_ex(H, -g)[0]

    def length(self, z: Tensor, step: Tensor, slope: Tensor) -> Tensor:
        """How long a step descends: halve those that do not."""
        d = self.from_anchor(z)
        now, length = self.objective(z, d), torch.ones_like(slope)
        for _ in range(HALVINGS):
            move = length[:, None] * step
            short = ~(self.objective(z + move, d + move) <= now + 1e-4 * length * slope + 1e-15 * now.abs())
            if not bool(short.any()):
                break
            length = torch.where(short, 0.5 * length, length)
        return length


class DeviceRowLosses(HostLosses):
    """Losses of rows with all nodes side by side."""

    f: RowLosses

    def __init__(self, f: RowLosses, device: Any) -> None:
        super().__init__(f, device)
        self.rows, self.trace = Rows(f.design, device), f._trace

    def exact(self, w: Tensor) -> Tensor:
        return self.rows.values(w)

    def ceiling(self, level: float, w: Tensor) -> float:
        return self.rows.ceiling(level, w)

    def prox(self, v: Tensor, tau: Tensor, start: Tensor) -> Tensor:
        return self._newton(torch.zeros_like(v), v, 1.0 / tau, start, PROX_ACCURACY, MAX_STEPS)

    def model(self, w: Tensor, before: Tensor | None) -> Model | None:
        """Quadratics above L_i as far from w_i as `before`: see `coterie.kernels.reference.model`."""
        f, rows, n, longest, all_bent = self.f, self.rows, w.shape[1], 0.0, True
        if not f.has_models:
            return None
        slope, H, diagonal = torch.empty_like(w), w.new_empty((len(w), n, n)), 2 * rows.ridge + f.trace_of_models
        for block in rows.blocks:
            at = w[block.nodes]
            e = rows.psi.argument(by_node(block.X, at), block.y)
            way = torch.full_like(e, EVERYWHERE)
            if before is not None:
                way = by_node(block.X, at - before[block.nodes]).abs()
                longest = max(longest, float(way.max()))
            pull = block.s * rows.psi.direction(block.y) * rows.psi.slope(e, block.y)
            bend = block.s * rows.psi.most_bend(e, block.y, way)
            slope[block.nodes] = 2 * rows.ridge * at + by_node(block.X.transpose(1, 2), pull)
            H[block.nodes] = torch.diag(diagonal) + (block.X * bend[:, :, None]).transpose(1, 2) @ block.X
            if f.psi.straight and all_bent:
                all_bent = bool(rows.psi.bend(e, block.y)[block.there].all())
        return Model(slope, H, *f.reach_of_model(longest, before is None, all_bent))

    def support(self, p: Tensor, w: Tensor) -> Support:
        """From the duals at the weights that Newton finds for p."""
        return self.rows.support(*self.rows.slopes(self._attaining(p, w)), w)

    def _attaining(self, p: Tensor, near: Tensor) -> Tensor:
        """The w with ∇L(w) = p, or close to it: a trace of curvature keeps it from running away."""
        trace = torch.full((len(p),), self.trace, dtype=p.dtype, device=p.device)
        if p.numel() > FEW:
            return self._newton(p, None, trace, near, EPS, CONJUGATE_STEPS)
        w = near
        for _ in range(CLOSER):
            w = self._newton(p, near, trace, near, PROX_ACCURACY, CONJUGATE_STEPS)
            near, moved = w, float((w - near).abs().max()) if w.numel() else 0.0
            if moved <= 1e-4 * (float(w.abs().max()) if w.numel() else 0.0):
                break
        return w

    def _newton(
        self, p: Tensor, anchor: Tensor | None, curvature: Tensor, start: Tensor, accuracy: float, most: int
    ) -> Tensor:
        """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2: see `kernels.reference.node_solvers`."""
        out = start.clone()
        for block in self.rows.blocks:
            nodes, near = block.nodes, None if anchor is None else anchor[block.nodes]
            ridge = (2 * self.rows.ridge).expand(len(nodes), -1)
            aim = p[nodes], near, ridge, curvature[nodes, None]
            given = _Nodes(self.rows.psi, block.X, block.y, block.s, *aim)
            out[nodes] = _newton(given, out[nodes], accuracy, most)
        return out


def _newton(given: _Nodes, out: Tensor, accuracy: float, most: int) -> Tensor:
    """All nodes take their steps side by side; those that have arrived are left out of the next."""
    nodes, z, step = torch.arange(len(out), device=out.device), out.clone(), torch.zeros_like(out)
    before = torch.full_like(out[:, 0], math.inf)
    damped = torch.zeros(len(out), dtype=torch.bool, device=out.device)
    for _ in range(most):
        if not len(nodes) or time_is_up():
            break
        g, bend, steepest, largest = given.gradient(z)
        arrived = steepest <= accuracy * largest
        if bool(arrived.all()):
            break
        back = ~arrived & ~damped & (steepest > 0.5 * before)  # to where the last step began, and on with care
        z, damped, fresh = torch.where(back[:, None], z - step, z), damped | back, given.newton_step(g, bend)
        length = torch.where(arrived | back, 0.0, 1.0).double()
        search = torch.nonzero(damped & (length > 0))[:, 0]
        if len(search):
            slope = (g[search] * fresh[search]).sum(1)
            length[search] = given.among(search).length(z[search], fresh[search], slope)
        z = torch.where((length > 0)[:, None], z + length[:, None] * fresh, z)
        before = torch.where(back, before, steepest)
        if given.psi.given.self_concordant:  # curvature has changed by no larger a part than the way
            way = by_node(given.X, fresh).abs().amax(1)
            arrived = arrived | ((length == 1) & (steepest * way <= accuracy * largest))
        out[nodes] = z
        left = ~arrived
        nodes, z, step, before, damped = nodes[left], z[left], fresh[left], before[left], damped[left]
        given = given.among(left)
    return out
