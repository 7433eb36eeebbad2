"""Columns in units of their own spread, and models back in the units that they came in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.problem import LocalDatasets
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.psi import quantile_of
from coterie.solver import Solution

NO_SPREAD = 1e-13
"""Of the size of a column: what varies by less is constant. Numbers that were computed are off by some 1e-16 each."""

NORMAL = 0.6745
"""The median distance from the mean of what is normal, in standard deviations."""


class Holders:
    """Who holds the rows of a fit: this process has all of them."""

    def added(self, values: Any) -> Any:
        """The sum of what all holders have."""
        return values

    def first(self, value: Array, there: bool) -> Array:
        """The value of the first holder for which it is there."""
        return value

    def median(self, values: Array, weights: Array) -> float:
        """The median of the values of all holders, which count `weights` each."""
        return quantile_of(values, weights, 0.5)


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − centre)/spread for each of n features, y ↦ (y − y_centre)/y_spread.

    Rows are those of a design, in which the column of the intercept, if there is one, comes after the features: what
    is subtracted is that column times the centre, so that condensed rows, whose intercept is not 1, are treated alike.
    """

    centre: Array
    spread: Array
    y_centre: float = 0.0
    y_spread: float = 1.0

    @classmethod
    def none(cls, n_features: int) -> Scaling:
        """Everything as it is."""
        return cls(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def of(
        cls, rows: LabelledRows, n_features: int, labels: bool, robust: bool = False, holders: Holders | None = None
    ) -> Scaling:
        """Mean and standard deviation of the labelled rows of all nodes, also of the labels if asked.

        Without a column for the intercept nothing is centred. A column that does not vary keeps its unit. `robust`: the
        median of the labels and their median distance from it, so that outliers do not change what λ means. `holders`:
        who has the rows.
        """
        holders = holders or Holders()
        X, total = rows.X[:, :n_features], holders.added(rows.weights.sum())
        one = rows.X[:, n_features:].sum(axis=1)  # the intercept's column; zero without
        y = rows.y if labels else np.zeros(len(X))
        Z = np.column_stack([X, y])
        some = bool(len(Z)) and bool(one[0])
        first = holders.first(Z[0] / one[0] if some else np.zeros(n_features + 1), bool(len(Z)))
        Z = Z - np.outer(one, first)  # first of all the offset goes, without rounding: a constant column is zero now
        mean = holders.added((rows.weights * one) @ Z) / total
        squares = holders.added(rows.weights @ (Z - np.outer(one, mean)) ** 2)
        spread, centre = np.sqrt(squares / total), first + mean
        spread[spread <= NO_SPREAD * np.abs(centre)] = 1.0
        y_centre, y_spread = float(centre[-1]), float(spread[-1])
        if labels and robust:
            y_centre = holders.median(rows.y, rows.weights) if rows.X.shape[1] > n_features else 0.0
            size = holders.median(np.abs(rows.y - y_centre), rows.weights) / NORMAL
            y_spread = size if size > NO_SPREAD * abs(y_centre) else y_spread
        return cls(centre[:-1], spread[:-1], y_centre, y_spread)

    def rows(self, design: Array) -> Array:
        """Rows of a design in the new units."""
        n = len(self.centre)
        one = design[:, n:].sum(axis=1)
        return np.column_stack([(design[:, :n] - np.outer(one, self.centre)) / self.spread, design[:, n:]])

    def data(self, data: LocalDatasets) -> LocalDatasets:
        """Rows and labels in the new units."""
        one = data.X[:, len(self.centre) :].sum(axis=1)
        return replace(data, X=self.rows(data.X), y=(data.y - self.y_centre * one) / self.y_spread)

    def labels_back(self, y: Array) -> Array:
        """Labels in the old units."""
        return self.y_centre + self.y_spread * y

    def values_back(self, solution: Solution, degree: int) -> Solution:
        """Objective and bound of a solution in the units of the labels as they came, to the power of the loss.

        Its weights stay as they are.
        """
        unit = self.y_spread**degree
        records = (r._replace(objective=unit * r.objective, dual_bound=unit * r.dual_bound) for r in solution.history)
        objective, bound = unit * solution.objective, unit * solution.dual_bound
        return replace(solution, objective=objective, dual_bound=bound, history=tuple(records))

    def weights_back(self, w: Array) -> Array:
        """Weights (…, n or n + 1), intercept last, of a model in the old units."""
        n = len(self.centre)
        coef = self.y_spread * w[..., :n] / self.spread
        intercept = self.y_centre + self.y_spread * w[..., n:] - (coef @ self.centre)[..., None]
        return np.concatenate([coef, intercept[..., : w.shape[-1] - n]], axis=-1)
