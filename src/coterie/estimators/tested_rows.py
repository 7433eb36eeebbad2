"""What is predicted of the rows that a fold holds out, added up: no row of them is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from coterie.problem import Problem
from coterie.problem.arrays import Array

BINS, PROBABILITY_BINS = 40, 10


class TestedRows(NamedTuple):
    """Sums over the rows that one fold holds out, for each of K values of λ.

    Attributes
    ----------
    errors : array of shape (K,)
        The mean error of a row.
    weight : float
        How much the rows weigh.
    score : array of shape (K,)
        Squared residuals, or the weight of the rows whose class is right.
    spread : (float, float, float), or None
        Σ s o², Σ s o d and Σ s d² over weights s, ones o and labels d = y − c o, from a common c, which make the
        variance of labels; None where it is not known.
    nodes : array of shape (k,)
        The nodes that rows are held out of.
    node_errors, node_weights : arrays of shape (K, k) and (k,)
        Sums of errors and of weights of their rows.
    counts : array of int of shape (K, bins, bins), or (K, bins, 2), or None
        How many rows have this label (across: this prediction); or this predicted probability, and each class: of more
        than two classes, the probability of the predicted one, and whether it is wrong or right. None where single
        predictions, or probabilities, are not known.
    """

    errors: Array
    weight: float
    score: Array
    spread: tuple[float, float, float] | None
    nodes: NDArray[np.int64]
    node_errors: Array
    node_weights: Array
    counts: NDArray[np.int64] | None

    @classmethod
    def of(cls, problem: Problem, rows: NDArray[np.bool_], solutions: Sequence[Array], ones: Array | None) -> Self:
        """Add up, under the weights for each λ.

        ones : what a column of ones is in the rows; None: that is not known. Where it is not 1, rows are condensed and
            stand for many (coterie.io.moments): sums over them are known, single predictions are not.
        """
        data, loss = problem.data, cast(Any, problem.loss)
        X, y, s = data.X[rows], data.y[rows], data.weights[rows]
        nodes, of = np.unique(data.nodes[rows], return_inverse=True)
        single = ones is not None and (ones == 1).all()
        counted = single and (hasattr(loss, "predict_proba") or not loss.measure.of_classes)
        edges = edges_of(problem) if counted else None
        errors, scores, counts = [], [], []
        for w in solutions:
            own = w[data.nodes[rows]]
            predicted = loss.predict(X, own)
            errors.append(loss.error(X, y, own))
            scores.append(s @ (predicted == y if loss.measure.of_classes else (y - predicted) ** 2))
            if edges is not None:
                against = loss.predict_proba(X, own) if loss.measure.of_classes else predicted
                if against.ndim == 2:  # of several classes, the predicted one, and whether it is right
                    against, actual = against.max(axis=1), (predicted == y).astype(float)
                else:
                    actual = y
                counts.append(_counted(actual, against, edges, loss.measure.of_classes))
        return cls(
            np.array([np.average(error, weights=s) for error in errors]),
            float(s.sum()),
            np.array(scores),
            None if ones is None else _spread(problem, ones[rows], y, s),
            nodes,
            np.array([np.bincount(of, s * error) for error in errors]),
            np.bincount(of, s),
            np.array(counts) if counts else None,
        )

    @classmethod
    def joined(cls, tests: Sequence[Self], order: NDArray[np.int64]) -> Self:
        """The sums for the λ of several paths over the same rows, in this order."""
        by_lam: dict[str, Any] = {
            name: np.concatenate([getattr(test, name) for test in tests])[order]
            for name in ("errors", "score", "node_errors", "counts")
            if getattr(tests[0], name) is not None
        }
        return tests[0]._replace(**by_lam)


def edges_of(problem: Problem) -> Array:
    """Between which predictions and labels, or predicted probabilities, are counted."""
    if problem.loss.measure.of_classes:
        return np.linspace(0, 1, PROBABILITY_BINS + 1)
    y = problem.data.labelled.y
    low, high = (float(y.min()), float(y.max())) if np.ptp(y) > 0 else (y[0] - 1.0, y[0] + 1.0)
    return np.linspace(low, high, BINS + 1)


def ones_of(problem: Problem, condensed: bool, fit_intercept: bool) -> Array | None:
    """What a column of ones is in the rows of a problem."""
    if not condensed:
        return np.ones(len(problem.data.y))
    return problem.data.X[:, -1] if fit_intercept else None


def _spread(problem: Problem, one: Array, y: Array, s: Array) -> tuple[float, float, float]:
    labelled = problem.data.labelled
    d = y - float(np.average(labelled.y, weights=labelled.weights)) * one
    return float(s @ one**2), float((s * one) @ d), float(s @ d**2)


def _counted(y: Array, predicted: Array, edges: Array, classes: bool) -> NDArray[np.int64]:
    last = len(edges) - 2
    across = np.clip(np.searchsorted(edges, predicted, side="right") - 1, 0, last)
    up = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, last)
    shape, at = ((last + 1, 2), (across, (y > 0.5).astype(int))) if classes else ((last + 1,) * 2, (up, across))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, at, 1)
    return counts
