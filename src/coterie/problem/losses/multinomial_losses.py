"""Sums over rows of several classes: primal updates, conjugates, pooled models, and rows that lie below them.

A row of class y is K − 1 rows x ⊗ (e_k − e_y), one for every other class k, with one function of all their margins. So
forces are those of such rows. With a logistic loss of its own each, and a factor of 1/(K − 1), they lie below the loss:
log(1 + Σ e^{e_k}) ≥ log(1 + e^{e_k}) for every k. No objective of theirs is larger, so what they enclose is enclosed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.kernels.reference import classes
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array, rows_of
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses, Model, ThinModel, balanced
from coterie.problem.losses.design import Design, Support
from coterie.problem.losses.logistic import Logistic
from coterie.problem.losses.row_losses import (
    CLOSER,
    CONJUGATE_STEPS,
    FEW,
    MAX_STEPS,
    PROX_ACCURACY,
    directions_seen,
    trace_of_curvature,
)

kernels = Either("classes")

SETTLING, SHRINK, LITTLE, STILL = 40, 0.2, 1e-9, 1e-13  # proximal steps, with so little curvature in the end


@dataclass(frozen=True, eq=False)
class MultinomialLosses(LocalLosses):
    """Losses of the nodes that `rows` belong to: `scale` is the factor of each row, `ridge` (K n,) of each weight."""

    smooth: ClassVar[bool] = True
    rows: LabelledRows
    scale: Array
    ridge: Array

    @property
    def n_classes(self) -> int:
        return len(self.ridge) // self.rows.X.shape[1]

    def value(self, w: Array) -> Array:
        """With scores in twice the precision."""
        out = np.empty(len(w))
        kernels.values(*self._data, w, out)
        return np.where(np.isnan(out), np.inf, out)  # sums that overflow

    def ceiling(self, level: float, w: Array) -> float:
        """ψ changes by no more than the largest change of a margin."""
        miss = np.empty(len(self.scale))
        kernels.misses(self.rows.X, self.rows.y, self.rows.starts, w, miss)
        return level + float((self.scale * miss).sum()) * classes.SURE

    def gradient(self, w: Array) -> Array:
        q, low, _ = self._forces(self._others(w), w)
        return q + low

    def hessian(self, w: Array) -> Array:
        return self._model(w, w).H

    def model(self, w: Array, before: Array | None) -> Model:
        return self._model(w, before)

    def _model(self, w: Array, before: Array | None) -> Model:
        slope, H = np.empty_like(w), np.empty((*w.shape, w.shape[1]))
        change = kernels.model(*self._data, w, w[:0] if before is None else before, slope, H)
        return Model(slope, H, change)

    @property
    def are_thin(self) -> bool:
        return 2 * self._rank <= len(self.ridge)

    @cached_property
    def _rank(self) -> int:
        """How many rows make up the curvature of a node, at most."""
        return (self.n_classes - 1) * int(self.rows.m.max(initial=0))

    def thin_model(self, w: Array, before: Array | None) -> ThinModel | None:
        if not self.are_thin:
            return None
        slope, Z = np.empty_like(w), np.empty((len(w), self._rank, w.shape[1]))
        change = kernels.thin_model(*self._data, w, w[:0] if before is None else before, slope, Z)
        return ThinModel(slope, 2 * self.ridge, Z, change)

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        return self._newton(np.zeros_like(v), v, 1.0 / tau, start, PROX_ACCURACY, MAX_STEPS)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """For any chances p_r, L* is at most −Σ_r s_r (entropy of p_r) + ridge ‖w‖² at their forces and 2 ridge w.

        Newton looks for the w whose chances make q = p.
        """
        a, w = self._duals(p, near)
        q, low, _ = self._forces(a, w)
        entropy = classes.entropies(a / self.scale[:, None], self.rows.y)
        return q + low, w**2 @ self.ridge - classes.sums(self.rows.starts, self.scale * entropy)

    def support(self, p: Array, w: Array) -> Support:
        """From the chances at the weights that Newton finds for p."""
        (a, there), at = self._duals(p, w), np.empty(len(w))
        kernels.lower_bounds(*self._data, w, a, 2 * self.ridge * there, at)
        return Support(np.where(np.isnan(at), -np.inf, at), *self._forces(a, there))

    def _duals(self, p: Array, near: Array) -> tuple[Array, Array]:
        """The duals (N, K) of other classes behind forces near p, and weights that have both."""
        w = self._attaining(p, near)
        return self._others(w), w

    def _others(self, w: Array) -> Array:
        """The duals (N, K) of other classes at these weights."""
        a = np.empty((len(self.scale), self.n_classes))
        kernels.duals(self.rows.X, self.rows.y, self.scale, self.rows.starts, w, a)
        return a

    def _forces(self, a: Array, w: Array) -> tuple[Array, Array, Array]:
        """The forces of these duals and of the ridge at w in twice the precision, and a bound on the error of that."""
        q, low, size = (np.empty_like(w) for _ in range(3))
        kernels.forces(self.rows.X, self.rows.y, self.rows.starts, a, 2 * self.ridge * w, q, low, size)
        terms = ((self.n_classes - 1) * self.rows.m + 2.0)[:, None] * EPS
        return q, low, size * terms**2

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        size = np.maximum(np.bincount(groups, minlength=n_groups), 1)
        of = np.repeat(groups, self.rows.m)
        order = np.argsort(of, kind="stable")
        X, y, s = self.rows.X[order], self.rows.y[order], (self.scale / size[of])[order]
        data = X, y, s, np.concatenate([[0], np.cumsum(np.bincount(of, minlength=n_groups))]), self.ridge
        v = np.zeros((n_groups, len(self.ridge)))
        curvature = np.bincount(of[order], s * (X**2).sum(axis=1), minlength=n_groups) + np.finfo(float).tiny
        first = SETTLING if self.ridge.all() else 0  # a ridge holds every weight: nothing has to settle slowly
        for step in range(first, first + SETTLING):
            before, kappa = v, curvature * max(SHRINK**step, LITTLE)
            v = kernels.newton(*data, np.zeros_like(v), v, kappa, v, PROX_ACCURACY, MAX_STEPS)
            if (np.abs(v - before).max(axis=1) <= STILL * (1 + np.abs(v).max(axis=1))).all():
                break
        return v, balanced(self.gradient(v[groups]), groups, n_groups)

    @cached_property
    def below(self) -> Design:
        """Rows of two classes, K − 1 for each row, whose losses add up to no more than those of these."""
        n, K = self.rows.X.shape[1], self.n_classes
        row, other = np.nonzero(classes.others(self.rows.y, K))
        X = np.zeros((len(row), K, n))
        X[np.arange(len(row)), other] = self.rows.X[row]
        X[np.arange(len(row)), self.rows.y.astype(np.int64)[row]] = -self.rows.X[row]
        s = self.scale[row] / (K - 1) * (1 - EPS)
        return Design(
            ONE_AGAINST_ONE, X.reshape(-1, K * n), np.zeros(len(row)), s, (K - 1) * self.rows.starts, self.ridge
        )

    def in_units(self, x: float, y: float) -> tuple[MultinomialLosses, float]:
        return replace(self, rows=replace(self.rows, X=self.rows.X / x), ridge=self.ridge / x**2), 1.0

    def in_columns(self, t: Array) -> MultinomialLosses | None:
        """Where a column is the same for all classes."""
        of_class = t.reshape(self.n_classes, -1)
        if (of_class != of_class[0]).any():
            return None
        return replace(self, rows=replace(self.rows, X=self.rows.X / of_class[0]), ridge=self.ridge / t**2)

    def of_nodes(self, which: NDArray[np.int64]) -> MultinomialLosses:
        return replace(self, rows=self.rows.of_nodes(which), scale=self.scale[rows_of(self.rows.starts, which)])

    @cached_property
    def row_space(self) -> Array | None:
        """What rows see of columns without a ridge, in all directions but that of one vector for all classes."""
        n, K = self.rows.X.shape[1], self.n_classes
        ridged, others = np.flatnonzero(self.ridge[:n]), np.flatnonzero(self.ridge[:n] == 0)
        if not len(others):
            return None
        seen = directions_seen(replace(self.rows, X=np.ascontiguousarray(self.rows.X[:, others])))
        if seen is None:
            seen = np.broadcast_to(np.eye(len(others)), (len(self.rows.M), len(others), len(others)))
        apart = np.linalg.svd(np.eye(K) - 1 / K)[2][: K - 1]
        r = seen.shape[1]
        out = np.zeros((len(seen), K * len(ridged) + (K - 1) * r, K, n))
        whole = np.arange(K * len(ridged))
        out[:, whole, whole // max(len(ridged), 1), np.tile(ridged, K)] = 1.0
        between = np.einsum("jk,irc->ijrkc", apart, seen).reshape(len(seen), (K - 1) * r, K, len(others))
        out[:, len(whole) :, :, others] = between
        return out.reshape(*out.shape[:2], K * n)

    @property
    def _data(self) -> tuple[Array, Array, Array, NDArray[np.int64], Array]:
        return self.rows.X, self.rows.y, self.scale, self.rows.starts, self.ridge

    def _attaining(self, p: Array, near: Array) -> Array:
        """The w with ∇L(w) = p, or close to it: a trace of curvature keeps it from running away."""
        trace = np.full(len(p), trace_of_curvature(self.rows.X))
        if p.size > FEW:
            return self._newton(p, None, trace, near, EPS, CONJUGATE_STEPS)
        for _ in range(CLOSER):
            w = self._newton(p, near, trace, near, PROX_ACCURACY, CONJUGATE_STEPS)
            near, moved = w, np.abs(w - near).max(initial=0.0)
            if moved <= 1e-4 * np.abs(w).max(initial=0.0):
                break
        return w

    def _newton(
        self, p: Array, anchor: Array | None, curvature: Array, start: Array, accuracy: float, max_steps: int
    ) -> Array:
        return kernels.newton(*self._data, p, anchor, curvature, start, accuracy, max_steps)


class OneAgainstOne(Logistic):
    """The ψ of the rows below: as for two classes, and why there may be no minimiser."""

    no_minimiser = (
        "Some class can be separated from the others, or one is never seen in a part of the network, so that weights "
        "grow without end; a ridge on every column prevents it."
    )


ONE_AGAINST_ONE = OneAgainstOne()
