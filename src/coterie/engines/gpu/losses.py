"""Losses on a device. Every tensor has one row for each labelled node, in the order of M."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from coterie.engines.equations import by_node
from coterie.engines.gpu.exact import Tensor
from coterie.engines.gpu.psi import FAMILIES
from coterie.engines.gpu.rows import Rows, Support
from coterie.problem.losses.base import LocalLosses
from coterie.problem.losses.quadratic import Quadratics
from coterie.problem.losses.row_losses import RowLosses
from coterie.problem.losses.sparse_quadratics import SparseQuadratics


class Model(NamedTuple):
    """Slopes, curvatures, and what else `coterie.problem.losses.base.Model` has."""

    slope: Tensor
    H: Tensor
    change: float
    everywhere: bool = True
    ground: None = None


def on_device(f: LocalLosses, device: Any) -> HostLosses:
    """The losses where the numbers are; those that have no form there are asked on the host."""
    if f.bounds is not None:
        raise ValueError('bounds on weights are not known to the GPU: use engine="numba", "numpy" or "auto"')
    if isinstance(f, Quadratics):
        return DeviceQuadratics(f, device)
    if isinstance(f, SparseQuadratics) and f._B is None:
        from coterie.engines.gpu.sparse import DeviceSparseQuadratics

        return DeviceSparseQuadratics(f, device)
    if isinstance(f, RowLosses) and f.psi.kernel in FAMILIES:
        from coterie.engines.gpu.row_losses import DeviceRowLosses

        return DeviceRowLosses(f, device)
    return HostLosses(f, device)


class HostLosses:
    """Losses of any kind, asked on the host: numbers go there and back."""

    def __init__(self, f: LocalLosses, device: Any) -> None:
        self.f, self.device = f, device

    def _in(self, x: Any) -> Tensor:
        return torch.as_tensor(x, device=self.device)

    def exact(self, w: Tensor) -> Tensor:
        """L_i(w_i)."""
        return self._in(self.f.exact(_out(w)))

    def prox(self, v: Tensor, tau: Tensor, start: Tensor) -> Tensor:
        """The primal update PU_i."""
        return self._in(self.f.prox(_out(v), _out(tau), _out(start)))

    def model(self, w: Tensor, before: Tensor | None) -> Model | None:
        """Quadratics that touch L_i at w and lie above it around w; None: there are none, or L_i is one itself.

        Those with a ground are not known here.
        """
        model = self.f.model(_out(w), None if before is None else _out(before))
        if model is None or model.ground is not None:
            return None
        return Model(self._in(model.slope), self._in(model.H), model.change, model.everywhere)

    def split_dual(self, p: Tensor, near: Tensor) -> Tensor:
        """Duals of the ℓ1 term that go with p."""
        return self._in(self.f.split_dual(_out(p), _out(near)))

    def support(self, p: Tensor, w: Tensor) -> Support:
        """Affine functions below the smooth parts of the L_i, with slopes near p."""
        s = self.f.smooth_part.support(_out(p), _out(w))
        return Support(*(self._in(part) for part in (s.at, s.q, s.low, s.rounding_bound)))

    def ceiling(self, level: float, w: Tensor) -> float:
        """What an objective at w can be at most, where `level` was computed."""
        return self.f.ceiling(level, _out(w))


def _out(x: Tensor) -> Any:
    return x.cpu().numpy()


class DeviceQuadratics(HostLosses):
    """Quadratics in spectral form: see `coterie.problem.losses.quadratic`."""

    def __init__(self, q: Quadratics, device: Any) -> None:
        super().__init__(q, device)
        self.V, self.h, self.centre, self.floor = (self._in(part) for part in (q.V, q.h, q.centre, q.floor))
        self.rows = Rows(q.rows, device)
        self.corrections = 1 if q._is_even else 2
        self.inverse = torch.where(self.h > 0, 1 / self.h, 0.0)

    def exact(self, w: Tensor) -> Tensor:
        return self.rows.values(w)

    def prox(self, v: Tensor, tau: Tensor, start: Tensor) -> Tensor:
        t = tau[:, None] * self.h
        return v - self.spectral(t / (1 + t), v - self.centre)

    def model(self, w: Tensor, before: Tensor | None) -> None:
        return None

    def gradient(self, w: Tensor) -> Tensor:
        return self.spectral(self.h, w - self.centre)

    def minimiser(self, s: Tensor) -> Tensor:
        """argmin L_i + ⟨s_i, ·⟩, where every H_i has full rank."""
        return self.centre - self.spectral(1.0 / self.h, s)

    def below(self, p: Tensor, w: Tensor) -> Tensor:
        """⟨q, w_i⟩ − L_i*(q), at most L_i(w_i), for the q next to p where L_i* is finite."""
        coordinates, away = by_node(self.V, p) * (self.h > 0), by_node(self.V, w - self.centre)
        return (coordinates * (away - 0.5 * self.inverse * coordinates)).sum(1) + self.floor

    def support(self, p: Tensor, w: Tensor) -> Support:
        a, b = self.rows.slopes(w)
        for _ in range(self.corrections):
            q, low, _ = self.rows.forces(a, b)
            a, b = self.rows.moved(a, b, self.spectral(self.inverse, (p - q) - low))
        return self.rows.support(a, b, w)

    def ceiling(self, level: float, w: Tensor) -> float:
        return self.rows.ceiling(level, w)

    def spectral(self, factors: Tensor, x: Tensor) -> Tensor:
        """Vᵀ diag(factors) V x of every node."""
        return by_node(self.V.transpose(1, 2), factors * by_node(self.V, x))
