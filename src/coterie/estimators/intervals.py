"""Prediction intervals that cover a given share of new labels: conformal, from residuals of labels not learnt from.

Residuals come from rows that were kept for it (split-conformal), or from folds of the training rows (cross-conformal).
The quantile and the intervals are those of crepes.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.fold import Over
from coterie.estimators.fold_paths import how_to_solve, training_part
from coterie.estimators.folds import folds_for, what_to_hold_out
from coterie.estimators.new_nodes import warm_start
from coterie.estimators.refit import refitted
from coterie.estimators.space_time import carried
from coterie.estimators.tables import take_groups
from coterie.io.files import MissingExtraError
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.ids import as_ids
from coterie.solver import NotConverged, solve

FOLD_TOL = 1e-4
"""The gap of a fold's fit: residuals are then off by far less than they vary."""

ROUNDING = 1e-12  # so that (1 − coverage)(n + 1), where it is a whole number, is not cut down to the one below


class Calibration(NamedTuple):
    """What intervals are made of.

    Attributes
    ----------
    by : str
        "rows": residuals of rows of nodes that have other labels. "nodes": one residual for each node without labels.
    how : str
        "split" or "cross".
    residuals : array
        Label less prediction.
    """

    by: str
    how: str
    residuals: Array


class IntervalsMixin:
    """Prediction intervals of a fitted regression. The attributes are the model's own."""

    calibration_: Calibration

    def calibrate(
        self,
        X: Any = None,
        y: Any = None,
        groups: Any = None,
        *,
        by: Over = "auto",
        cv: int = 5,
        random_state: Any = 0,
    ) -> Self:
        """Learn from labels that the model has not learnt from how wide intervals have to be.

        Parameters
        ----------
        X : array or frame of shape (rows, features), default=None
            Rows that were not in the fit (split-conformal). None: folds of the training rows, each predicted by a fit
            to the others at the same λ (cross-conformal); a model that was loaded, or fitted in one pass, has none.
        y : sequence of shape (rows,), default=None
            Their labels.
        groups : sequence of shape (rows,) or str, default=None
            The node of each of these rows, as for `fit`.
        by : {"auto", "rows", "nodes"}, default="auto"
            For new rows of nodes that have labels, or for nodes without labels: whole nodes are then held out, and one
            row of each, drawn at random, counts, since rows of one node are alike. "auto": as for the choice of λ.
        cv : int, default=5
            The number of folds, without X; fewer where fewer rows (nodes) have labels.
        random_state : int or RandomState, default=0
            Draws the folds, and the rows of nodes.

        Returns
        -------
        NetworkedRegressor
            The model itself, with `calibration_`.

        Raises
        ------
        ValueError
            If there are no rows to hold out, or a node to calibrate by had labels in the fit.
        """
        check_is_fitted(self)
        model: Any = self
        if by not in ("auto", "rows", "nodes"):
            raise ValueError(f'by must be "auto", "rows" or "nodes", got {by!r}')
        rng = check_random_state(random_state)
        if X is None:
            held, residuals, nodes = _of_folds(model, by, cv, rng)
        else:
            held, residuals, nodes = _of_rows(model, X, y, groups, by)
        if held == "nodes":
            residuals = _one_of_each(residuals, nodes, rng)
        self.calibration_ = Calibration(held, "cross" if X is None else "split", residuals)
        return self

    def predict_interval(self, X: Any, groups: Any = None, coverage: float = 0.9) -> Array:
        """Predict an interval for the label of each row, wide enough for this share of new labels.

        The first call makes the residuals that it needs, by `calibrate()`, unless that was done. Calibrated on rows (or
        nodes) that were kept for it, an interval covers the label of a new row (of a row of a new node) with at least
        this probability, if the new one and those kept are exchangeable: drawn in the same way, in any order. This is
        an average over all rows (nodes), not a promise for each. From folds, the same is approximate.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is. Of places at times, times of the fit: of those to come no residual is known.
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        array of shape (rows, 2)
            Lower and upper ends; infinite where too few residuals are known for this coverage, and at nodes that no
            label reaches.

        Raises
        ------
        ImportError
            If crepes is not installed: it comes with the extra coterie[intervals].
        """
        asked: Any = coverage
        if not isinstance(asked, Real) or not 0 < float(asked) < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}")
        regressor = _crepes()
        check_is_fitted(self)
        model: Any = self
        if not hasattr(self, "calibration_"):
            self.calibrate()
        nodes = model._features_and_nodes(X, groups, model.solution_.graph, first=False)[1]  # no times to come
        predicted = model.predict(X, groups)
        _check_nodes(model, nodes, self.calibration_.by)
        known = len(self.calibration_.residuals)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said below, with what to do
            fitted = regressor().fit(residuals=self.calibration_.residuals)
            found = fitted.predict_int(predicted, confidence=coverage - ROUNDING)
        if known and np.isinf(found).any():
            needed = int(np.ceil(coverage / (1 - coverage) - 1e-9))
            warnings.warn(
                f"a coverage of {coverage:g} needs {needed} calibrated {self.calibration_.by}; there are {known}, so "
                "that intervals are infinite: ask for less, or calibrate with more",
                stacklevel=2,
            )
        found[np.isin(nodes, model.solution_.undetermined)] = -np.inf, np.inf
        return found


def _crepes() -> Any:
    try:
        with warnings.catch_warnings():  # it would turn on warnings for the whole process
            from crepes import ConformalRegressor
    except ImportError:
        raise MissingExtraError("intervals need crepes, which comes with the extra coterie[intervals]") from None
    return ConformalRegressor


def _residuals(model: Any, problem: Problem, rows: NDArray, w: Array) -> Array:
    """Label less prediction, in units of y."""
    data = problem.data
    predicted = problem.loss.predict(data.X[rows], w[data.nodes[rows]])
    return model._as_labels(data.y[rows]) - model._as_labels(predicted)


def _of_folds(model: Any, by: Over, cv: int, rng: np.random.RandomState) -> tuple[str, Array, NDArray[np.int64]]:
    """Residuals of training rows, each predicted by a fit without its fold, and their nodes."""
    if not hasattr(model, "first_problem_") or model._condensed:
        raise ValueError(
            "the training rows are not there to be held out; give rows with labels: calibrate(X, y, groups)"
        )
    problem: Problem = model.first_problem_  # whose graph has seen no labels
    m = problem.data.labelled.m
    by = what_to_hold_out(by, m, problem.data.n_nodes - model.shared)
    most = max(len(m) if by == "nodes" else int(m.sum()), 2)
    folds, held = folds_for(model, problem, min(cv, most), by, np.arange(len(problem.data.y)), rng)
    residuals, nodes = [], []
    for fold in folds:
        known, rows = training_part(problem, fold, model.made_)
        bound = known.bound.at(model.lam_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            w = solve(bound, FOLD_TOL, start=warm_start(model.solution_, bound.graph), **how_to_solve(model)).w
        w = carried(w if model.refit is None else refitted(bound, w), problem.graph)
        residuals.append(_residuals(model, problem, rows, w))
        nodes.append(problem.data.nodes[rows])
    return held, np.concatenate(residuals), np.concatenate(nodes)


def _of_rows(model: Any, X: Any, y: Any, groups: Any, by: Over) -> tuple[str, Array, NDArray[np.int64]]:
    """Residuals of rows that the model has not seen, and their nodes."""
    if y is None:
        raise ValueError("rows to calibrate with need labels: calibrate(X, y, groups)")
    nodes = model._features_and_nodes(X, groups, model.solution_.graph, first=False)[1]
    labels = model._labels(y, len(nodes), False)
    reached = ~np.isnan(labels) & ~np.isin(nodes, model.solution_.undetermined)
    if not reached.any():
        raise ValueError("there is nothing to calibrate with: no row has a label and a node that training labels reach")
    m = model.n_labelled_
    held = what_to_hold_out(by, m[m > 0], len(m))
    seen = reached & (np.append(m, 0)[nodes] > 0)
    if held == "nodes" and seen.any():
        name = model.graph_.names[nodes[seen][0]]
        raise ValueError(
            f'node {name!r} had labels in the fit; by="nodes" is for those that had none, by="rows" for others'
        )
    return held, (labels - model.predict(X, groups))[reached], _apart(model, X, groups, nodes)[reached]


def _apart(model: Any, X: Any, groups: Any, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each node: those that are not in the graph have one model, but are as many as they have ids."""
    ids = take_groups(X, model.groups_column_ if groups is None else groups)[1] if model.shared else None
    if ids is None:
        return nodes
    number: dict[Any, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in as_ids(ids)])


def _one_of_each(residuals: Array, nodes: NDArray[np.int64], rng: np.random.RandomState) -> Array:
    """One residual of each node, drawn at random."""
    order = rng.permutation(len(nodes))
    return residuals[order[np.unique(nodes[order], return_index=True)[1]]]


def _check_nodes(model: Any, nodes: NDArray[np.int64], by: str) -> None:
    """Warn where intervals are asked for at nodes of the other kind than those that were calibrated by."""
    unlabelled = nodes[np.append(model.n_labelled_, 0)[nodes] == 0]
    if by == "rows" and len(unlabelled):
        names, first = model.graph_.names, unlabelled[0]
        node = f"node {names[first]!r}" if first < len(names) else "a node that is not in the graph"
        warnings.warn(
            f"{node} has no labels, but intervals were calibrated on rows of nodes that have: they are too "
            'narrow for it; use calibrate(by="nodes")',
            stacklevel=3,
        )
