"""Sums over rows of a ψ with a kink, and an ℓ1 norm: alpha|w_k| is one more row, with the dual s_k."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses
from coterie.problem.losses.design import Design
from coterie.problem.losses.kinked_losses import KinkedLosses


@dataclass(frozen=True, eq=False)
class SparseKinks(LocalLosses):
    """L_i(w) = f_i(w) + Σ_k alpha_k |w_k|."""

    f: KinkedLosses
    alpha: Array

    @cached_property
    def together(self) -> KinkedLosses:
        """The same as sums over rows: after those of each node, one row for every weight that alpha is for."""
        rows, k = self.f.rows, np.flatnonzero(self.alpha)
        last, count = np.repeat(rows.starts[1:], len(k)), len(rows.M)
        X = np.insert(rows.X, last, np.tile(np.eye(len(self.alpha))[k], (count, 1)), axis=0)
        y, scale, weights = (np.insert(part, last, value) for part, value in self._columns)
        limits = [
            np.insert(limit, last, np.tile(sign * self.alpha[k], count))
            for limit, sign in zip(self.f.dual_limits, (-1, 1), strict=True)
        ]
        more = LabelledRows(rows.M, rows.m + len(k), X, y, weights)
        return KinkedLosses(self.f.psi, more, scale, self.f.ridge, (limits[0], limits[1]))

    @property
    def _columns(self) -> tuple[tuple[Array, float], ...]:
        return (self.f.rows.y, 0.0), (self.f.scale, 1.0), (self.f.rows.weights, 1.0)

    def value(self, w: Array) -> Array:
        return self.f.value(w) + np.abs(w) @ self.alpha

    def exact(self, w: Array) -> Array:
        return self.f.exact(w) + np.abs(w) @ self.alpha

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        return self.together.prox(v, tau, start)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        s = self.split_dual(p, near)
        q, value = self.f.conjugate(p - s, near)
        return q + s, value

    def split_dual(self, p: Array, near: Array) -> Array:
        """Minus the duals of the rows of alpha."""
        _, b = self.together._attaining_duals(p, near)
        s, k = np.zeros_like(p), np.flatnonzero(self.alpha)
        last = self.together.rows.starts[1:, None] - len(k) + np.arange(len(k))
        s[:, k] = -b[last]
        return np.clip(s, -self.alpha, self.alpha)

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        return self.together.pooled(groups, n_groups)

    @property
    def l1_box(self) -> tuple[Array, Array]:
        return -self.alpha, self.alpha

    @property
    def smooth_part(self) -> KinkedLosses:
        return self.f

    @property
    def design(self) -> Design:
        return self.f.design

    @cached_property
    def row_space(self) -> Array | None:
        return self.f.row_space

    @property
    def sees_all(self) -> bool:
        return self.f.sees_all

    def in_units(self, x: float, y: float) -> tuple[SparseKinks, float]:
        f, unit = self.f.in_units(x, y)
        assert isinstance(f, KinkedLosses)
        return SparseKinks(f, self.alpha * (y / x) / unit), unit

    def of_nodes(self, which: NDArray[np.int64]) -> SparseKinks:
        f = self.f.of_nodes(which)
        assert isinstance(f, KinkedLosses)
        return SparseKinks(f, self.alpha)
