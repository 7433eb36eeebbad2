"""How well labels are predicted that were held out: errors, a score without a unit, and predicted against actual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.fold_errors import mean_over_folds, standard_error
from coterie.estimators.fold_paths import FoldPath
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.scaling import Scaling
from coterie.estimators.tested_rows import TestedRows, edges_of
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.measure import EXPLAINED, MEAN_DEVIANCE, Measure


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut:
    """What is known of predictions for rows whose labels were held out.

    Attributes
    ----------
    measure : str
        What `error` is: the root mean squared error, the log-loss, the mean deviance, the mean absolute error or the
        pinball loss.
    error, standard_error : float
        In units of y. λ of each fold is the one that the other folds choose: the choice does not flatter the error.
    score : float, or None
        R², D², or the share of classes that are right; None where it is not known.
    over : str
        What was held out: "nodes", "rows", or "given".
    n_folds : int
        In how many parts.
    node_errors : array of shape (nodes,)
        The error of each node's rows at the λ of the model; nan where none was held out.
    edges : array of shape (bins + 1,), or None
        Between which predicted and actual labels, or predicted probabilities, are counted.
    counts : array of int of shape (bins, bins), or (bins, 2), or None
        How many rows: of this actual label, or residual (across: predicted); or of this predicted probability and each
        class.
    residual_edges : array of shape (bins + 1,), or None
        Where counts are predicted: between which deviance residuals, the signed roots of deviances, are counted.
    coverage : float, or None
        Where a quantile is predicted: the part of the labels that is no larger.
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
    residual_edges: Array | None = None
    coverage: float | None = None

    def __repr__(self) -> str:
        score = "" if self.score is None else f", score {self.score:.3g}"
        error = f"{self.measure} {self.error:.4g} ± {self.standard_error:.2g}"
        return f"HeldOut({error}{score}, {self.n_folds} folds over {self.over})"

    def split(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """What JSON can hold, and the arrays."""
        found = {name: value for name, value in vars(self).items() if value is not None}
        arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
        return {name: value for name, value in found.items() if name not in arrays}, arrays

    @classmethod
    def joined(cls, plain: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """What `split` came from."""
        return cls(**{"score": None, **plain, **arrays})


def held_out_of(
    problem: Problem,
    paths: Sequence[FoldPath],
    choice: LamChoice,
    at: int,
    rule: str,
    scaling: Scaling,
    shared: bool = False,
) -> HeldOut:
    """What folds say of predictions at the λ numbered `at`, which is the model's; `choice` is theirs, in units of y.

    shared : whether the last node is the hub, which has no rows.
    """
    n_nodes, edges = problem.graph.n_nodes - shared, edges_of(problem)
    return held_out_at(problem.loss.measure, n_nodes, edges, paths, choice, at, rule, scaling)


def held_out_at(
    measure: Measure,
    n_nodes: int,
    edges: tuple[Array, Array],
    paths: Sequence[FoldPath],
    choice: LamChoice,
    at: int,
    rule: str,
    scaling: Scaling,
) -> HeldOut:
    """The same, of so many nodes, with rows counted between these edges."""
    folds, tests = np.arange(len(paths)), [path.test for path in paths]
    lams, errors = choice.chosen_elsewhere(rule), choice.elsewhere(rule)[None]
    total, weight = np.zeros((2, n_nodes))
    for test in tests:
        total[test.nodes] += test.node_errors[at]
        weight[test.nodes] += test.node_weights
    of_node = np.divide(total, weight, out=np.full(len(total), np.nan), where=weight > 0)
    counts = None if tests[0].counts is None else sum(test.counts[at] for test in tests if test.counts is not None)
    up, across = edges
    residuals, weight_of_all = measure == MEAN_DEVIANCE, sum(test.weight for test in tests)
    below = [test.below[lam] for test, lam in zip(tests, lams, strict=True) if test.below is not None]
    return HeldOut(
        measure.name,
        float(mean_over_folds(errors, choice.weights, choice.degree)[0]),
        float(standard_error(errors, choice.weights, choice.repeats, choice.degree)[0]),
        _score(measure, tests, sum(tests[k].score[lams[k]] for k in folds)),
        choice.over,
        len(folds) // choice.repeats,
        scaling.y_spread * measure.of_mean(of_node),
        None if counts is None else scaling.labels_back(across if residuals else up),
        counts,
        up if residuals and counts is not None else None,
        float(sum(below) / weight_of_all) if below else None,
    )


def _score(measure: Measure, tests: Sequence[TestedRows], good: float) -> float | None:
    """R², D² or accuracy."""
    if measure.of_classes:
        return float(good / sum(test.weight for test in tests))
    if measure.score == EXPLAINED:
        of_constant = sum(test.constant or 0.0 for test in tests)
        return float(1 - good / of_constant) if of_constant > 0 else None
    spreads = [test.spread for test in tests if test.spread is not None]
    if not spreads:
        return None
    ones, first, second = np.sum(spreads, axis=0)
    variation = second - first**2 / ones
    return float(1 - good / variation) if variation > 0 else None
