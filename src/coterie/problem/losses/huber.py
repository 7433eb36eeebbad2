"""Huber loss: networked regression that outliers do not spoil."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from coterie.kernels import kinds
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.problem.losses.base import linear_predictor
from coterie.problem.losses.measure import MEAN_ABSOLUTE_ERROR
from coterie.problem.losses.psi import INSIDE, Psi, quantile_of
from coterie.problem.losses.row_loss import RowLoss, check_positive


@dataclass(frozen=True)
class Huber(RowLoss):
    """L_i(w) = (1/m_i) Σ_r h(y_r − ⟨x_r, w⟩) + ridge ‖w‖₂²,  h(e) = e² for |e| ≤ δ, else 2δ|e| − δ².

    Squared error up to δ, absolute error beyond; δ = ∞ would be :class:`SquaredError`.

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
    delta : float, default=1.0
        The residual δ from which on a row pulls no harder, in the unit of y.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1)])
    >>> data = ct.LocalDatasets.from_rows([[1.0]] * 4, [1.0, 1.0, 1.0, 90.0], nodes=[0, 0, 0, 1], n_nodes=2)
    >>> solution = ct.solve(ct.Problem(graph, data, loss=ct.Huber(delta=0.3, reduction="sum"), lam=9.0))
    >>> solution.w.round(3).ravel().tolist()
    [1.1, 1.1]
    """

    delta: float = field(default=1.0, kw_only=True)

    measure = MEAN_ABSOLUTE_ERROR  # in the unit of y, and no outlier counts twice for being far away
    kernel = kinds.HUBER
    scales = True
    bounded = True
    straight = True
    clipped = True
    curvature = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.delta, "delta")

    @property
    def parameter(self) -> float:
        return float(self.delta)

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return 2 * float(self.delta)

    @property
    def rise(self) -> tuple[float, float]:
        return 2 * float(self.delta), float(self.delta) ** 2

    def in_units(self, y: float) -> tuple[Psi, float]:
        return replace(self, delta=self.delta / y), y**2

    def psi(self, e: Array, y: Array) -> Array:
        size = np.abs(e)
        return np.where(size <= self.delta, e * e, self.delta * (2 * size - self.delta))

    def slope(self, e: Array, y: Array) -> Array:
        most = 2 * self.delta * INSIDE
        return np.clip(2 * e, -most, most)

    def bend(self, e: Array, y: Array) -> Array:
        return np.where(np.abs(e) <= self.delta, 2.0, 0.0)

    def most_bend(self, e: Array, y: Array, way: Array | float) -> Array:
        """A quadratic with this curvature lies above ψ everywhere; a straight line would do so as far as δ alone."""
        secant = 2 * self.delta / np.maximum(np.abs(e), self.delta)
        return np.where(np.asarray(way) > 0, secant, self.bend(e, y))

    def conjugate(self, t: Array, y: Array) -> Array:
        return t * (t / 4)

    def domain(self, y: Array) -> tuple[float, float]:
        most = 2 * self.delta * (1 - 4 * EPS)
        return -most, most

    def constant(self, y: Array, s: Array) -> float:
        """The median label."""
        return quantile_of(y, s, 0.5)

    def error(self, X: Array, y: Array, w: Array) -> Array:
        """|e| of each row."""
        return np.abs(y - linear_predictor(X, w))
