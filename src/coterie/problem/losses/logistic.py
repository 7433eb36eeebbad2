"""Logistic loss: networked classification with labels 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, xlog1py

from coterie.kernels import kinds
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import linear_predictor
from coterie.problem.losses.measure import LOG_LOSS
from coterie.problem.losses.row_loss import RowLoss, refuse_labels


@dataclass(frozen=True)
class Logistic(RowLoss):
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
    >>> solution = ct.solve(ct.Problem(graph, data, loss=ct.Logistic(ridge=0.1), lam=0.01))
    >>> bool(solution.w[0, 0] < 0 < solution.w[2, 0])
    True
    """

    measure = LOG_LOSS
    is_likelihood = True
    kernel = kinds.LOGISTIC
    second_floats = True
    self_concordant = True  # ψ‴ = ψ″(1 − 2ψ′)
    curvature = 0.25
    lipschitz = 1.0
    no_minimiser = (
        "The classes can be separated, so that weights grow without end; a ridge on every column prevents it."
    )

    def check_labels(self, rows: LabelledRows) -> None:
        refuse_labels(rows, (rows.y != 0) & (rows.y != 1), "logistic labels are 0 or 1")

    def absorb(self, y: Array, s: Array, offset: Array) -> tuple[Array, Array]:
        raise ValueError("the logistic loss takes no offsets: leave them out")

    def direction(self, y: Array) -> Array:
        return np.where(y > 0.5, -1.0, 1.0)  # e is the margin on the wrong side: log(1 + e^z) − yz would cancel

    def shift(self, y: Array) -> Array:
        return np.zeros_like(y)

    def psi(self, e: Array, y: Array) -> Array:
        return np.maximum(e, 0.0) + np.log1p(np.exp(-np.abs(e)))

    def slope(self, e: Array, y: Array) -> Array:
        t = np.exp(-np.abs(e))
        return np.where(e > 0, 1.0, t) / (1 + t)

    def bend(self, e: Array, y: Array) -> Array:
        t = np.exp(-np.abs(e))
        return t / (1 + t) / (1 + t)

    def most_bend(self, e: Array, y: Array, way: Array | float) -> Array:
        return self.bend(np.maximum(np.abs(e) - way, 0.0), y)

    def conjugate(self, t: Array, y: Array) -> Array:
        return np.asarray(xlog1py(1 - t, -t) - entr(t))

    def domain(self, y: Array) -> tuple[float, float]:
        return 0.0, 1.0

    def slope_rounding(self, t: Array, y: Array, miss: Array) -> Array:
        """A chance e^z is off by z roundings."""
        return 0.25 * miss + EPS * (8 - np.log(np.maximum(np.abs(t), np.finfo(float).tiny))) * np.abs(t)

    def conjugate_rounding(self, t: Array, y: Array) -> Array:
        """The entropy is no steeper than this, and t is rounded."""
        side = np.where(t <= 0.5, t, np.maximum(1 - t, EPS))
        return 8 * EPS * t * (1 + np.where(side > 0, np.abs(np.log(side)), 0.0))

    def constant_loss(self, y: Array, s: Array) -> float:
        """That of even odds."""
        return float(np.log(2) * s.sum())

    def predict(self, X: Array, w: Array) -> Array:
        """The class: 1 where ⟨x, w⟩ ≥ 0, otherwise 0."""
        return (linear_predictor(X, w) >= 0).astype(np.float64)

    def predict_proba(self, X: Array, w: Array) -> Array:
        """The probability of class 1."""
        return np.asarray(expit(linear_predictor(X, w)))
