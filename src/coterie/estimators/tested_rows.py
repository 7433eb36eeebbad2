"""What is predicted of the rows that a fold holds out, added up: no row of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.scaling import Holders
from coterie.problem import LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import Loss, with_offset
from coterie.problem.losses.measure import EXPLAINED, MEAN_ABSOLUTE_ERROR, MEAN_DEVIANCE, PINBALL_LOSS, Measure

BINS, PROBABILITY_BINS = 40, 10
OUTLYING = 8.0  # times the median distance from the median


class TestedRows(NamedTuple):
    """Sums over the rows that one fold holds out, for each of K values of λ.

    Attributes
    ----------
    errors : array of shape (K,)
        The mean error of a row.
    weight : float
        How much the rows weigh.
    score : array of shape (K,)
        Squared residuals, errors where D² is to be known, or the weight of the rows whose class is right.
    spread : (float, float, float), or None
        Σ s o², Σ s o d and Σ s d² over weights s, ones o and labels d = y − c o, from a common c, which make the
        variance of labels; None where it is not known.
    constant : float, or None
        The errors of the best constant, where D² is to be known.
    below : array of shape (K,), or None
        The weight of the rows whose label is no larger than what is predicted, where that is a quantile.
    nodes : array of shape (k,)
        The nodes that rows are held out of.
    node_errors, node_weights : arrays of shape (K, k) and (k,)
        Sums of errors and of weights of their rows.
    counts : array of int of shape (K, bins, bins), or (K, bins, 2), or None
        How many rows have this label, or of counts this residual (across: this prediction); or this predicted
        probability, and each class: of more than two classes, the probability of the predicted one, and whether it is
        wrong or right. None where single predictions, or probabilities, are not known.
    """

    errors: Array
    weight: float
    score: Array
    spread: tuple[float, float, float] | None
    constant: float | None
    below: Array | None
    nodes: NDArray[np.int64]
    node_errors: Array
    node_weights: Array
    counts: NDArray[np.int64] | None

    @classmethod
    def of(
        cls,
        problem: Problem | RowsOfLoss,
        rows: NDArray[np.bool_],
        solutions: Sequence[Array],
        ones: Array | None,
        labels: Labels | None = None,
    ) -> Self:
        """Add up, under the weights for each λ.

        ones : what a column of ones is in the rows; None: that is not known. Where it is not 1, rows are condensed and
            stand for many (coterie.io.moments): sums over them are known, single predictions are not.
        labels : what those of all rows say; None: all are here.
        """
        labels = labels or Labels.of(problem)
        data, loss = problem.data, cast(Any, problem.loss)
        X, y, s, measure = data.X[rows], data.y[rows], data.weights[rows], loss.measure
        offset = None if data.offset is None else data.offset[rows]
        nodes, of = np.unique(data.nodes[rows], return_inverse=True)
        single = ones is not None and (ones == 1).all()
        counted = single and (hasattr(loss, "predict_proba") or not measure.of_classes)
        edges = labels.edges if counted else None
        errors, scores, below, counts = [], [], [], []
        for w in solutions:
            x, own = with_offset(X, w[data.nodes[rows]], offset)
            predicted, error = loss.predict(x, own), loss.error(x, y, own)
            errors.append(error)
            scores.append(s @ _good(measure, y, predicted, error))
            below.append(s @ (y <= predicted))
            if edges is not None:
                chance = loss.predict_proba(x, own) if measure.of_classes else None
                counts.append(_counted(_axes(measure, y, predicted, error, chance), edges))
        return cls(
            np.array([s @ error for error in errors]) / (s.sum() or 1.0),
            float(s.sum()),
            np.array(scores),
            None if ones is None else _spread(labels.mean, ones[rows], y, s),
            None if labels.constant is None else float(s @ labels.constant[rows]),
            np.array(below) if measure == PINBALL_LOSS else None,
            nodes,
            np.array([np.bincount(of, s * error) for error in errors]),
            np.bincount(of, s),
            np.array(counts) if counts else None,
        )

    def added(self, holders: Holders) -> Self:
        """The sums over the rows of all holders; nodes are those of this one."""
        weight = holders.added(self.weight)
        there = {name: getattr(self, name) for name in ("score", "spread", "constant", "below", "counts")}
        sums: dict[str, Any] = {name: holders.added(value) for name, value in there.items() if value is not None}
        if "counts" in sums:
            sums["counts"] = np.rint(sums["counts"]).astype(np.int64)
        return self._replace(errors=holders.added(self.weight * self.errors) / weight, weight=weight, **sums)

    @classmethod
    def joined(cls, tests: Sequence[Self], order: NDArray[np.int64]) -> Self:
        """The sums for the λ of several paths over the same rows, in this order."""
        by_lam: dict[str, Any] = {
            name: np.concatenate([getattr(test, name) for test in tests])[order]
            for name in ("errors", "score", "below", "node_errors", "counts")
            if getattr(tests[0], name) is not None
        }
        return tests[0]._replace(**by_lam)


class RowsOfLoss(NamedTuple):
    """Rows, and the loss that they are for: what is needed of a problem here."""

    data: LocalDatasets
    loss: Loss


class Labels(NamedTuple):
    """What the labels of all rows say, whichever of them a fold holds out.

    Attributes
    ----------
    edges : two arrays
        Between which rows are counted, along the two axes of `counts`.
    mean : float
    constant : array, or None
        The error of each row of the data where the best constant of all is predicted, where D² is to be known.
    """

    edges: tuple[Array, Array]
    mean: float
    constant: Array | None

    @classmethod
    def of(cls, problem: Problem | RowsOfLoss) -> Self:
        """Of a problem with all rows."""
        data, loss, labelled = problem.data, cast(Any, problem.loss), problem.data.labelled
        constant = None
        if loss.measure.score == EXPLAINED:
            constant = np.zeros(len(data.y))
            constant[~np.isnan(data.y) & (data.weights > 0)] = loss.constant_error(labelled)
        return cls(edges_of(problem), float(np.average(labelled.y, weights=labelled.weights)), constant)


def edges_of(problem: Problem | RowsOfLoss) -> tuple[Array, Array]:
    """Between which rows are counted, along the two axes of `counts`."""
    measure, loss, labelled = problem.loss.measure, cast(Any, problem.loss), problem.data.labelled
    y = labelled.y
    if measure.of_classes:
        return np.linspace(0, 1, PROBABILITY_BINS + 1), np.array([0.0, 0.5, 1.0])
    if measure == MEAN_DEVIANCE:  # residuals; and counts by their roots, which vary alike, however large they are
        most = np.sqrt(max(loss.constant_error(labelled).max(), 1.0))
        return np.linspace(-most, most, BINS + 1), np.linspace(0, np.sqrt(max(y.max(), 1.0)), BINS + 1) ** 2
    if measure == MEAN_ABSOLUTE_ERROR and (size := np.median(np.abs(y - np.median(y)))) > 0:
        y = y.clip(np.median(y) - OUTLYING * size, np.median(y) + OUTLYING * size)  # outliers count where that ends
    low, high = (float(y.min()), float(y.max())) if np.ptp(y) > 0 else (y[0] - 1.0, y[0] + 1.0)
    return (edges := np.linspace(low, high, BINS + 1)), edges


def ones_of(problem: Problem, condensed: bool, fit_intercept: bool) -> Array | None:
    """What a column of ones is in the rows of a problem."""
    if not condensed:
        return np.ones(len(problem.data.y))
    return problem.data.X[:, -1] if fit_intercept else None


def _spread(mean: float, one: Array, y: Array, s: Array) -> tuple[float, float, float]:
    d = y - mean * one
    return float(s @ one**2), float((s * one) @ d), float(s @ d**2)


def _good(measure: Measure, y: Array, predicted: Array, error: Array) -> Array:
    """What a score adds up."""
    if measure.of_classes:
        return predicted == y
    return error if measure.score == EXPLAINED else (y - predicted) ** 2


def _axes(measure: Measure, y: Array, predicted: Array, error: Array, chance: Array | None) -> tuple[Array, Array]:
    """What rows are counted by: probability and class, residual and expected count, or label and prediction."""
    if chance is not None and chance.ndim == 2:  # of several classes, the predicted one, and whether it is right
        return chance.max(axis=1), (predicted == y).astype(float)
    if chance is not None:
        return chance, y
    return (np.sign(y - predicted) * np.sqrt(error) if measure == MEAN_DEVIANCE else y), predicted


def _counted(values: tuple[Array, Array], edges: tuple[Array, Array]) -> NDArray[np.int64]:
    counts = np.zeros([len(one) - 1 for one in edges], dtype=np.int64)
    pairs = zip(values, edges, strict=True)
    at = tuple(np.clip(np.searchsorted(one, value, side="right") - 1, 0, len(one) - 2) for value, one in pairs)
    np.add.at(counts, at, 1)
    return counts
