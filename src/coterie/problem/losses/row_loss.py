"""Losses that are sums over rows of one scalar function: L_i(w) = Σ_r s_r ψ(e_r) + ridge ‖w‖₂².

A family is one class: ψ, ψ′, ψ″ and ψ* (`psi.py`), and the labels that it takes. All the rest comes from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import (
    LocalLosses,
    Loss,
    as_columns,
    check_strength,
    linear_predictor,
    penalised_columns,
    with_offset,
)
from coterie.problem.losses.ground import Grounded
from coterie.problem.losses.grounded_losses import grounded
from coterie.problem.losses.measure import MEAN_LOSS, Measure
from coterie.problem.losses.psi import Psi
from coterie.problem.losses.row_losses import RowLosses
from coterie.problem.losses.squared import Reduction, check_reduction, row_scale


@dataclass(frozen=True)
class RowLoss(Grounded, Loss, Psi):
    """L_i(w) = (1/m_i) Σ_r ψ(e_r) + ridge ‖w‖₂²,  e_r = y_r − ⟨x_r, w⟩ unless a family says otherwise.

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
    >>> [isinstance(loss, ct.RowLoss) for loss in (ct.Poisson(), ct.Huber(), ct.Quantile(q=0.9))]
    [True, True, True]
    """

    measure: ClassVar[Measure] = MEAN_LOSS

    ridge: float = 0.0
    unpenalised: tuple[int, ...] = ()
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "unpenalised", as_columns(self.unpenalised))
        check_strength(self.ridge, "ridge")
        check_reduction(self.reduction)

    def validate(self, rows: LabelledRows) -> None:
        self.ground(rows.X.shape[1])
        self.check_labels(rows)
        if rows.offset is not None:
            self.absorb(rows.y, rows.weights, rows.offset)

    def check_labels(self, rows: LabelledRows) -> None:
        """Refuse labels that make no sense for this ψ, and say where the first of them is."""
        return

    def bind(self, rows: LabelledRows) -> LocalLosses:
        return grounded(self.bind_rows(rows), self.ground(rows.X.shape[1]))

    def bind_rows(self, rows: LabelledRows) -> RowLosses:
        """The losses without what weights cost by themselves."""
        ridge, scale = (
            float(self.ridge) * penalised_columns(rows.X.shape[1], self.unpenalised),
            row_scale(rows, self.reduction),
        )
        if rows.offset is not None:
            y, scale = self.absorb(rows.y, scale, rows.offset)
            rows = replace(rows, y=y, offset=None)
        return RowLosses(self, rows, scale, ridge)

    def error(self, X: Array, y: Array, w: Array) -> Array:
        """ψ of each row."""
        with np.errstate(over="ignore"):
            return np.asarray(self.psi(self.direction(y) * linear_predictor(X, w) + self.shift(y), y))

    def constant_error(self, rows: LabelledRows) -> Array:
        """What each row costs where the best constant is all that is known besides offsets: what D² compares with."""
        y, s = (rows.y, rows.weights) if rows.offset is None else self.absorb(rows.y, rows.weights, rows.offset)
        one, c = np.ones((len(y), 1)), np.full((len(y), 1), self.constant(y, s))
        X, w = with_offset(one, c, rows.offset)
        return self.error(X, rows.y, w)


def check_positive(value: Any, name: str) -> None:
    """Refuse a parameter that is not a finite number > 0."""
    if not (isinstance(value, Real) and 0 < float(value) < np.inf):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def refuse_labels(rows: LabelledRows, wrong: NDArray[np.bool_], rule: str) -> None:
    """Refuse labels that break a rule, and name the first of them."""
    if wrong.any():
        r, node = int(np.argmax(wrong)), np.repeat(np.arange(len(rows.M)), rows.m)
        place = f"in row {r - rows.starts[node[r]]} of its labelled rows"
        raise ValueError(f"{rule}, but node {rows.M[node[r]]} has the label {rows.y[r]:g} {place}")
