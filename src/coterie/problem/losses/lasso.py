"""Lasso: squared error with sparse weights, for nodes with fewer points than features."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import (
    LocalLosses,
    Loss,
    as_columns,
    by_node,
    check_strength,
    penalised_columns,
    sum_by_group,
)
from coterie.problem.losses.quadratic import Quadratics, thin_svd
from coterie.problem.losses.squared import Reduction, check_reduction, row_scale

ACCURACY = 1e-13  # coordinate descent ends when no step changes the gradient by more, relative to its size
MAX_SWEEPS = 2000
CONJUGATE_SWEEPS = 25  # any end of the descent gives a valid bound
SPLIT_CURVATURE = 0.01  # of the fit, added around the weights near which a dual is split
STEEPER = 1e6  # curvature of the quadratics that bound alpha|w| from below, at most, relative to that of the fit


@dataclass(frozen=True)
class Lasso(Loss):
    """L_i(w) = (1/m_i) Σ_r (y_r − ⟨x_r, w⟩)² + alpha ‖w‖₁.

    The paper writes λ for alpha as well as for the strength of the total variation; they are two parameters here.

    Parameters
    ----------
    alpha : float
    unpenalised : tuple of int
        Columns, such as an intercept, that alpha leaves alone.
    reduction : "mean" or "sum"
        As for :class:`SquaredError`.
    """

    alpha: float
    unpenalised: tuple[int, ...] = ()
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        object.__setattr__(self, "unpenalised", as_columns(self.unpenalised))
        check_strength(self.alpha, "alpha")
        check_reduction(self.reduction)

    def bind(self, rows: LabelledRows) -> SparseQuadratics:
        n = rows.X.shape[1]
        fit = Quadratics.from_rows(rows, row_scale(rows, self.reduction), np.zeros(n))
        return SparseQuadratics(fit, self.alpha * penalised_columns(n, self.unpenalised))


@dataclass(frozen=True, eq=False)
class SparseQuadratics(LocalLosses):
    """L_i(w) = q_i(w) + Σ_k alpha_k |w_k|."""

    q: Quadratics
    alpha: Array
    _latest: list[tuple[float, Quadratics]] = field(default_factory=list)  # of the minorants

    def value(self, w: Array) -> Array:
        return self.q.value(w) + np.abs(w) @ self.alpha

    def doubt(self, w: Array) -> float:
        return self.q.doubt(w)

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        """Mostly no weight changes its sign; the others take longer."""
        from coterie.kernels import register
        from coterie.kernels.inner import keep_signs

        q, n = self.q, v.shape[1]
        z = np.empty_like(v)
        rest = keep_signs(register(n), register(n), q.V, q.h, q.centre, self.alpha, tau, v, start, z)
        if len(rest):
            target = q.b[rest] + v[rest] / tau[rest, None]
            alpha = np.broadcast_to(self.alpha, target.shape)
            z[rest] = _descend(q.H[rest], target, 1.0 / tau[rest], alpha, start[rest], MAX_SWEEPS)
        return z

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """L_i* is the infimal convolution of q_i* and the box |s| ≤ alpha, so any split p = ∇q(w) + s bounds it.

        w minimises q − ⟨p, ·⟩ + alpha‖·‖₁ with a trace of curvature at `near`, since a minimiser need not exist.
        """
        slope = self._slope(p, near, 1e-9)
        s = np.clip(p - slope, -self.alpha, self.alpha)
        return slope + s, self.q.conjugate(slope, near)[1]  # not ⟨slope, w⟩ − q(w): w can be huge

    def split(self, p: Array, near: Array) -> Array:
        """The box's part of p; with more curvature at `near`, so that noise in p does not send w far away."""
        return np.clip(p - self._slope(p, near, SPLIT_CURVATURE), -self.alpha, self.alpha)

    def _slope(self, p: Array, near: Array, part: float) -> Array:
        """∇q(w) at the w that minimises q − ⟨p, ·⟩ + alpha‖·‖₁ and a part of the mean curvature of q around `near`."""
        trace = part * (self.q.h.sum(axis=1) / self.q.V.shape[2] + np.finfo(float).tiny)
        target, alpha = self.q.b + p + trace[:, None] * near, np.broadcast_to(self.alpha, p.shape)
        return self.q.gradient(_descend(self.q.H, target, trace, alpha, near, CONJUGATE_SWEEPS))

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        H = sum_by_group(self.q.H, groups, n_groups)
        b = sum_by_group(self.q.b, groups, n_groups)
        size = np.bincount(groups, minlength=n_groups)[:, None]
        trace = 1e-15 * np.trace(H, axis1=1, axis2=2) + np.finfo(float).tiny
        v = _descend(H, b, trace, size * self.alpha, np.zeros_like(b), MAX_SWEEPS)
        slope = self.q.gradient(v[groups])
        share = sum_by_group(slope, groups, n_groups) / np.maximum(size, 1)
        return v, slope - share[groups]

    @property
    def box(self) -> tuple[Array, Array]:
        return -self.alpha, self.alpha

    @property
    def core(self) -> Quadratics:
        return self.q

    @cached_property
    def seen(self) -> Array | None:
        return self.q.seen

    def minorant(self, level: float) -> Quadratics:
        """alpha|w| ≥ alpha w²/R for |w| ≤ R, and R = (level − Σ min q)/alpha bounds every penalised weight.

        A larger R is as valid. It is kept so large that the curvature alpha/R does not drown that of q_i, and made
        anew only when the level has halved.
        """
        strongest, steepest = self.alpha.max(initial=0.0), self.q.h.max(initial=0.0)
        if strongest == 0:
            return self.q
        least = strongest / (STEEPER * steepest) if steepest > 0 else 1.0
        reach = max((level - float(self.q.floor.sum())) / strongest, least)
        if not self._latest or not reach <= self._latest[0][0] <= 2 * reach:
            self._latest[:] = [(reach, self._with_curvature(1.0 / reach))]
        return self._latest[0][1]

    def _with_curvature(self, factor: float) -> Quadratics:
        """Return q_i(w) + factor · Σ alpha_k w_k²."""
        root = np.sqrt(self.q.h)
        extra = np.diag(np.sqrt(2 * factor * self.alpha))
        rows = np.concatenate([root[:, :, None] * self.q.V, np.broadcast_to(extra, (len(root), *extra.shape))], axis=1)
        U, s, V = thin_svd(rows)
        seen = U[:, : root.shape[1]].transpose(0, 2, 1)  # the extra rows pull towards 0
        inverse = np.divide(1.0, s, out=np.zeros_like(s), where=s > 0)
        centre = by_node(V.transpose(0, 2, 1), inverse * by_node(seen, root * by_node(self.q.V, self.q.centre)))
        floor = self.q.value(centre) + factor * centre**2 @ self.alpha
        return Quadratics(V, s**2, centre, floor)


def _descend(H: Array, target: Array, curvature: Array, alpha: Array, start: Array, max_sweeps: int) -> Array:
    """argmin ½ zᵀ(H + curvature)z − ⟨target, z⟩ + Σ alpha|z|."""
    from coterie.kernels.inner import coordinate_descent

    return coordinate_descent(H, target, curvature, np.ascontiguousarray(alpha), start, ACCURACY, max_sweeps)
