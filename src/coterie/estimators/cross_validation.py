"""λ by cross-validation: a warm path for each fold, solved no further than the choice needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from coterie.problem import LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.solver import NotConverged, Solution, lam_grid, solve_path

Over = Literal["auto", "nodes", "rows"]

PATH_TOL = 1e-2
"""The gap that a fold's path is solved to: see docs/decisions/0007-tolerance-of-folds.md."""

SMALLEST = 1e-4
"""Where the default λ end, relative to the largest useful one."""


class Fold(NamedTuple):
    """Masks of the rows whose labels are learnt from, and of those that are held out."""

    train: NDArray[np.bool_]
    test: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LamChoice:
    """The errors of every λ in every fold, and what follows from them.

    Attributes
    ----------
    lams : array of shape (K,), descending
    errors : array of shape (K, folds)
        Mean error of the rows held out: squared error, or log-loss.
    gaps : array of shape (K, folds)
        How far from optimal each fit can have been, relative.
    over : str
        What was held out: "nodes", "rows", or "given" where cv said so.
    """

    lams: Array
    errors: Array
    gaps: Array
    over: str

    @property
    def mean(self) -> Array:
        """The mean error of each λ over the folds."""
        return self.errors.mean(axis=1)

    @property
    def standard_error(self) -> Array:
        """The standard error of that mean."""
        return standard_error(self.errors)

    @property
    def best(self) -> int:
        """Which λ has the smallest mean error."""
        return int(np.argmin(self.mean))

    @property
    def one_se(self) -> int:
        """The largest λ whose mean error is within one standard error of the smallest."""
        return int(np.argmax(self.mean <= self.mean[self.best] + self.standard_error[self.best]))

    def results(self) -> dict[str, Array]:
        """The same as a dictionary of columns, which makes a frame."""
        columns = {"lam": self.lams, "mean_error": self.mean, "standard_error": self.standard_error}
        folds = {f"fold{k}_error": self.errors[:, k] for k in range(self.errors.shape[1])}
        return {**columns, **folds, "largest_gap": self.gaps.max(axis=1)}


def standard_error(errors: Array) -> Array:
    """The standard error of the mean over the folds, which are the columns; 0 where there is one fold only."""
    folds = errors.shape[1]
    return errors.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(len(errors))


def cross_validate_lam(
    problem: Problem,
    lams: Sequence[float] | int,
    folds: Sequence[Fold],
    over: str,
    *,
    progress: Callable[[int, float, Solution], None] | None = None,
    tol: float = PATH_TOL,
    **options: Any,
) -> LamChoice:
    """Solve a path of λ on each fold and measure the error of the rows that it holds out.

    Parameters
    ----------
    problem : Problem
        Its own λ does not matter.
    lams : sequence of float, or int
        The values, or how many to spread below the largest useful one.
    folds : sequence of Fold
    progress : callable, optional
        Called as ``progress(fold, lam, solution)`` after each solve.
    """
    if isinstance(lams, int | np.integer):
        values = lam_grid(problem, int(lams), SMALLEST)
    else:
        values = sorted(map(float, lams), reverse=True)
    errors, gaps = np.empty((2, len(values), len(folds)))
    first: Solution | None = None  # at the largest λ folds differ little, and each path starts where the last one did
    for k, fold in enumerate(folds):
        training = without(problem, fold)
        rows = reachable(training, fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)  # the gaps are reported
            told = progress and partial(progress, k)
            path = solve_path(training, values, tol=tol, start=first, progress=told, **options)
        if len(path) < len(values):
            raise KeyboardInterrupt
        first = path.solutions[0]
        errors[:, k] = [mean_error(problem, rows, solution.w) for solution in path.solutions]
        gaps[:, k] = [solution.gap for solution in path.solutions]
    return LamChoice(np.array(values), errors, gaps, over)


def what_to_hold_out(over: Over, m: NDArray[np.int64], n_nodes: int) -> Literal["nodes", "rows"]:
    """Return what folds hold out of data whose labelled nodes have m labelled rows each.

    "auto": nodes where the graph has nodes without labels, which are then what the model is for, or where hardly any
    node has two rows; otherwise rows.
    """
    if over == "auto":
        return "nodes" if len(m) < n_nodes or (np.median(m) < 2 and len(m) > 1) else "rows"
    if over not in ("nodes", "rows"):
        raise ValueError(f'over must be "auto", "nodes" or "rows", got {over!r}')
    return over


def folds_of(
    data: LocalDatasets, cv: Any, over: Over, order: Array | None, random_state: Any
) -> tuple[list[Fold], str]:
    """Return the folds, and what they hold out: all rows of some labelled nodes, or some labelled rows of any node.

    cv is a number of folds, or anything else that scikit-learn takes for cv, which then says what is held out and
    counts rows as they came: row k of the data was row order[k]. Without an order, rows are condensed, and only nodes
    can be held out. Rows with labels of two kinds are shared out so that each fold has its part of both.
    """
    M, m = data.labelled.M, data.labelled.m
    over = what_to_hold_out(over, m, data.n_nodes)
    if order is None and not (over == "nodes" and isinstance(cv, Integral)):
        raise ValueError('only folds over nodes can be made without the rows; give over="nodes" and a number for cv')
    counts = ~np.isnan(data.y) & (data.weights > 0)
    if not isinstance(cv, Integral):
        assert order is not None
        return _given(data, cv, order, counts), "given"
    items, member = (M, data.nodes) if over == "nodes" else (np.flatnonzero(counts), np.arange(len(data.y)))
    if not 2 <= int(cv) <= len(items):
        raise ValueError(f"cv={cv} folds over {over} need as many labelled ones; here n_samples={len(items)}")
    classes = data.y[items] if over == "rows" and len(np.unique(data.y[counts])) == 2 else None
    splitter = KFold if classes is None else StratifiedKFold
    splits = splitter(int(cv), shuffle=True, random_state=random_state).split(items, classes)
    tests = [items[test] for _, test in splits]
    held_out = [counts & np.isin(member, test) for test in tests]
    return [Fold(counts & ~test, test) for test in held_out], over


def _given(data: LocalDatasets, cv: Any, order: Array, counts: NDArray[np.bool_]) -> list[Fold]:
    """The folds that cv makes of the rows as they came, but for those without labels to learn from or to test on."""
    came = np.argsort(order)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The groups parameter is ignored")  # by splitters that do not need it
        splits = list(check_cv(cv).split(data.X[came], data.y[came], data.nodes[came]))
    folds = [Fold(counts & np.isin(order, train), counts & np.isin(order, test)) for train, test in splits]
    folds = [fold for fold in folds if fold.train.any() and fold.test.any()]
    if not folds:
        raise ValueError("no fold of cv has labels both to learn from and to test on")
    return folds


def without(problem: Problem, fold: Fold) -> Problem:
    """The problem that knows the labels of the training rows alone."""
    return replace(problem, data=replace(problem.data, y=np.where(fold.train, problem.data.y, np.nan)))


def reachable(training: Problem, fold: Fold) -> NDArray[np.bool_]:
    """The rows held out, but for those of nodes that no label reaches at any λ."""
    rows = fold.test & ~np.isin(training.data.nodes, replace(training, lam=1.0).undetermined)
    if not rows.any():
        raise ValueError("a fold holds out labels that no other label is connected to; use fewer folds")
    return rows


def mean_error(problem: Problem, rows: NDArray[np.bool_], w: Array) -> float:
    """Mean error of these rows of the data under the weights of their nodes."""
    data = problem.data
    error = problem.loss.error(data.X[rows], data.y[rows], w[data.nodes[rows]])
    return float(np.average(error, weights=data.weights[rows]))
