"""How well labels are predicted that were held out: errors, a score without a unit, and predicted against actual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.fold_errors import mean_over_folds, standard_error
from coterie.problem import Problem
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    from coterie.estimators.lam_choice import LamChoice
    from coterie.estimators.scaling import Scaling

BINS, PROBABILITY_BINS = 40, 10


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What is known of predictions for rows whose labels were held out.

    Attributes
    ----------
    measure : str
        What `error` is: the root mean squared error, or the log-loss.
    error, standard_error : float
        In units of y. λ of each fold is the one that the other folds choose: the choice does not flatter the error.
    score : float, or None
        R², or the share of classes that are right; None where it is not known.
    over : str
        What was held out: "nodes", "rows", or "given".
    n_folds : int
        In how many parts.
    node_errors : array of shape (nodes,)
        The error of each node's rows at the λ of the model; nan where none was held out.
    edges : array of shape (bins + 1,), or None
        Between which predicted and actual labels, or predicted probabilities, are counted.
    counts : array of int of shape (bins, bins), or (bins, 2), or None
        How many rows: of this actual label (across: predicted); or of this predicted probability and each class.
    """

    measure: str
    error: float
    standard_error: float
    score: float | None
    over: str
    n_folds: int
    node_errors: Array
    edges: Array | None = None
    counts: NDArray[np.int64] | None = None

    def split(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What JSON can hold, and the arrays."""
        found = {name: value for name, value in vars(self).items() if value is not None}
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        return {name: value for name, value in found.items() if name not in arrays}, arrays

    @classmethod
    def joined(cls, plain: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """What `split` came from."""
        return cls(**{"score": None, **plain, **arrays})


def ones_of(problem: Problem, condensed: bool, fit_intercept: bool) -> Array | None:
    """What a column of ones is in the rows of a problem, for a Tally."""
    if not condensed:
        return np.ones(len(problem.data.y))
    return problem.data.X[:, -1] if fit_intercept else None


class Tally:
    """Adds up, over folds, what is predicted for the rows that each holds out, for K values of λ.

    `ones` is what a column of ones is in these rows. Rows may be condensed, and stand for many (coterie.io.moments):
    then sums over them are known, single predictions are not, and it is the column of the intercept, or None.
    """

    def __init__(self, problem: Problem, K: int, n_folds: int, ones: Array | None) -> None:
        self.problem, self.ones = problem, ones
        data = problem.data
        self.measure = problem.loss.measure
        self.good = np.zeros((K, n_folds))  # squared residuals, or rows whose class is right
        self.weight, self.node_weight = np.zeros(n_folds), np.zeros(data.n_nodes)
        self.node_error = np.zeros((K, data.n_nodes))
        self.tested = np.zeros(len(data.y))  # how often each row was held out
        self.edges, self.counts = self._bins(K)

    def _bins(self, K: int) -> tuple[Array | None, NDArray[np.int64] | None]:
        if self.ones is None or (self.ones != 1).any():
            return None, None
        if self.measure.of_classes:
            return np.linspace(0, 1, PROBABILITY_BINS + 1), np.zeros((K, PROBABILITY_BINS, 2), dtype=np.int64)
        y = self.problem.data.labelled.y
        low, high = (float(y.min()), float(y.max())) if np.ptp(y) > 0 else (y[0] - 1.0, y[0] + 1.0)
        return np.linspace(low, high, BINS + 1), np.zeros((K, BINS, BINS), dtype=np.int64)

    def add(self, fold: int, rows: NDArray[np.bool_], solutions: list[Array]) -> list[float]:
        """Return the mean error of these rows under the weights for each λ."""
        data, loss = self.problem.data, cast(Any, self.problem.loss)
        X, y, nodes, s = data.X[rows], data.y[rows], data.nodes[rows], data.weights[rows]
        self.tested += rows
        self.weight[fold] = s.sum()
        self.node_weight += np.bincount(nodes, s, minlength=data.n_nodes)
        means = []
        for k, w in enumerate(solutions):
            error, predicted = loss.error(X, y, w[nodes]), loss.predict(X, w[nodes])
            self.node_error[k] += np.bincount(nodes, s * error, minlength=data.n_nodes)
            self.good[k, fold] = s @ (predicted == y if self.measure.of_classes else (y - predicted) ** 2)
            self._count(k, y, loss.predict_proba(X, w[nodes]) if self.measure.of_classes else predicted)
            means.append(float(np.average(error, weights=s)))
        return means

    def _count(self, k: int, y: Array, predicted: Array) -> None:
        if self.edges is None or self.counts is None:
            return
        last = len(self.edges) - 2
        across = np.clip(np.searchsorted(self.edges, predicted, side="right") - 1, 0, last)
        if self.measure.of_classes:
            np.add.at(self.counts[k], (across, (y > 0.5).astype(int)), 1)
        else:
            up = np.clip(np.searchsorted(self.edges, y, side="right") - 1, 0, last)
            np.add.at(self.counts[k], (up, across), 1)

    def held_out(self, choice: LamChoice, at: int, rule: str, scaling: Scaling) -> HeldOut:
        """What is known of predictions at the λ numbered `at`, which is the model's; `choice` is in units of y."""
        lams = choice.chosen_elsewhere(rule)
        errors = choice.elsewhere(rule)[None]
        nowhere = np.full(len(self.node_weight), np.nan)
        of_node = np.divide(self.node_error[at], self.node_weight, out=nowhere, where=self.node_weight > 0)
        return HeldOut(
            self.measure.name,
            float(mean_over_folds(errors, choice.weights, choice.degree)[0]),
            float(standard_error(errors, choice.weights, choice.repeats, choice.degree)[0]),
            self._score(self.good[lams, np.arange(len(lams))].sum()),
            choice.over,
            len(lams) // choice.repeats,
            scaling.y_spread * self.measure.of_mean(of_node),
            None if self.edges is None else scaling.labels_back(self.edges),
            None if self.counts is None else self.counts[at],
        )

    def _score(self, good: float) -> float | None:
        """R² or accuracy."""
        if self.measure.of_classes:
            return float(good / self.weight.sum())
        if self.ones is None:
            return None
        data, rows = self.problem.data, self.tested > 0
        s, y, one = (self.tested * data.weights)[rows], data.y[rows], self.ones[rows]
        mean = (s * one) @ y / (s @ one**2)
        total = s @ (y - mean * one) ** 2
        return float(1 - good / total) if total > 0 else None
