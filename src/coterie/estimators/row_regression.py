"""Regression with losses that have to see every row: what such models share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.base import RegressorMixin

from coterie.estimators.base import NetworkedModel
from coterie.estimators.tables import as_labels, where_labelled
from coterie.problem.arrays import Array


class NetworkedRowRegressor(RegressorMixin, NetworkedModel):
    """A networked model whose labels are numbers, with a loss that moments of the rows do not tell."""

    ridge: float

    def _labels(self, y: Any, n_rows: int, first: bool) -> Array:
        return as_labels(y, n_rows)

    @abstractmethod
    def _explained(self, y: Array, predicted: Array, s: Array | None) -> float:
        """D² of predictions, for labels that count s each."""

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Return D² over the rows that have a label: the part of the error of the best constant that is gone.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        y : sequence of shape (rows,)
            Labels; rows without one do not count.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.
        sample_weight : sequence of shape (rows,), default=None
            A row of weight 2 counts like two rows. None: all count alike.

        Returns
        -------
        float
            1 for perfect predictions, 0 for predictions as good as the best constant.
        """
        return float(self._explained(*where_labelled(y, self.predict(X, groups), sample_weight)))
