"""Lasso: squared error with sparse weights, for nodes with fewer points than features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses, Loss, as_columns, check_strength, penalised_columns
from coterie.problem.losses.ground import Ground
from coterie.problem.losses.grounded_losses import grounded
from coterie.problem.losses.quadratic import Quadratics
from coterie.problem.losses.sparse_quadratics import SparseQuadratics
from coterie.problem.losses.squared import Reduction, check_reduction, row_scale


@dataclass(frozen=True)
class Lasso(Loss):
    """L_i(w) = (1/m_i) Σ_r (y_r − ⟨x_r, w⟩)² + alpha ‖w‖₁ + ridge ‖w‖₂².

    The paper writes λ for alpha as well as for the strength of the total variation; they are two parameters here. It is
    :class:`SquaredError` with l1=alpha.

    Parameters
    ----------
    alpha : float
        Strength of the ℓ1 norm.
    unpenalised : tuple of int, default=()
        Columns, such as an intercept, that alpha leaves alone.
    reduction : {"mean", "sum"}, default="mean"
        As for :class:`SquaredError`.
    ridge : float, default=0.0
        Strength of the squared ℓ2 norm: with it, an elastic net.
    lower, upper : float or sequence of float, default=None
        Bounds of the weights: one number for all columns but the unpenalised ones, or one for each column.
    positive : bool, default=False
        No weight below zero, those of unpenalised columns excepted: lower=0.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> ct.solve(ct.Problem(graph, data, loss=ct.Lasso(alpha=9.0), lam=0.5)).w.ravel().tolist()
    [0.0, 0.0, 0.0]
    """

    alpha: float
    unpenalised: tuple[int, ...] = ()
    reduction: Reduction = "mean"
    ridge: float = field(default=0.0, kw_only=True)
    lower: Any = field(default=None, kw_only=True)
    upper: Any = field(default=None, kw_only=True)
    positive: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unpenalised", as_columns(self.unpenalised))
        check_strength(self.alpha, "alpha")
        check_strength(self.ridge, "ridge")
        check_reduction(self.reduction)

    def validate(self, rows: LabelledRows) -> None:
        self._ground(rows.X.shape[1])

    def bind(self, rows: LabelledRows) -> LocalLosses:
        n = rows.X.shape[1]
        ridge, ground = float(self.ridge) * penalised_columns(n, self.unpenalised), self._ground(n)
        fit = Quadratics.from_rows(rows.shifted, row_scale(rows, self.reduction), ridge)
        return grounded(fit, ground) if ground.has_bounds else SparseQuadratics(fit, ground.alpha)

    def _ground(self, n: int) -> Ground:
        return Ground.of(n, self.unpenalised, self.alpha, self.lower, self.upper, self.positive)
