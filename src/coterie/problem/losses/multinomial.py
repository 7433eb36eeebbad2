"""Multinomial logistic loss: networked classification into K classes, with one weight vector for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from coterie.kernels.reference.classes import as_classes, chances, losses
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses, Loss, as_columns, check_strength, penalised_columns
from coterie.problem.losses.ground import Grounded
from coterie.problem.losses.grounded_losses import grounded
from coterie.problem.losses.measure import LOG_LOSS
from coterie.problem.losses.multinomial_losses import MultinomialLosses
from coterie.problem.losses.row_loss import refuse_labels
from coterie.problem.losses.squared import Reduction, check_reduction, row_scale


def weight_names(columns: Sequence[str], classes: Sequence[Any]) -> list[str]:
    """Names of all weights of a node, as they lie: each column with the name of each class, "cat: weight"."""
    return [f"{name}: {column}" for name in classes for column in columns]


@dataclass(frozen=True)
class Multinomial(Grounded, Loss):
    """L_i(w) = (1/m_i) Σ_r [log Σ_k e^{⟨x_r, w_k⟩} − ⟨x_r, w_{y_r}⟩] + ridge ‖w‖₂²,  y_r ∈ {0, …, K − 1}.

    A node has K weight vectors of n numbers each, one after the other: its weights are w.reshape(K, n). All classes are
    alike; adding one vector to all of them changes no loss, only the penalty across edges, and ridge.

    Parameters
    ----------
    n_classes : int
        K ≥ 2. Every class must be seen somewhere; one that a node does not see, it learns from its neighbours.
    ridge : float, default=0.0
        Strength of the squared ℓ2 norm. Without it, classes that can be separated have no finite minimiser.
    unpenalised : tuple of int, default=()
        Columns, such as an intercept, that ridge leaves alone, in every class.
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
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0], [1.0]], [0.0, 1.0, 2.0], nodes=[0, 1, 2])
    >>> problem = ct.Problem(graph, data, loss=ct.Multinomial(n_classes=3, ridge=0.1), lam=0.01)
    >>> problem.n_features
    3
    >>> ct.solve(problem).w.argmax(axis=1).tolist()
    [0, 1, 2]
    """

    n_classes: int
    ridge: float = 0.0
    unpenalised: tuple[int, ...] = ()
    reduction: Reduction = "mean"

    is_likelihood = True
    measure = LOG_LOSS

    def __post_init__(self) -> None:
        K: Any = self.n_classes
        if not isinstance(K, Integral) or int(K) < 2:
            raise ValueError(f"n_classes must be a whole number ≥ 2, got {K!r}")
        super().__post_init__()
        object.__setattr__(self, "unpenalised", as_columns(self.unpenalised))
        check_strength(self.ridge, "ridge")
        check_reduction(self.reduction)

    def n_weights(self, n: int) -> int:
        return n * int(self.n_classes)

    def validate(self, rows: LabelledRows) -> None:
        K = int(self.n_classes)
        self.ground(rows.X.shape[1])
        wrong = ~((rows.y >= 0) & (rows.y < K) & (rows.y == np.floor(rows.y)))
        refuse_labels(rows, wrong, f"labels of {K} classes are 0 to {K - 1}")
        if rows.offset is not None:
            raise ValueError("the multinomial loss takes no offsets: leave them out")
        self.check_seen(rows)

    def check_seen(self, rows: LabelledRows) -> None:
        """Refuse rows without a class: what is known of it nowhere can be anything."""
        if len(rows.y) and len(unseen := np.setdiff1d(np.arange(int(self.n_classes)), rows.y)):
            raise ValueError(
                f"no row has the label {unseen[0]}, so that nothing is known of this class: "
                "give it a row, or number the classes without it"
            )

    def bind(self, rows: LabelledRows) -> LocalLosses:
        n, K = rows.X.shape[1], int(self.n_classes)
        ridge = float(self.ridge) * penalised_columns(n, self.unpenalised)
        f = MultinomialLosses(rows, row_scale(rows, self.reduction), np.tile(ridge, K))
        return grounded(f, self.ground(n).times(K))

    def scores(self, X: Array, w: Array) -> Array:
        """⟨x, w_k⟩ of each row and class, (N, K)."""
        return np.einsum("rj,rkj->rk", X, as_classes(w, X.shape[1]))

    def predict(self, X: Array, w: Array) -> Array:
        """The class with the largest ⟨x, w_k⟩."""
        return self.scores(X, w).argmax(axis=1).astype(np.float64)

    def predict_proba(self, X: Array, w: Array) -> Array:
        """The probability of each class, (N, K)."""
        return np.asarray(chances(self.scores(X, w)))

    def error(self, X: Array, y: Array, w: Array) -> Array:
        """−log of the probability of each row's class."""
        z = self.scores(X, w)
        return np.asarray(losses(z - np.take_along_axis(z, y.astype(np.int64)[:, None], axis=1)))
