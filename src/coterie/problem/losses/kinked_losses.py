"""Sums over rows of a ψ with a kink at e = 0 and straight lines on both sides, by the duals of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.reference.kinks import at_ends
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses, Model, balanced
from coterie.problem.losses.design import Support
from coterie.problem.losses.row_losses import ACCURACY, RowLosses

kinks, programs = Either("kinks"), Either("interior_point")

CONJUGATE_SWEEPS = 60  # any end of the ascent gives a valid bound
PROX_SWEEPS = 20  # before an interior-point method
FEW = 20_000  # weights, up to which an interior-point method takes little time
CLOSER, SETTLED = 3, 1e-9  # times that ascent, each around the weights where the last one ended
NEAR = 1e7  # times a trace of curvature: what holds weights near those at which duals are asked for


@dataclass(frozen=True, eq=False)
class KinkedLosses(RowLosses):
    """Duals b_r of rows lie between s_r ψ′(−∞) and s_r ψ′(∞), or other limits; a = −b, as e is a residual.

    `alone`: slopes are those of rows and ridge, and not what an ℓ1 norm has left of them.
    """

    smooth: ClassVar[bool] = False
    limits: tuple[Array, Array] | None = None
    alone: bool = True

    def gradient(self, w: Array) -> Array:
        return LocalLosses.gradient(self, w)

    def hessian(self, w: Array) -> Array:
        return LocalLosses.hessian(self, w)

    def model(self, w: Array, before: Array | None) -> Model | None:
        return None

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        """From the duals of the last primal update, if there was one."""
        return self._ascend(np.zeros_like(v), v, 1 / tau, self.last_duals, finish=True)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """Any duals b inside their bounds prove L*(q) ≤ −Σ b_r y_r + ridge ‖z‖² for q = −Σ b_r x_r + 2 ridge z."""
        z, b = self._attaining_duals(p, near)
        q, low, _ = self.design.forces(-b, 2 * self.ridge * z)
        node = np.repeat(np.arange(len(z)), self.rows.m)
        return q + low, z**2 @ self.ridge - np.bincount(node, b * self.rows.y, minlength=len(z))

    def support(self, p: Array, w: Array) -> Support:
        z, b = self._attaining_duals(p, w)
        return self.design.support(-b, 2 * self.ridge * z, w)

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        of = np.repeat(groups, self.rows.m)
        order, size = np.argsort(of, kind="stable"), np.maximum(np.bincount(groups, minlength=n_groups), 1)[:, None]
        X, y, b, v = self.rows.X[order], self.rows.y[order], np.empty(len(of)), np.zeros((n_groups, len(self.ridge)))
        starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=n_groups))])
        low, high = (limit[order] for limit in self.dual_limits)
        programs.interior_point(X, y, starts, 2 * self.ridge * size, 0 * v, low, high, b, v)
        v[np.diff(starts) == 0] = 0.0
        duals = np.empty_like(b)
        duals[order] = b
        q, low, _ = self.design.forces(-duals, 2 * self.ridge * v[groups])
        return v, balanced(q + low, groups, n_groups)

    @cached_property
    def dual_limits(self) -> tuple[Array, Array]:
        if self.limits is not None:
            return self.limits
        low, high = self.psi.slope(np.array([-1.0, 1.0]), np.zeros(2))
        return self.scale * low, self.scale * high

    def limits_at(self, p: Array, anchor: Array, curvature: Array) -> tuple[Array, Array]:
        """The limits of duals where L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 is minimised."""
        return self.dual_limits

    @cached_property
    def last_duals(self) -> Array:
        """Those of rows, in the last primal update."""
        return np.zeros(len(self.rows.y))

    def duals_near(self, p: Array, w: Array) -> tuple[Array, Array]:
        b = self.last_duals.copy()
        z = self._ascend(p, w, np.full(len(p), NEAR * self._trace), b)
        return -b, 2 * self.ridge * z

    def _attaining_duals(self, p: Array, near: Array) -> tuple[Array, Array]:
        """Weights and duals of rows with forces close to p."""
        curvature = np.full(len(p), NEAR * self._trace)
        b = self.last_duals.copy()
        as_good = self.alone and self.ridge.all() and self.rows.m.max(initial=0) <= p.shape[1]  # any end of ascent is
        finish = p.size <= FEW and not as_good
        for _ in range(CLOSER):
            before, near = near, self._ascend(p, near, curvature, b, finish)
            if np.abs(near - before).max(initial=0.0) <= SETTLED * np.abs(near).max(initial=0.0):
                break
        return near, b

    def _ascend(self, p: Array, anchor: Array, curvature: Array, b: Array, finish: bool = False) -> Array:
        """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node; b, a guess, becomes their duals.

        With `finish`, an interior-point method, which needs no guess and takes longer, finds those of the nodes that a
        few sweeps leave unsettled.
        """
        (D, c), z = kinks.parabolas(p, anchor, curvature, self.ridge), np.empty_like(anchor)
        X, y, starts, (low, high) = self.rows.X, self.rows.y, self.rows.starts, self.limits_at(p, anchor, curvature)
        give, room, sweeps = np.zeros_like(b), vector_buffer(z.shape[1]), PROX_SWEEPS if finish else CONJUGATE_SWEEPS
        settled = kinks.box_ascent(room, X, y, starts, D, c, low, high, give, b, z, ACCURACY, sweeps)
        if finish and len(late := np.flatnonzero(~settled)):
            m = self.rows.m[late]
            of, ends = np.repeat(~settled, self.rows.m), np.concatenate([[0], np.cumsum(m)])
            duals, weights = np.empty(len(X[of])), np.empty((len(late), z.shape[1]))
            programs.interior_point(X[of], y[of], ends, D[late], c[late], low[of], high[of], duals, weights)
            b[of], z[late] = at_ends(duals, low[of], high[of]), weights
        return z
