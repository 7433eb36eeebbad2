"""Quantile loss: networked regression of a quantile, such as the median."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from coterie.kernels import kinds
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses
from coterie.problem.losses.grounded_kinks import GroundedKinks
from coterie.problem.losses.kinked_losses import KinkedLosses
from coterie.problem.losses.measure import PINBALL_LOSS
from coterie.problem.losses.psi import INSIDE, Psi, quantile_of
from coterie.problem.losses.row_loss import RowLoss, check_positive

ROUNDED = 1e-2  # of Σ s|y|: with the floor of gaps, a millionth of that is what rounding makes of an exact fit


@dataclass(frozen=True)
class Quantile(RowLoss):
    """L_i(w) = (1/m_i) Σ_r ρ(y_r − ⟨x_r, w⟩) + ridge ‖w‖₂²,  ρ(e) = q e for e ≥ 0, else (q − 1) e.

    PU_i is a quadratic program in the duals of a node's rows, which ascent on single duals and on all free ones solves.

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
    q : float, default=0.5
        The level of the quantile, between 0 and 1: about that part of the labels lies below the predictions.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1)])
    >>> data = ct.LocalDatasets.from_rows([[1.0]] * 4, [1.0, 2.0, 3.0, 90.0], nodes=[0, 0, 0, 1], n_nodes=2)
    >>> solution = ct.solve(ct.Problem(graph, data, loss=ct.Quantile(q=0.6, reduction="sum"), lam=9.0))
    >>> solution.w.round(3).ravel().tolist()
    [3.0, 3.0]
    """

    q: float = field(default=0.5, kw_only=True)

    kernel = kinds.QUANTILE
    measure = PINBALL_LOSS
    bounded = True
    scales = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.q, "q")
        if not self.q < 1:
            raise ValueError(f"q must be below 1, got {self.q!r}")
        object.__setattr__(self, "q", float(self.q))  # of a shorter float, INSIDE and the ends of ψ* would be no less

    def bind(self, rows: LabelledRows) -> LocalLosses:
        f, ground = self.bind_rows(rows), self.ground(rows.X.shape[1])
        return f if ground.is_nothing else GroundedKinks(replace(f, alone=False), ground)

    def bind_rows(self, rows: LabelledRows) -> KinkedLosses:
        f = super().bind_rows(rows)
        return KinkedLosses(self, f.rows, f.scale, f.ridge)

    @property
    def parameter(self) -> float:
        return self.q

    @property
    def lipschitz(self) -> float:  # type: ignore[override]
        return max(self.q, 1 - self.q)

    @property
    def rise(self) -> tuple[float, float]:
        return min(self.q, 1 - self.q) * INSIDE, 0.0

    def in_units(self, y: float) -> tuple[Psi, float]:
        return self, y

    def psi(self, e: Array, y: Array) -> Array:
        return np.maximum(self.q * e, (self.q - 1) * e)

    def slope(self, e: Array, y: Array) -> Array:
        return np.where(e > 0, self.q, np.where(e < 0, self.q - 1, 0.0)) * INSIDE

    def bend(self, e: Array, y: Array) -> Array:
        return np.zeros_like(e)

    def conjugate(self, t: Array, y: Array) -> Array:
        return np.zeros_like(t)

    def domain(self, y: Array) -> tuple[float, float]:
        return (self.q - 1) * (1 - 4 * EPS), self.q * (1 - 4 * EPS)

    def constant_loss(self, y: Array, s: Array) -> float:
        """That of the quantile of all labels, but no less than what rounding of labels is beside the floor of gaps."""
        return max(super().constant_loss(y, s), ROUNDED * float(s @ np.abs(y)))

    def constant(self, y: Array, s: Array) -> float:
        """The quantile of all labels."""
        return quantile_of(y, s, self.q)
