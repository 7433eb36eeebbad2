"""Logistic loss: networked classification with labels 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit

from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.reference.exact import EPS
from coterie.kernels.reference.rows import LOGISTIC
from coterie.problem.arrays import Array
from coterie.problem.datasets import Block, LabelledRows
from coterie.problem.losses.base import (
    LocalLosses,
    Loss,
    Model,
    as_columns,
    by_node,
    check_strength,
    dot,
    linear_predictor,
    penalised_columns,
    sum_by_group,
)
from coterie.problem.losses.design import Design, Support
from coterie.problem.losses.measure import LOG_LOSS, Measure
from coterie.problem.losses.pooling import pooled_minimiser
from coterie.problem.losses.quadratic import Quadratics
from coterie.problem.losses.squared import Reduction, check_reduction, row_scale

node_solvers, models = Either("node_solvers"), Either("model")

PROX_ACCURACY = 1e-12  # Newton ends when the gradient of the inner problem is this small, relative to its terms
MAX_STEPS = 60
CLEAR = 1e-6  # the determinant of a correlation matrix, which is at most e times its smallest eigenvalue
CONJUGATE_STEPS = 12  # any end of the descent gives a valid bound
CHEAP = 32  # columns, up to which a model costs little, however few the rows are
CLOSER, FEW = 3, 20_000  # times that descent, each from where the last one ended, where weights are that few


@dataclass(frozen=True)
class Logistic(Loss):
    """L_i(w) = (1/m_i) Σ_r [log(1 + e^{⟨x_r, w⟩}) − y_r ⟨x_r, w⟩] + ridge ‖w‖₂²,  y_r ∈ {0, 1}.

    PU_i has no closed form: damped Newton from the last weights, to a relative gradient of 1e-12.

    Parameters
    ----------
    ridge : float, default=0.0
        Strength of the squared ℓ2 norm. Without it, nodes that separate perfectly have no finite minimiser.
    unpenalised : tuple of int, default=()
        Columns, such as an intercept, that ridge leaves alone.
    reduction : {"mean", "sum"}, default="mean"
        As for :class:`SquaredError`.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [0.0, 1.0], nodes=[0, 2], n_nodes=3)
    >>> solution = ct.solve(ct.Problem(graph, data, loss=ct.Logistic(ridge=0.1), lam=0.01))
    >>> bool(solution.w[0, 0] < 0 < solution.w[2, 0])
    True
    """

    ridge: float = 0.0
    unpenalised: tuple[int, ...] = ()
    reduction: Reduction = "mean"

    measure: ClassVar[Measure] = LOG_LOSS

    def __post_init__(self) -> None:
        object.__setattr__(self, "unpenalised", as_columns(self.unpenalised))
        check_strength(self.ridge, "ridge")
        check_reduction(self.reduction)

    def validate(self, rows: LabelledRows) -> None:
        penalised_columns(rows.X.shape[1], self.unpenalised)
        wrong = np.flatnonzero((rows.y != 0) & (rows.y != 1))
        if wrong.size:
            node = np.repeat(rows.M, rows.m)[wrong[0]]
            raise ValueError(f"logistic labels are 0 or 1, but node {node} has the label {rows.y[wrong[0]]:g}")

    def bind(self, rows: LabelledRows) -> LogisticLosses:
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
        return np.logaddexp(0, np.where(y > 0.5, -z, z))  # log(1 + e^z) − yz would cancel


@dataclass(frozen=True, eq=False)
class LogisticLosses(LocalLosses):
    """Logistic losses of the nodes that `rows` belong to: `scale` is the factor of each row, `ridge` of each column."""

    smooth: ClassVar[bool] = True
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

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        return self._newton(np.zeros_like(v), v, 1.0 / tau, start, PROX_ACCURACY, MAX_STEPS)

    def model(self, w: Array, before: Array | None) -> Model | None:
        """The curvature of a row changes by no more than the factor e^{|change of its margin|}.

        None where nodes have few rows: a primal update by rows is cheaper than a model of n × n numbers.
        """
        few = w.shape[1] > CHEAP and 2 * len(self.rows.X) <= w.size
        return None if few else self._model(w, before)

    def _model(self, w: Array, before: Array | None) -> Model:
        rows, (count, n) = self.rows, w.shape
        slope, H = np.empty((count, n)), np.empty((count, n, n))
        data = rows.X, rows.y, self.scale, rows.starts, self.ridge
        change = models.logistic_model(vector_buffer(n), *data, w, w[:0] if before is None else before, slope, H)
        return Model(slope, H, change)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """At q = ∇L(w), whatever w is, L*(q) = ⟨q, w⟩ − L(w) exactly; Newton looks for the w with q = p.

        With s_r = expit⟨x_r, w⟩ that difference is (1/m) Σ_r [s_r log s_r + (1 − s_r) log(1 − s_r)] + ridge ‖w‖²,
        in which nothing cancels, however large w is.
        """
        w = self._attaining(p, near)
        q = self.gradient(w)
        value = w**2 @ self.ridge
        for block, z in self._margins(w):
            value[block.of] -= dot(entr(expit(z)) + entr(expit(-z)), self.scale[block.rows])
        return q, value

    def support(self, p: Array, w: Array) -> Support:
        """From the duals at the weights that Newton finds for p."""
        return self.design.support(*self.design.slopes(self._attaining(p, w)), w)

    @cached_property
    def design(self) -> Design:
        rows = self.rows
        return Design(LOGISTIC, rows.X, rows.y, self.scale, rows.starts, self.ridge)

    def in_units(self, x: float, y: float) -> tuple[LogisticLosses, float]:
        return LogisticLosses(replace(self.rows, X=self.rows.X / x), self.scale, self.ridge / x**2), 1.0

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        v = pooled_minimiser(self.design, groups, n_groups)
        p = self.gradient(v[groups])
        size = np.maximum(np.bincount(groups, minlength=n_groups), 1)[:, None]
        return v, p - (sum_by_group(p, groups, n_groups) / size)[groups]

    @cached_property
    def row_space(self) -> Array | None:
        """Columns with a ridge, and what the rows see of the others."""
        ridged, others, n = np.flatnonzero(self.ridge), np.flatnonzero(self.ridge == 0), len(self.ridge)
        rows = replace(self.rows, X=np.ascontiguousarray(self.rows.X[:, others])) if len(ridged) else self.rows
        if not len(others) or _see_clearly(rows):
            return None
        seen = Quadratics.from_rows(rows, rows.weights, np.zeros(len(others))).row_space
        if seen is None or not len(ridged):
            return seen
        out = np.zeros((len(seen), len(ridged) + seen.shape[1], n))
        out[:, np.arange(len(ridged)), ridged] = 1.0
        out[:, len(ridged) :, others] = seen
        return out

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
        size = float(np.mean(self.rows.X**2)) if self.rows.X.size else 0.0
        return 1e-9 * size + float(np.finfo(float).tiny)

    def _margins(self, w: Array) -> list[tuple[Block, Array]]:
        return [(b, by_node(b.X, w[b.of])) for b in self.rows.blocks]

    def _newton(
        self, p: Array, anchor: Array | None, curvature: Array, start: Array, accuracy: float, max_steps: int
    ) -> Array:
        """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node; None: the anchor is z itself."""
        rows, aim = self.rows, (p, anchor, curvature, start, accuracy, max_steps)
        return node_solvers.logistic_newton(
            vector_buffer(len(self.ridge)), rows.X, rows.y, self.scale, rows.starts, self.ridge, *aim
        )


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
