"""Residuals of labels that were not learnt from: those of folds of the training rows, or of rows that were kept."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.fold import Over
from coterie.estimators.fold_paths import how_to_solve, training_part
from coterie.estimators.folds import folds_for, what_to_hold_out
from coterie.estimators.interval_kinds import ids_of, kinds_of, most_folds, refuse_seen
from coterie.estimators.new_nodes import warm_start
from coterie.estimators.refit import refitted
from coterie.estimators.space_time import CARRIED, carried
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver import NotConverged, solve

FOLD_TOL = 1e-4
"""The gap of a fold's fit: residuals are then off by far less than they vary."""


def _residuals(model: Any, problem: Problem, rows: NDArray, w: Array) -> Array:
    """Label less prediction, in units of y."""
    data = problem.data
    predicted = problem.loss.predict(data.X[rows], w[data.nodes[rows]])
    return model._as_labels(data.y[rows]) - model._as_labels(predicted)


def of_folds(model: Any, by: Over, cv: int, rng: np.random.RandomState) -> tuple[str, Array, NDArray[np.int64]]:
    """Residuals of training rows, each predicted by a fit without its fold, and their nodes."""
    if not hasattr(model, "first_problem_") or model._condensed:
        raise ValueError(
            "the training rows are not there to be held out; give rows with labels: calibrate(X, y, groups)"
        )
    problem: Problem = model.first_problem_  # whose graph has seen no labels
    by = what_to_hold_out(by, problem.data.labelled.m, problem.data.n_nodes - model.shared)
    cv = min(cv, most_folds(problem, by))
    folds, held = folds_for(model, problem, cv, by, np.arange(len(problem.data.y)), rng)
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


def of_rows(model: Any, X: Any, y: Any, groups: Any, by: Over) -> tuple[str, Array, NDArray[np.int64]]:
    """Residuals of rows that the model has not seen, and their nodes."""
    if y is None:
        raise ValueError("rows to calibrate with need labels: calibrate(X, y, groups)")
    nodes, predicted = nodes_and_predicted(model, X, groups, later=by == "times")
    labels = model._labels(y, len(nodes), False)
    reached = ~np.isnan(labels) & ~np.isin(nodes, model.solution_.undetermined)
    if not reached.any():
        raise ValueError("there is nothing to calibrate with: no row has a label and a node that training labels reach")
    m = model.n_labelled_
    held = what_to_hold_out(by, m[m > 0], len(m))
    refuse_seen(model, held, nodes[reached], kinds_of(model, X, groups, nodes)[reached])
    return held, (labels - predicted)[reached], _apart(model, X, groups, nodes)[reached]


def nodes_and_predicted(model: Any, X: Any, groups: Any, later: bool) -> tuple[NDArray[np.int64], Array]:
    """The node of each row and its prediction. `later`: times to come are meant to be the last one, and it is known."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", CARRIED)
        nodes = model._features_and_nodes(X, groups, model.solution_.graph, first=False, later=later)[1]
        return nodes, model.predict(X, groups)


def _apart(model: Any, X: Any, groups: Any, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each node: those that are not in the graph have one model, but are as many as they have ids."""
    ids = ids_of(model, X, groups) if model.shared else []
    number: dict[Any, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in ids]) if ids else nodes


def one_of_each(residuals: Array, nodes: NDArray[np.int64], rng: np.random.RandomState) -> Array:
    """One residual of each node (or place), drawn at random."""
    order = rng.permutation(len(nodes))
    return residuals[order[np.unique(nodes[order], return_index=True)[1]]]
