"""Any smooth losses with what weights cost by themselves: ℓ1 norms, and bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses, Model, balanced, by_node, dot, sum_by_group
from coterie.problem.losses.design import Design
from coterie.problem.losses.ground import SWEEPS, Ground
from coterie.problem.losses.quadratic import Quadratics
from coterie.problem.losses.sparse_quadratics import SparseQuadratics

STEPS, STILL = 60, 1e-13  # Newton steps at most; one that is this small, relatively, is the last
HALVINGS, FURTHEST = 30, 1e100  # a step beyond that comes from a system that is singular; its square may overflow
CONJUGATE_STEPS, CONJUGATE_SWEEPS = 12, 25  # any end of the descent gives a valid bound
LITTLE, SPLIT_CURVATURE = 1e-9, 0.01  # of the curvature of the losses, added around the weights where duals are sought
SETTLING, SHRINK = 20, 0.1  # proximal steps of pooled models, with ever less curvature


@dataclass(frozen=True, eq=False)
class GroundedLosses(LocalLosses):
    """L_i(w) = f_i(w) + h(w)."""

    f: LocalLosses
    ground: Ground

    def prepare(self) -> None:
        self.f.prepare()

    def value(self, w: Array) -> Array:
        return self.f.value(w) + self.ground.value(w)

    def exact(self, w: Array) -> Array:
        return self.f.exact(w) + self.ground.value(w)

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        return _newton(self.f, self.ground, np.zeros_like(v), v, 1 / tau, start, STEPS, SWEEPS)

    def model(self, w: Array, before: Array | None) -> Model | None:
        model = self.f.model(w, before)
        if model is None and self.f.quadratic is not None:
            model = Model(self.f.gradient(w), self.f.hessian(w), 0.0)
        return None if model is None else model._replace(ground=self.ground)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """L_i* is the infimal convolution of f_i* and h*: any split of p bounds it."""
        w = self._attaining(p, near, LITTLE)
        q, value = self.f.conjugate(self.f.gradient(w), w)
        s = np.clip(p - q, *self.l1_box)
        return q + s, value + self.ground.conjugate(s).sum(axis=1)

    def split_dual(self, p: Array, near: Array) -> Array:
        w = self._attaining(p, near, SPLIT_CURVATURE)
        return np.clip(p - self.f.gradient(w), *self.l1_box)

    def box_cost(self, s: Array) -> Array:
        return self.ground.conjugate(s)

    @property
    def bounds(self) -> tuple[Array, Array] | None:
        return (self.ground.lower, self.ground.upper) if self.ground.has_bounds else None

    def tight_box(self, w: Array) -> tuple[Array, Array]:
        return self.ground.slopes(w)

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        size = np.maximum(np.bincount(groups, minlength=n_groups), 1)[:, None]
        together = _Together(self.f, groups, n_groups, size)
        v = self.ground.clip(np.zeros((n_groups, len(self.ground.alpha))))
        curvature = np.bincount(groups, self._size, minlength=n_groups) / size[:, 0] + np.finfo(float).tiny
        for step in range(SETTLING):
            before, kappa = v, curvature * max(SHRINK**step, LITTLE)
            v = _newton(together, self.ground, np.zeros_like(v), v, kappa, v, STEPS, SWEEPS)
            if step and (np.abs(v - before).max(axis=1) <= STILL * (1 + np.abs(v).max(axis=1))).all():
                break
        v[np.bincount(groups, minlength=n_groups) == 0] = self.ground.clip(np.zeros(v.shape[1]))
        return v, balanced(self.f.gradient(v[groups]), groups, n_groups)

    @property
    def l1_box(self) -> tuple[Array, Array]:
        return self.ground.domain

    @property
    def smooth_part(self) -> LocalLosses:
        return self.f

    @property
    def design(self) -> Design | None:
        return self.f.design

    @property
    def below(self) -> Design | None:
        return self.f.below

    def ceiling(self, level: float, w: Array) -> float:
        return self.f.ceiling(level, w)

    def in_units(self, x: float, y: float) -> tuple[GroundedLosses, float] | None:
        changed = self.f.in_units(x, y)
        if changed is None:
            return None
        f, unit = changed
        return replace(self, f=f, ground=self.ground.in_units(y / x, unit)), unit

    def in_columns(self, t: Array) -> GroundedLosses | None:
        f = self.f.in_columns(t)
        return None if f is None else replace(self, f=f, ground=self.ground.in_columns(t))

    def of_nodes(self, which: NDArray[np.int64]) -> GroundedLosses:
        return replace(self, f=self.f.of_nodes(which))

    @cached_property
    def row_space(self) -> Array | None:
        return self.f.row_space

    @property
    def sees_all(self) -> bool:
        return self.f.sees_all

    def _curvature(self, part: float) -> Array:
        """A part of what rows have for curvature, about, at each node."""
        return part * self._size + np.finfo(float).tiny

    @cached_property
    def _size(self) -> Array:
        """Σ_r s_r ‖x_r‖²/n, and ridge."""
        d = self.below
        assert d is not None
        node = np.repeat(np.arange(d.n_nodes), np.diff(d.starts))
        return np.bincount(node, d.s * (d.X**2).mean(axis=1), minlength=d.n_nodes) + d.ridge.mean()

    def _attaining(self, p: Array, near: Array, part: float) -> Array:
        """The w that attains L_i*(p), or close to it: curvature around `near` keeps it from running away."""
        given = p, near, self._curvature(part), near
        return _newton(self.f, self.ground, *given, CONJUGATE_STEPS, CONJUGATE_SWEEPS)


def grounded(f: LocalLosses, ground: Ground) -> LocalLosses:
    """f with what weights cost by themselves, if they do."""
    if ground.is_nothing:
        return f
    if isinstance(f, Quadratics) and not ground.has_bounds:
        return SparseQuadratics(f, ground.alpha)
    return GroundedLosses(f, ground)


class _Together(NamedTuple):
    """Means of the losses of groups, as functions of one v for each."""

    f: LocalLosses
    groups: NDArray[np.int64]
    n_groups: int
    size: Array

    def value(self, v: Array) -> Array:
        return sum_by_group(self.f.value(v[self.groups])[:, None], self.groups, self.n_groups)[:, 0] / self.size[:, 0]

    def gradient(self, v: Array) -> Array:
        return sum_by_group(self.f.gradient(v[self.groups]), self.groups, self.n_groups) / self.size

    def working_hessian(self, v: Array) -> Array:
        return sum_by_group(self.f.working_hessian(v[self.groups]), self.groups, self.n_groups) / self.size[:, :, None]


def _newton(
    f: LocalLosses | _Together,
    ground: Ground,
    p: Array,
    anchor: Array,
    curvature: Array,
    start: Array,
    steps: int,
    sweeps: int,
) -> Array:
    """Minimise f_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 + h(z) for each node by Newton steps.

    Each step minimises a quadratic model with h. Full steps as long as each is half of the one before; otherwise, line
    search.
    """
    z, kappa = ground.clip(start), curvature[:, None]

    def objective(x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return f.value(x) - dot(p, x) + 0.5 * curvature * dot(x - anchor, x - anchor) + np.abs(x) @ ground.alpha

    longest = np.full(len(z), np.inf)
    for _ in range(steps):
        H = f.working_hessian(z)
        target = by_node(H, z) - f.gradient(z) + p + kappa * anchor
        step = ground.minimiser(H, target, curvature, z, sweeps) - z
        step[~np.isfinite(step).all(axis=1)] = 0.0
        size = np.abs(np.clip(step, -FURTHEST, FURTHEST, out=step)).max(axis=1, initial=0.0)
        unsure = np.flatnonzero(size > 0.5 * longest)
        if len(unsure):
            step[unsure] *= _lengths(objective, z, step, unsure)[:, None]
        z, longest = ground.clip(z + step), np.minimum(size, longest)
        if (size <= STILL * (1 + np.abs(z).max(axis=1, initial=0.0))).all():
            break
    return z


def _lengths(objective: object, z: Array, step: Array, nodes: NDArray[np.int64]) -> Array:
    """How long a step descends at these nodes: halve those that do not."""
    now, length = objective(z), np.ones(len(z))  # type: ignore[operator]
    for _ in range(HALVINGS):
        then = objective(z + length[:, None] * step)  # type: ignore[operator]
        short = ~(then <= now + 1e-14 * np.abs(now))
        if not short[nodes].any():
            break
        length[short] *= 0.5
    return length[nodes]
