"""Logistic loss: networked classification with labels 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit

from coterie.problem.arrays import Array
from coterie.problem.datasets import Block, LabelledRows
from coterie.problem.losses.base import (
    LocalLosses,
    Loss,
    as_columns,
    by_node,
    check_strength,
    dot,
    linear_predictor,
    penalised_columns,
    sum_by_group,
)
from coterie.problem.losses.quadratic import Quadratics
from coterie.problem.losses.squared import Reduction, check_reduction, row_scale

ACCURACY = 1e-12  # Newton ends when the gradient of the inner problem is this small, relative to its terms
MAX_STEPS = 60
LAST_STEP = 1e-8  # a Newton step this small, relative to the weights, leaves an error that is only rounding
CONJUGATE_STEPS = 12  # any end of the descent gives a valid bound


@dataclass(frozen=True)
class Logistic(Loss):
    """L_i(w) = (1/m_i) Σ_r [log(1 + e^{⟨x_r, w⟩}) − y_r ⟨x_r, w⟩] + ridge ‖w‖₂²,  y_r ∈ {0, 1}.

    PU_i has no closed form: damped Newton from the last weights, to a relative gradient of 1e-12.

    Parameters
    ----------
    ridge : float
        Without ridge, nodes that separate perfectly have no finite minimiser of their own.
    unpenalised : tuple of int
        Columns, such as an intercept, that ridge leaves alone.
    reduction : "mean" or "sum"
        As for :class:`SquaredError`.
    """

    ridge: float = 0.0
    unpenalised: tuple[int, ...] = ()
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        object.__setattr__(self, "unpenalised", as_columns(self.unpenalised))
        check_strength(self.ridge, "ridge")
        check_reduction(self.reduction)

    def bind(self, rows: LabelledRows) -> LogisticLosses:
        wrong = np.flatnonzero((rows.y != 0) & (rows.y != 1))
        if wrong.size:
            node = np.repeat(rows.M, rows.m)[wrong[0]]
            raise ValueError(f"logistic labels are 0 or 1, but node {node} has the label {rows.y[wrong[0]]:g}")
        ridge = self.ridge * penalised_columns(rows.X.shape[1], self.unpenalised)
        return LogisticLosses(rows, row_scale(rows, self.reduction), ridge)

    def predict(self, X: Array, w: Array) -> Array:
        """The class: 1 where ⟨x, w⟩ ≥ 0, otherwise 0."""
        return (linear_predictor(X, w) >= 0).astype(np.float64)

    def predict_proba(self, X: Array, w: Array) -> Array:
        """The probability of class 1."""
        return np.asarray(expit(linear_predictor(X, w)))

    def error(self, X: Array, y: Array, w: Array) -> Array:
        z = linear_predictor(X, w)
        return np.logaddexp(0, z) - y * z


@dataclass(frozen=True, eq=False)
class LogisticLosses(LocalLosses):
    """Logistic losses of the nodes that `rows` belong to: `scale` is the factor of each row, `ridge` of each column."""

    smooth: ClassVar[bool] = True
    rows: LabelledRows
    scale: Array
    ridge: Array

    def value(self, w: Array) -> Array:
        total = w**2 @ self.ridge
        for block, z in self._margins(w):
            total[block.of] += dot(np.logaddexp(0, z) - block.y * z, self.scale[block.rows])
        return total

    def gradient(self, w: Array) -> Array:
        total = 2 * self.ridge * w
        for block, z in self._margins(w):
            total[block.of] += np.einsum("im,imk->ik", (expit(z) - block.y) * self.scale[block.rows], block.X)
        return total

    def hessian(self, w: Array) -> Array:
        total = np.empty((len(w), w.shape[1], w.shape[1]))
        for block, z in self._margins(w):
            curvature = expit(z) * expit(-z) * self.scale[block.rows]
            total[block.of] = np.matmul(block.X.transpose(0, 2, 1) * curvature[:, None, :], block.X)
        return total + 2 * np.diag(self.ridge)

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        return self._newton(np.zeros_like(v), v, 1.0 / tau, start)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """At q = ∇L(w), whatever w is, L*(q) = ⟨q, w⟩ − L(w) exactly; Newton looks for the w with q = p.

        With s_r = expit⟨x_r, w⟩ that difference is (1/m) Σ_r [s_r log s_r + (1 − s_r) log(1 − s_r)] + ridge ‖w‖²,
        in which nothing cancels, however large w is.
        """
        size = sum(np.einsum("imk,imk->", b.X, b.X) for b in self.rows.blocks) / max(self.rows.X.size, 1)
        trace = np.full(len(p), 1e-9 * size + np.finfo(float).tiny)
        w = self._newton(p, near, trace, near, CONJUGATE_STEPS)
        q = self.gradient(w)
        value = w**2 @ self.ridge
        for block, z in self._margins(w):
            value[block.of] -= dot(entr(expit(z)) + entr(expit(-z)), self.scale[block.rows])
        return q, value

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        def total(of_nodes: Array) -> Array:
            return sum_by_group(of_nodes, groups, n_groups)

        v = np.zeros((n_groups, self.rows.X.shape[1]))
        now = total(self.value(v[groups]))
        for _ in range(MAX_STEPS):
            slope = total(self.gradient(v[groups]))
            H = total(self.hessian(v[groups]))
            step = -by_node(np.linalg.pinv(H, rcond=1e-12, hermitian=True), slope)
            length = np.ones((n_groups, 1))
            for _ in range(30):  # halve the steps that do not descend
                then = total(self.value((v + length * step)[groups]))
                short = then > now + 1e-4 * length[:, 0] * dot(slope, step) + 1e-15 * now
                if not short.any():
                    break
                length[short] *= 0.5
            v, now = v + length * step, then
            if (np.abs(step) <= LAST_STEP * np.abs(v).max(axis=1, keepdims=True)).all():
                break
        p = self.gradient(v[groups])
        size = np.maximum(np.bincount(groups, minlength=n_groups), 1)[:, None]
        return v, p - (sum_by_group(p, groups, n_groups) / size)[groups]

    @cached_property
    def seen(self) -> Array | None:
        return Quadratics.from_rows(self.rows, self.rows.weights, self.ridge).seen

    def minorant(self, level: float) -> Quadratics | None:
        if not (self.ridge > 0).all():
            return None
        count, n = len(self.rows.M), len(self.ridge)
        V = np.broadcast_to(np.eye(n), (count, n, n))
        h = np.broadcast_to(2 * self.ridge, (count, n))
        return Quadratics(V, h, np.zeros((count, n)), np.zeros(count))

    def _margins(self, w: Array) -> list[tuple[Block, Array]]:
        return [(b, by_node(b.X, w[b.of])) for b in self.rows.blocks]

    def _newton(self, p: Array, anchor: Array, curvature: Array, start: Array, max_steps: int = MAX_STEPS) -> Array:
        """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node."""
        from coterie.kernels import register
        from coterie.kernels.inner import logistic_newton

        rows, inner = self.rows, (p, anchor, curvature, start, ACCURACY, max_steps)
        return logistic_newton(register(len(self.ridge)), rows.X, rows.y, self.scale, rows.starts, self.ridge, *inner)
