"""Losses with a proximal term (ρ/2)‖w − v‖² added, or a linear one, −⟨force, w⟩."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.reference.exact import EPS
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses, dot, sum_by_group
from coterie.problem.losses.design import Support
from coterie.problem.losses.quadratic import Quadratics

CONSENSUS_STEPS = 100  # for the first balance of the steps, which is a guess anyway


def with_proximal_terms(
    problem: BoundProblem, nodes: NDArray[np.int64], *, rho: Array, v: Array, force: Array
) -> BoundProblem:
    """Return the problem with (ρ_i/2)‖w_i − v_i‖² − ⟨force_i, w_i⟩ added at some nodes, labelled or not."""
    M = np.union1d(problem.M, nodes)
    at = np.searchsorted(M, nodes)
    all_rho, all_v, all_force = np.zeros(len(M)), np.zeros((len(M), v.shape[1])), np.zeros((len(M), v.shape[1]))
    all_rho[at], all_v[at], all_force[at] = rho, v, force
    place = np.searchsorted(M, problem.M)
    f: LocalLosses
    if problem.f.quadratic is not None and not force.any():
        f = _proximal_quadratics(problem.f.quadratic, place, all_rho, all_v)
    else:
        kind = SmoothProximalLosses if problem.f.smooth and not force.any() else ProximalLosses
        f = kind(problem.f, place, all_rho, all_v, all_force)
    return replace(problem, M=M, f=f)


@dataclass(frozen=True, eq=False)
class ProximalLosses(LocalLosses):
    """L_i(w) + (ρ_i/2)‖w − v_i‖² − ⟨s_i, w⟩, where L_i is zero at nodes that have no label.

    Attributes
    ----------
    base : LocalLosses
    place : array of int
        Where the nodes of `base` stand among all.
    rho, v, s : arrays of shape (K,), (K, n) and (K, n)
    """

    base: LocalLosses
    place: NDArray[np.int64]
    rho: Array
    v: Array
    s: Array

    def value(self, w: Array) -> Array:
        total = 0.5 * self.rho * ((w - self.v) ** 2).sum(axis=1) - dot(self.s, w)
        total[self.place] += self.base.value(w[self.place])
        return total

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        share = 1.0 / (self.rho + 1.0 / tau)
        z = share[:, None] * (self.rho[:, None] * self.v + v / tau[:, None] + self.s)
        z[self.place] = self.base.prox(z[self.place], share[self.place], start[self.place])
        return z

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """(L + Q)*(p) ≤ L*(p₁) + Q*(p₂) for p₁ + p₂ = p, with equality at the best split: p₂ = ρ(w − v)."""
        w, rest = self._apart(p, near)
        first, value = np.zeros_like(p), np.zeros(len(p))
        first[self.place], value[self.place] = self.base.conjugate(rest[self.place], w[self.place])
        tied = self.rho > 0
        second = np.where(tied[:, None], p + self.s - first, 0.0)
        value += dot(second, self.v) + 0.5 * (second**2).sum(axis=1) / np.where(tied, self.rho, 1.0)
        return first + second - self.s, value

    def split_dual(self, p: Array, near: Array) -> Array:
        s = -self.s
        if self.base.l1_box is not None:
            w, rest = self._apart(p, near)
            s[self.place] += self.base.split_dual(rest[self.place], w[self.place])
        return s

    def _apart(self, p: Array, near: Array) -> tuple[Array, Array]:
        """The w that attains the supremum in (L + Q)*(p), or `near` where nothing ties it, and L's part of p."""
        tied, p = self.rho > 0, p + self.s
        rho = np.where(tied, self.rho, 1.0)
        w = self.v + p / rho[:, None]
        w[self.place] = self.base.prox(w[self.place], 1.0 / rho[self.place], near[self.place])
        w = np.where(tied[:, None], w, near)
        return w, p - self.rho[:, None] * (w - self.v)

    @property
    def l1_box(self) -> tuple[Array, Array] | None:
        """A force is a box of one point."""
        if self.base.l1_box is None and not self.s.any():
            return None
        lower, upper = -self.s, -self.s
        if self.base.l1_box is not None:
            lower[self.place] += self.base.l1_box[0]
            upper[self.place] += self.base.l1_box[1]
        return lower, upper

    @cached_property
    def smooth_part(self) -> LocalLosses:
        if self.l1_box is None:
            return self
        return replace(self, base=self.base.smooth_part, s=np.zeros_like(self.s))

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        """By consensus: everyone moves towards the mean of its group, and the group towards everyone."""
        size = np.maximum(np.bincount(groups, minlength=n_groups), 1)[:, None]
        pull = np.full(len(groups), max(float(self.rho.mean()), np.finfo(float).tiny))
        v, y = np.zeros((n_groups, self.v.shape[1])), np.zeros_like(self.v)
        x = y
        for _ in range(CONSENSUS_STEPS):
            x = self.prox(v[groups] - y, 1.0 / pull, x)
            v = sum_by_group(x + y, groups, n_groups) / size
            y = y + x - v[groups]
        return v, -pull[:, None] * y

    def support(self, p: Array, w: Array) -> Support:
        """What supports L_i, and the tangent of the proximal term with the slope that is left."""
        _, rest = self._apart(p, w)
        base = self.base.support(rest[self.place], w[self.place])
        at, q, low, rounding_bound = np.zeros(len(p)), np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
        at[self.place], q[self.place] = base.at, base.q
        low[self.place], rounding_bound[self.place] = base.low, base.rounding_bound
        b = np.where((self.rho > 0)[:, None], p + self.s - q, 0.0)
        quadratic = dot(b, w - self.v), -0.5 * (b**2).sum(axis=1) / np.where(self.rho > 0, self.rho, 1.0)
        force = -dot(self.s, w)
        size = sum(map(np.abs, quadratic)) + np.abs(force) + np.abs(at)
        at += sum(quadratic) + force - (16 + p.shape[1]) * EPS * size
        rounding_bound += 4 * EPS * (np.abs(b) + np.abs(self.s)) + EPS * np.abs(q)
        return Support(at, q + (b - self.s), low, rounding_bound)

    @property
    def row_space(self) -> Array | None:
        """A proximal term sees everything; a force sees nothing."""
        K, n = self.v.shape
        rows = np.zeros((K, n, n))
        if self.base.row_space is None:
            rows[self.place] = np.eye(n)
        else:
            rows[self.place, : self.base.row_space.shape[1]] = self.base.row_space
        rows[self.rho > 0] = np.eye(n)
        sees_all = np.einsum("irk->i", rows**2) > n - 0.5
        return None if sees_all.all() else rows


@dataclass(frozen=True, eq=False)
class SmoothProximalLosses(ProximalLosses):
    """The same, without force, where L_i is smooth."""

    smooth: ClassVar[bool] = True

    def gradient(self, w: Array) -> Array:
        total = self.rho[:, None] * (w - self.v)
        total[self.place] += self.base.gradient(w[self.place])
        return total

    def hessian(self, w: Array) -> Array:
        total = self.rho[:, None, None] * np.eye(w.shape[1])
        total[self.place] += self.base.hessian(w[self.place])
        return total


def _proximal_quadratics(q: Quadratics, place: NDArray[np.int64], rho: Array, v: Array) -> Quadratics:
    """q_i(w) + (ρ_i/2)‖w − v_i‖² as quadratics: least squares with n more rows per node."""
    (K, n), d = v.shape, q.design
    tied, ridged = np.flatnonzero(rho > 0), np.flatnonzero(d.ridge)
    extra, columns = np.repeat(tied, n), np.tile(np.arange(n), len(tied))
    nodes = np.concatenate([np.repeat(place, np.diff(d.starts)), extra, np.repeat(place, len(ridged))])
    columns = np.concatenate([columns, np.tile(ridged, len(place))])
    order = np.argsort(nodes, kind="stable")
    X = np.concatenate([d.X, np.eye(n)[columns]])[order]
    y = np.concatenate([d.y, v[tied].ravel(), np.zeros(len(place) * len(ridged))])[order]
    s = np.concatenate([d.s, np.repeat(0.5 * rho[tied], n), np.tile(d.ridge[ridged], len(place))])[order]
    rows = LabelledRows(np.arange(K), np.bincount(nodes, minlength=K), X, y, s)
    return Quadratics.from_rows(rows, s, np.zeros(n))
