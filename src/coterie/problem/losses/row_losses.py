"""Sums over rows of a smooth scalar function ψ: primal updates, conjugates and pooled models, for any ψ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array, rows_of
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses, Model, balanced
from coterie.problem.losses.design import Design, Support
from coterie.problem.losses.pooling import pooled_minimiser
from coterie.problem.losses.psi import Psi
from coterie.problem.losses.quadratic import Quadratics

node_solvers, models, kinks = Either("node_solvers"), Either("model"), Either("kinks")

PROX_ACCURACY = 1e-12  # Newton ends when the gradient of the inner problem is this small, relative to its terms
ROUGH = 1e-3  # the same where models will make up for it: one or two steps
MAX_STEPS = 60
CLEAR = 1e-6  # the determinant of a correlation matrix, which is at most e times its smallest eigenvalue
CONJUGATE_STEPS = 12  # any end of the descent gives a valid bound
CHEAP = 32  # columns, up to which a model costs little, however few the rows are
ACCURACY, SWEEPS = 1e-13, 3_000  # of ascent on duals of rows
STIFF = 1e6  # times the trace of curvature: what holds weights back where duals of rows are sought
FEW_ROWS = 2  # rows per column up to which that is faster than Newton's method
MUCH = 1e300  # a change that models of outliers may have twice as often as ∞: nodes that see little end on clusters
CLOSER, FEW = 3, 20_000  # times that descent, each from where the last one ended, where weights are that few


@dataclass(frozen=True, eq=False)
class RowLosses(LocalLosses):
    """Losses of the nodes that `rows` belong to: `scale` is the factor of each row, `ridge` of each column."""

    smooth: ClassVar[bool] = True
    psi: Psi
    rows: LabelledRows
    scale: Array
    ridge: Array

    def value(self, w: Array) -> Array:
        return self.design.values(w)

    def gradient(self, w: Array) -> Array:
        q, low, _ = self.design.forces(*self.design.slopes(w))
        return q + low

    def hessian(self, w: Array) -> Array:
        return self._model(w, w).H

    def working_hessian(self, w: Array) -> Array:
        if type(self.psi).working_bend is Psi.working_bend:
            return self.hessian(w)
        H, diagonal = np.empty((*w.shape, w.shape[1])), np.diag(2 * self.ridge)
        for block in self.rows.blocks:
            margin = np.einsum("imk,ik->im", block.X, w[block.of])
            e = self.psi.direction(block.y) * margin + self.psi.shift(block.y)
            bend = self.scale[block.rows] * self.psi.working_bend(e, block.y)
            H[block.of] = (block.X * bend[:, :, None]).transpose(0, 2, 1) @ block.X + diagonal
        return H

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        if self._goes_by_rows:
            last = self.__dict__.setdefault("_last", np.zeros(len(self.scale)))
            return self._by_rows(np.zeros_like(v), v, 1 / tau, last)[1]
        return self._newton(np.zeros_like(v), v, 1.0 / tau, start, PROX_ACCURACY, MAX_STEPS)

    def rough_prox(self, v: Array, tau: Array, start: Array) -> Array:
        if not self.psi.self_concordant:
            return self.prox(v, tau, start)
        return self._newton(np.zeros_like(v), v, 1.0 / tau, start, ROUGH, MAX_STEPS)

    @property
    def _goes_by_rows(self) -> bool:
        """Whether rows are few enough for what is next, and can be at a bound."""
        return self.psi.clipped and self.rows.m.max(initial=0) <= FEW_ROWS * len(self.ridge)

    def _by_rows(self, p: Array, anchor: Array, curvature: Array, b: Array) -> tuple[Array, Array]:
        """What `_newton` minimises, by the duals of rows: from −b, which is moved; mostly as many are at a bound.

        Return those duals, and weights.
        """
        design, (D, c) = self.design, kinks.parabolas(p, anchor, curvature, self.ridge)
        (low, high), z, room = design.limits, np.empty_like(anchor), vector_buffer(len(self.ridge))
        ends = -high, -low, self._give
        target = -self.psi.direction(design.y) * self.psi.shift(design.y)
        kinks.box_ascent(room, design.X, target, design.starts, D, c, *ends, b, z, ACCURACY, SWEEPS)
        return -b, z

    @cached_property
    def _give(self) -> Array:
        """1/(s ψ″) of each row, where ψ is a parabola."""
        return 1 / (self.scale * self.psi.curvature)

    def model(self, w: Array, before: Array | None) -> Model | None:
        """The curvature of a row is the most that it can have as far as its margin has moved.

        None where there are none.
        """
        if not self.has_models:
            return None
        found = self._model(w, before)
        if self.trace_of_models:
            np.einsum("ikk->ik", found.H)[...] += self.trace_of_models
        all_bent = not self.psi.straight or bool(self.design.bend(w).all())
        change, everywhere = self.reach_of_model(found.change, before is None, all_bent)
        return found._replace(change=change, everywhere=everywhere)

    @cached_property
    def has_models(self) -> bool:
        """Not where nodes have few rows: a primal update by rows is cheaper than a model of n × n numbers.

        And not where ψ does not say how fast its curvature grows.
        """
        n = len(self.ridge)
        few = n > CHEAP and 2 * len(self.rows.X) <= len(self.rows.M) * n
        return not few and (self.psi.curvature < np.inf or self.psi.self_concordant)

    @property
    def trace_of_models(self) -> float:
        """What curvatures of models have more than those of rows, where some rows have none, for now."""
        return 0.0 if self.psi.self_concordant else self._trace

    def reach_of_model(self, change: float, first: bool, all_bent: bool) -> tuple[float, bool]:
        """By how much curvature has changed since the last model, and whether the new one is above L_i everywhere.

        Where ψ is a straight line, a quadratic above it has a curvature that it has not, however little weights move.
        """
        if not self.psi.self_concordant:
            unknown = np.inf if self.sees_all else MUCH
            return (0.0 if all_bent else unknown), True
        if self.psi.curvature == np.inf:
            return (np.inf if first else change), False
        return change, True

    def _model(self, w: Array, before: Array | None) -> Model:
        rows, (count, n) = self.rows, w.shape
        slope, H = np.empty((count, n)), np.empty((count, n, n))
        data = rows.X, rows.y, self.scale, rows.starts, self.ridge
        before = w[:0] if before is None else before
        change = models.row_model(self.psi, vector_buffer(n), *data, w, before, slope, H)
        return Model(slope, H, change)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """At q = ∇L(w), whatever w is, L*(q) = ⟨q, w⟩ − L(w) exactly; Newton looks for the w with q = p.

        With t_r = ψ′(e_r) that difference is Σ_r s_r [ψ*(t_r) − t_r shift_r] + ridge ‖w‖², in which nothing cancels,
        however large w is.
        """
        design = self.design
        w = self._attaining(p, near)
        a, b = design.slopes(w)
        q, low, _ = design.forces(a, b)
        t = a * self.psi.direction(design.y) / design.s
        terms = design.s * (self.psi.conjugate(t, design.y) - t * self.psi.shift(design.y))
        node = np.repeat(np.arange(len(w)), np.diff(design.starts))
        return q + low, w**2 @ self.ridge + np.bincount(node, terms, minlength=len(w))

    def support(self, p: Array, w: Array) -> Support:
        """From the duals at the weights that Newton finds for p."""
        return self.design.support(*self.design.slopes(self._attaining(p, w)), w)

    def duals_near(self, p: Array, w: Array) -> tuple[Array, Array]:
        """Duals of rows and ridge that suit slopes p and weights near w."""
        if not self._goes_by_rows:
            return self.design.slopes(self._attaining(p, w))
        a, z = self._by_rows(p, w, np.full(len(w), STIFF * self._trace), -self.design.slopes(w)[0])
        return a, 2 * self.ridge * z

    @cached_property
    def design(self) -> Design:
        rows = self.rows
        return Design(self.psi, rows.X, rows.y, self.scale, rows.starts, self.ridge)

    def in_units(self, x: float, y: float) -> tuple[RowLosses, float]:
        psi, value = self.psi.in_units(y)
        rows = replace(self.rows, X=self.rows.X / x, y=self.rows.y / y)
        return replace(self, psi=psi, rows=rows, ridge=self.ridge / x**2 * (y**2 / value)), value

    def of_nodes(self, which: NDArray[np.int64]) -> RowLosses:
        return replace(self, rows=self.rows.of_nodes(which), scale=self.scale[rows_of(self.rows.starts, which)])

    def in_columns(self, t: Array) -> RowLosses:
        return replace(self, rows=replace(self.rows, X=self.rows.X / t), ridge=self.ridge / t**2)

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        v = pooled_minimiser(self.design, groups, n_groups)
        return v, balanced(self.gradient(v[groups]), groups, n_groups)

    @cached_property
    def row_space(self) -> Array | None:
        """Columns with a ridge, and what the rows see of the others."""
        ridged, others, n = np.flatnonzero(self.ridge), np.flatnonzero(self.ridge == 0), len(self.ridge)
        rows = replace(self.rows, X=np.ascontiguousarray(self.rows.X[:, others])) if len(ridged) else self.rows
        seen = directions_seen(rows) if len(others) else None
        if seen is None or not len(ridged):
            return seen
        out = np.zeros((len(seen), len(ridged) + seen.shape[1], n))
        out[:, np.arange(len(ridged)), ridged] = 1.0
        out[:, len(ridged) :, others] = seen
        return out

    @cached_property
    def sees_all(self) -> bool:
        few = self.rows.m.min(initial=len(self.ridge)) < (self.ridge == 0).sum()
        return not few and self.row_space is None

    def _attaining(self, p: Array, near: Array) -> Array:
        """The w with ∇L(w) = p, or close to it: a trace of curvature keeps it from running away."""
        trace = np.full(len(p), self._trace)
        if p.size > FEW:
            return self._newton(p, None, trace, near, EPS, CONJUGATE_STEPS)
        for _ in range(CLOSER):
            w = self._newton(p, near, trace, near, PROX_ACCURACY, CONJUGATE_STEPS)
            near, moved = w, np.abs(w - near).max(initial=0.0)
            if moved <= 1e-4 * np.abs(w).max(initial=0.0):
                break
        return w

    @cached_property
    def _trace(self) -> float:
        return trace_of_curvature(self.rows.X)

    def _newton(
        self, p: Array, anchor: Array | None, curvature: Array, start: Array, accuracy: float, max_steps: int
    ) -> Array:
        """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node; None: the anchor is z itself."""
        rows, aim = self.rows, (p, anchor, curvature, start, accuracy, max_steps)
        data = rows.X, rows.y, self.scale, rows.starts, self.ridge
        return node_solvers.newton(self.psi, vector_buffer(len(self.ridge)), *data, *aim)


def trace_of_curvature(X: Array) -> float:
    """Next to nothing beside the curvature of such rows."""
    size = float(np.mean(X**2)) if X.size else 0.0
    return 1e-9 * size + float(np.finfo(float).tiny)


def directions_seen(rows: LabelledRows) -> Array | None:
    """Orthonormal rows (|M|, r, n) that span the rows of each node; None: all nodes see everything."""
    if _see_clearly(rows):
        return None
    return Quadratics.from_rows(rows, rows.weights, np.zeros(rows.X.shape[1])).row_space


def _see_clearly(rows: LabelledRows) -> bool:
    """Whether the correlations of every node's columns leave no doubt that its rows see all directions."""
    for block in rows.blocks:
        if block.X.shape[1] < block.X.shape[2]:
            return False
        gram = np.matmul(block.X.transpose(0, 2, 1), block.X)
        with np.errstate(all="ignore"):
            length = np.sqrt(np.einsum("ikk->ik", gram))
            even = gram / length[:, :, None] / length[:, None, :]
            if not (np.linalg.det(even) > CLEAR).all():
                return False
    return True
