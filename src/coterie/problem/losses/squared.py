"""Squared error: networked linear regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses, Loss, as_columns, check_strength, penalised_columns
from coterie.problem.losses.ground import Grounded
from coterie.problem.losses.grounded_losses import grounded
from coterie.problem.losses.quadratic import Quadratics

Reduction = Literal["mean", "sum"]


@dataclass(frozen=True)
class SquaredError(Grounded, Loss):
    """L_i(w) = (1/m_i) Σ_r (y_r − ⟨x_r, w⟩)² + ridge ‖w‖₂².

    The paper's closed form of PU_i drops the 1/m_i of its own loss; here it is kept.

    Parameters
    ----------
    reduction : {"mean", "sum"}, default="mean"
        "mean" is the paper's objective; "sum" leaves the 1/m_i out. Row weights, where given, turn the mean into
        a weighted mean, as in every loss.
    ridge : float, default=0.0
        Strength of the squared ℓ2 norm.
    unpenalised : tuple of int, default=()
        Columns, such as an intercept, that ridge leaves alone.
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
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> ct.solve(ct.Problem(graph, data, loss=ct.SquaredError(), lam=0.5)).w.round(3).ravel().tolist()
    [1.25, ..., 2.75]
    """

    reduction: Reduction = "mean"
    ridge: float = 0.0
    unpenalised: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "unpenalised", as_columns(self.unpenalised))
        check_strength(self.ridge, "ridge")
        check_reduction(self.reduction)

    def validate(self, rows: LabelledRows) -> None:
        self.ground(rows.X.shape[1])

    def bind(self, rows: LabelledRows) -> LocalLosses:
        n = rows.X.shape[1]
        ridge = float(self.ridge) * penalised_columns(n, self.unpenalised)
        return grounded(Quadratics.from_rows(rows.shifted, row_scale(rows, self.reduction), ridge), self.ground(n))


def check_reduction(reduction: str) -> None:
    """Refuse what is not a way to add up the rows of a node."""
    if reduction not in ("mean", "sum"):
        raise ValueError(f'reduction must be "mean" or "sum", got {reduction!r}')


def row_scale(rows: LabelledRows, reduction: Reduction) -> Array:
    """The factor that each row carries: its share (1/m_i) for the mean, its weight (1) for the sum."""
    return rows.shares if reduction == "mean" else rows.weights
