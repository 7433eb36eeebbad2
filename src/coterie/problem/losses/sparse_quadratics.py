"""A batch of convex quadratics with an ℓ1 norm, which a Lasso is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses, balanced, by_node, sum_by_group
from coterie.problem.losses.design import Design
from coterie.problem.losses.quadratic import Quadratics

descent, node_solvers, thin = Either("descent"), Either("node_solvers"), Either("thin")

PROX_ACCURACY = 1e-13  # coordinate descent ends when no step changes the gradient by more, relative to its size
MAX_SWEEPS = 2000
NEVER = 1e300  # a strength that keeps a weight at zero
CONJUGATE_SWEEPS = 25  # any end of the descent gives a valid bound
THIN = 4  # columns per row of a node from which on Newton's method on its rows beats descent on its Hessian
LITTLE, PROXIMAL_STEPS = 1e-6, 30  # curvature of proximal steps, of the mean; mostly the third changes nothing
SPLIT_CURVATURE = 0.01  # of the fit, added around the weights near which a dual is split


@dataclass(frozen=True, eq=False)
class SparseQuadratics(LocalLosses):
    """L_i(w) = q_i(w) + Σ_k alpha_k |w_k|."""

    q: Quadratics
    alpha: Array

    def prepare(self) -> None:
        self.q.prepare()

    def value(self, w: Array) -> Array:
        return self.q.value(w) + np.abs(w) @ self.alpha

    def exact(self, w: Array) -> Array:
        return self.q.exact(w) + np.abs(w) @ self.alpha

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        """Mostly no weight changes its sign; the others take longer."""
        q, n = self.q, v.shape[1]
        z = np.empty_like(v)
        rest = node_solvers.keep_signs(
            vector_buffer(n), vector_buffer(n), q.V, q.h, q.centre, self.alpha, tau, v, start, z
        )
        if len(rest):
            target = q.b[rest] + v[rest] / tau[rest, None]
            z[rest] = self._minimise(target, 1.0 / tau[rest], start[rest], MAX_SWEEPS, rest)
        return z

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """L_i* is the infimal convolution of q_i* and the box |s| ≤ alpha, so any split p = ∇q(w) + s bounds it.

        w minimises q − ⟨p, ·⟩ + alpha‖·‖₁ with a trace of curvature at `near`, since a minimiser need not exist.
        """
        slope = self._slope(p, near, 1e-9)
        s = np.clip(p - slope, -self.alpha, self.alpha)
        return slope + s, self.q.conjugate(slope, near)[1]  # not ⟨slope, w⟩ − q(w): w can be huge

    def split_dual(self, p: Array, near: Array) -> Array:
        """The box's part of p; with more curvature at `near`, so that noise in p does not send w far away."""
        return np.clip(p - self._slope(p, near, SPLIT_CURVATURE), -self.alpha, self.alpha)

    def _slope(self, p: Array, near: Array, part: float) -> Array:
        """∇q(w) at the w that minimises q − ⟨p, ·⟩ + alpha‖·‖₁ and a part of the mean curvature of q around `near`."""
        trace = part * (self.q.h.sum(axis=1) / self.q.V.shape[2] + np.finfo(float).tiny)
        target = self.q.b + p + trace[:, None] * near
        w = self._minimise(target, trace, near, CONJUGATE_SWEEPS)
        return self.q.gradient(np.where(np.isfinite(w), w, near))  # numbers that overflow tell nothing

    def _minimise(self, target: Array, curvature: Array, start: Array, most: int, of: Array | None = None) -> Array:
        """argmin ½ zᵀ(H_i + curvature)z − ⟨target, z⟩ + Σ alpha|z| for all nodes i, or for those in `of`."""
        alpha = np.broadcast_to(self.alpha, target.shape)
        if self._B is not None:
            return thin.thin_newton(self._B, target, curvature, alpha, start, PROX_ACCURACY, most, of)
        return _descend(self.q.H, target, curvature, alpha, start, most, of)

    @cached_property
    def _B(self) -> Array | None:
        """B_i (n, r) with H_i = B_iB_iᵀ, where rows are few: H_i itself is never made there."""
        r, n = self.q.V.shape[1:]
        if THIN * r > n:
            return None
        return np.ascontiguousarray((np.sqrt(self.q.h)[:, :, None] * self.q.V).transpose(0, 2, 1))

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        b = sum_by_group(self.q.b, groups, n_groups)
        size = np.bincount(groups, minlength=n_groups)[:, None]
        B = None if self._B is None else _side_by_side(self._B, groups, n_groups)
        if B is not None and THIN * B.shape[2] <= B.shape[1]:
            v = _settle(B, b, size * self.alpha)
        else:
            v = self._pooled_densely(groups, b, size * self.alpha)
        return v, balanced(self.q.gradient(v[groups]), groups, n_groups)

    def _pooled_densely(self, groups: NDArray[np.int64], b: Array, alpha: Array) -> Array:
        """By coordinate descent, with every column in units of its own curvature."""
        H = sum_by_group(self.q.H, groups, len(b))
        diagonal = np.einsum("gkk->gk", H)
        unit = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)
        return unit * _grow(H * unit[:, :, None] * unit[:, None, :], unit * b, alpha * unit)

    @property
    def l1_box(self) -> tuple[Array, Array]:
        return -self.alpha, self.alpha

    @property
    def smooth_part(self) -> Quadratics:
        return self.q

    def in_units(self, x: float, y: float) -> tuple[SparseQuadratics, float]:
        q, unit = self.q.in_units(x, y)
        return SparseQuadratics(q, self.alpha * (y / x) / unit), unit

    def of_nodes(self, which: NDArray[np.int64]) -> SparseQuadratics:
        return SparseQuadratics(self.q.of_nodes(which), self.alpha)

    def in_columns(self, t: Array) -> SparseQuadratics:
        return SparseQuadratics(self.q.in_columns(t), self.alpha / t)

    @property
    def design(self) -> Design:
        return self.q.design

    @cached_property
    def row_space(self) -> Array | None:
        return self.q.row_space


def _side_by_side(B: Array, groups: NDArray[np.int64], n_groups: int) -> Array:
    """The factors (n, r) of the nodes of each group beside each other: their Hessians add up."""
    n, r = B.shape[1:]
    place = np.empty_like(groups)
    order = np.argsort(groups, kind="stable")
    size = np.bincount(groups, minlength=n_groups)
    place[order] = np.arange(len(groups)) - np.repeat(np.cumsum(size) - size, size)
    out = np.zeros((n_groups, n, int(size.max(initial=0)), r))
    out[groups, :, place] = B
    return out.reshape(n_groups, n, -1)


def _settle(B: Array, target: Array, alpha: Array) -> Array:
    """argmin ½ zᵀBBᵀz − ⟨target, z⟩ + Σ alpha|z| by proximal steps: a little curvature around the last z."""
    curvature = LITTLE * np.einsum("gkr,gkr->g", B, B) / B.shape[1] + np.finfo(float).tiny
    z = np.zeros_like(target)
    for _ in range(PROXIMAL_STEPS):
        before, z = (
            z,
            thin.thin_newton(B, target + curvature[:, None] * z, curvature, alpha, z, PROX_ACCURACY, MAX_SWEEPS),
        )
        moved = curvature * np.abs(z - before).max(axis=1)
        if (moved <= PROX_ACCURACY * np.abs(target).max(axis=1)).all():
            break
    return z


def _grow(H: Array, target: Array, alpha: Array) -> Array:
    """argmin ½ zᵀHz − ⟨target, z⟩ + Σ alpha|z|, from zero and one column more at a time: the one that is missed most.

    Plain coordinate descent would share weight among collinear columns, and take for ever to move it to the cheapest.
    """
    z, n = np.zeros_like(target), target.shape[1]
    trace, active = np.full(len(z), 1e-15), alpha == 0
    for _ in range(n + 1):
        missed = np.where(active, 0.0, np.abs(target - by_node(H, z)) - alpha)
        worst = missed.argmax(axis=1)
        more = missed.max(axis=1) > PROX_ACCURACY * np.abs(target).max(axis=1)
        active[more, worst[more]] = True
        z = _descend(H, target, trace, np.where(active, alpha, NEVER), z, MAX_SWEEPS)
        if not more.any():
            break
    return z


def _descend(
    H: Array, target: Array, curvature: Array, alpha: Array, start: Array, max_sweeps: int, of: Array | None = None
) -> Array:
    """argmin ½ zᵀ(H + curvature)z − ⟨target, z⟩ + Σ alpha|z|."""
    return descent.coordinate_descent(H, target, curvature, alpha, start, PROX_ACCURACY, max_sweeps, of)
