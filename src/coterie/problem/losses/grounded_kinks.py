"""Sums over rows of a ψ with a kink, with what weights cost by themselves: an ℓ1 norm, and bounds.

alpha|w_k| is one more row, whose dual lies within ±alpha. A bound is a row, too, which costs so much per unit outside
that weights outside do not pay: weights that are clipped to the bounds raise no total variation, and raise a loss by at
most its steepest slope times the way. So the minimum is the same, and weights are clipped when they are judged; bounds
from duals are those of the problem with bounds, whatever these rows cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import sum_by_group
from coterie.problem.losses.ground import Ground
from coterie.problem.losses.grounded_losses import GroundedLosses
from coterie.problem.losses.kinked_losses import KinkedLosses


@dataclass(frozen=True, eq=False)
class GroundedKinks(GroundedLosses):
    """L_i(w) = f_i(w) + h(w), where f_i has kinks."""

    f: KinkedLosses

    @cached_property
    def together(self) -> RowsOfWeights:
        """The same as sums over rows: after those of each node, those of its weights."""
        rows, ground = self.f.rows, self.ground
        kinds = tuple(np.flatnonzero(has) for has in (ground.alpha, ground.bounded_below, ground.bounded_above))
        norm, below, above = kinds
        alpha, most = np.tile(ground.alpha[norm], (len(rows.M), 1)), self._steepest
        low = np.concatenate([-alpha, np.zeros_like(most[:, below]), -most[:, above]], axis=1)
        high = np.concatenate([alpha, most[:, below], np.zeros_like(most[:, above])], axis=1)
        places = np.concatenate([np.zeros(len(norm)), ground.lower[below], ground.upper[above]])
        k = np.concatenate(kinds)
        last, count = np.repeat(rows.starts[1:], len(k)), len(rows.M)
        X = np.insert(rows.X, last, np.tile(np.eye(rows.X.shape[1])[k], (count, 1)), axis=0)
        y = np.insert(rows.y, last, np.tile(places, count))
        scale, weights = (np.insert(part, last, 1.0) for part in (self.f.scale, rows.weights))
        both = zip(self.f.dual_limits, (low, high), strict=True)
        low, high = (np.insert(limit, last, more.ravel()) for limit, more in both)
        given = self.f.psi, LabelledRows(rows.M, rows.m + len(k), X, y, weights), scale, self.f.ridge, (low, high)
        return RowsOfWeights(*given, ground=ground, columns=k, n_norms=len(norm))

    @property
    def _steepest(self) -> Array:
        """Twice the slope that the other terms can have between the bounds, or more, by node and column."""
        rows, ground = self.f.rows, self.ground
        node, size = np.repeat(np.arange(len(rows.M)), rows.m), np.maximum(*np.abs(self.f.dual_limits))
        slope = sum_by_group(size[:, None] * np.abs(rows.X), node, len(rows.M))
        ends = np.where(ground.bounded_below, np.abs(ground.lower), 0.0)
        ends = np.maximum(ends, np.where(ground.bounded_above, np.abs(ground.upper), 0.0))
        slope += ground.alpha + 2 * self.f.ridge * ends
        return 2 * slope + (slope.mean() if slope.any() else 1.0)

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        return self.ground.clip(self.together.prox(v, tau, start))

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        s = self.split_dual(p, near)
        q, value = self.f.conjugate(p - s, near)
        return q + s, value + self.ground.conjugate(s).sum(axis=1)

    def split_dual(self, p: Array, near: Array) -> Array:
        """Minus the duals of the rows of weights."""
        _, b = self.together._attaining_duals(p, near)
        s = -b[self.together.last] @ np.eye(p.shape[1])[self.together.columns]
        return np.clip(s, *self.l1_box)

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        v, slope = self.together.pooled(groups, n_groups)
        return self.ground.clip(v), slope


@dataclass(frozen=True, eq=False)
class RowsOfWeights(KinkedLosses):
    """Kinked losses whose last rows, at each node, are those of weights in these columns: first the ℓ1 norms."""

    ground: Ground = field(kw_only=True)
    columns: NDArray[np.int64] = field(kw_only=True)
    n_norms: int = field(kw_only=True)

    @cached_property
    def last(self) -> NDArray[np.int64]:
        """Which rows those are."""
        return self.rows.starts[1:, None] - len(self.columns) + np.arange(len(self.columns))

    def limits_at(self, p: Array, anchor: Array, curvature: Array) -> tuple[Array, Array]:
        """Bounds cost more where p, or an anchor outside, pulls weights out of them."""
        bounded, last = self.columns[self.n_norms :], self.last[:, self.n_norms :]
        if not len(bounded):
            return self.dual_limits
        pull = np.abs(p) + 2 * curvature[:, None] * np.abs(anchor - self.ground.clip(anchor))
        low, high = (limit.copy() for limit in self.dual_limits)
        low[last] -= np.where(low[last] < 0, pull[:, bounded], 0.0)
        high[last] += np.where(high[last] > 0, pull[:, bounded], 0.0)
        return low, high
