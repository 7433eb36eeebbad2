"""Squared hinge loss: networked classification with a margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.kernels import kinds
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import linear_predictor
from coterie.problem.losses.row_loss import RowLoss, refuse_labels


@dataclass(frozen=True)
class SquaredHinge(RowLoss):
    """L_i(w) = (1/m_i) Σ_r max(0, 1 ∓ ⟨x_r, w⟩)² + ridge ‖w‖₂²,  − for y_r = 1 and + for y_r = 0.

    Rows beyond a margin of one on their own side cost nothing, and do not matter.

    Parameters
    ----------
    ridge : float, default=0.0
        Strength of the squared ℓ2 norm.
    unpenalised : tuple of int, default=()
        Columns, such as an intercept, that ridge leaves alone.
    reduction : {"mean", "sum"}, default="mean"
        As for :class:`SquaredError`.
    l1 : float, default=0.0
        Strength of the ℓ1 norm, which makes weights exactly zero; with ridge, an elastic net.
    lower, upper : float or sequence of float, default=None
        Bounds of the weights: one number for all columns but the unpenalised ones, or one for each column.
    positive : bool, default=False
        No weight below zero, those of unpenalised columns excepted: lower=0.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [0.0, 1.0], nodes=[0, 2], n_nodes=3)
    >>> solution = ct.solve(ct.Problem(graph, data, loss=ct.SquaredHinge(ridge=0.1), lam=0.01))
    >>> bool(solution.w[0, 0] < 0 < solution.w[2, 0])
    True
    """

    kernel = kinds.SQUARED_HINGE
    curvature = 2.0
    bounded = True
    clipped = True
    steady = 0.1  # a row with that much margin missing keeps its curvature for as long

    def check_labels(self, rows: LabelledRows) -> None:
        refuse_labels(rows, (rows.y != 0) & (rows.y != 1), "labels of a hinge are 0 or 1")

    def absorb(self, y: Array, s: Array, offset: Array) -> tuple[Array, Array]:
        raise ValueError("the squared hinge takes no offsets: leave them out")

    def direction(self, y: Array) -> Array:
        return np.where(y > 0.5, -1.0, 1.0)

    def shift(self, y: Array) -> Array:
        return np.ones_like(y)

    def psi(self, e: Array, y: Array) -> Array:
        return np.maximum(e, 0.0) ** 2

    def slope(self, e: Array, y: Array) -> Array:
        return 2 * np.maximum(e, 0.0)

    def bend(self, e: Array, y: Array) -> Array:
        return np.where(e > 0, 2.0, 0.0)

    def most_bend(self, e: Array, y: Array, way: Array | float) -> Array:
        return np.where(e + way > 0, 2.0, 0.0)

    def steady_bend(self, t: Array, y: Array, way: Array | float) -> Array:
        return np.where(t * (1 - 1e-9) >= 2 * way, 2.0, 0.0)  # t = 2e

    def conjugate(self, t: Array, y: Array) -> Array:
        return t * (t / 4)

    def domain(self, y: Array) -> tuple[float, float]:
        return 0.0, np.inf

    def predict(self, X: Array, w: Array) -> Array:
        """The class: 1 where ⟨x, w⟩ ≥ 0, otherwise 0."""
        return (linear_predictor(X, w) >= 0).astype(np.float64)
