"""Which labels a fold holds out: whole nodes or rows of any node, every fold with its part of the rows and classes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from coterie.estimators.fold import OF_SPACE_TIME, Fold, Held, Over, dealt
from coterie.estimators.space_time import goes_round, places_of, until
from coterie.estimators.space_time_folds import space_time_folds
from coterie.problem import LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import Loss, Multinomial


def what_to_hold_out(over: Over, m: NDArray[np.int64], n_nodes: int) -> Held:
    """Return what folds hold out of data whose labelled nodes have m labelled rows each.

    "auto": nodes where the graph has nodes without labels, which are then what the model is for, or where hardly any
    node has two rows; otherwise rows.
    """
    if over == "auto":
        return "nodes" if len(m) < n_nodes or (np.median(m) < 2 and len(m) > 1) else "rows"
    if over not in ("nodes", "rows", *OF_SPACE_TIME):
        raise ValueError(f'over must be "auto", "nodes", "rows", "places", "times" or "blocks", got {over!r}')
    return over


def folds_of(
    data: LocalDatasets,
    cv: Any,
    over: Over,
    order: Array | None,
    random_state: Any,
    repeats: int = 1,
    n_places: int | None = None,
    of_classes: bool = False,
) -> tuple[list[Fold], str]:
    """Return the folds, and what they hold out: all rows of some labelled nodes, or some labelled rows of any node.

    Where nodes are places at times, n_places of them at each, also what space_time_folds.py says.

    cv is a number of folds, drawn `repeats` times; or anything else that scikit-learn takes for cv, which then says
    what is held out and counts rows as they came: row k of the data was row order[k]. Without an order, rows are
    condensed, and only nodes can be held out. Folds have nearly equal shares of the rows and, where labels are
    of two kinds, or `of_classes`, of each; otherwise, folds over rows have their share of the rows of each node.
    """
    classes = _classes(data, of_classes)
    M, m = data.labelled.M, data.labelled.m
    over = what_to_hold_out(over, m, data.n_nodes)
    if order is None and not (over != "rows" and isinstance(cv, Integral)):
        raise ValueError('only folds over nodes can be made without the rows; give over="nodes" and a number for cv')
    if repeats < 1:
        raise ValueError(f"cv_repeats must be a whole number ≥ 1, got {repeats!r}")
    counts = ~np.isnan(data.y) & (data.weights > 0)
    if not isinstance(cv, Integral):
        if repeats > 1:
            raise ValueError(
                f"cv_repeats={repeats} needs a number for cv; a splitter such as RepeatedKFold repeats itself"
            )
        assert order is not None
        return _given(data, cv, order, counts), "given"
    if over in OF_SPACE_TIME:
        rng = check_random_state(random_state)
        return space_time_folds(data, classes, int(cv), over, rng, repeats, n_places), over
    items = len(M) if over == "nodes" else int(counts.sum())
    if not 2 <= int(cv) <= items:
        raise ValueError(f"cv={cv} folds over {over}: from 2 to as many as have labels; here n_samples={items}")
    rng, place = check_random_state(random_state), np.full(len(data.y), -1)
    folds = []
    for _ in range(repeats):
        if over == "nodes":
            place[counts] = dealt(data.labelled, classes, np.repeat(np.arange(len(M)), m), int(cv), rng)
        else:
            place[counts] = _rows_dealt(data.labelled, classes, int(cv), rng)
        folds += [Fold(counts & (place != k), place == k) for k in range(int(cv))]
    return folds, over


def folds_for(
    model: Any, problem: Problem, cv: Any, over: Over, order: Array | None, random_state: Any, repeats: int = 1
) -> tuple[list[Fold], str]:
    """As `folds_of`, for the problem of a model: a hub is no node that waits for labels."""
    if model.shared:
        over = what_to_hold_out(over, problem.data.labelled.m, problem.data.n_nodes - 1)
    if over in ("times", "blocks") and goes_round(problem.graph):
        raise ValueError(
            f'over="{over}": times go round, so that none comes next; hold out "rows", "nodes" or "places"'
        )
    known = places_of(problem.graph), problem.loss.measure.of_classes
    folds, held = folds_of(problem.data, cv, over, order, random_state, repeats, *known)
    for fold in folds:
        refuse_lost(model, problem.loss, problem.data, fold)
    return folds, held


def _classes(data: LocalDatasets, of_classes: bool) -> NDArray[np.int64]:
    """The number of its class for each labelled row where labels are classes, or of two kinds; else 0."""
    kinds, number = np.unique(data.labelled.y, return_inverse=True)
    return number if len(kinds) == 2 or of_classes else np.zeros_like(number)


def _rows_dealt(
    rows: LabelledRows, classes: NDArray[np.int64], cv: int, rng: np.random.RandomState
) -> NDArray[np.int64]:
    """The fold of each labelled row. Rows are dealt in turn: class after class, or else node after node.

    Not both: if every fold had the same part of each class of each node, the rest would tell what was held out of it,
    and cross-validation would choose too small a λ (docs/decisions/0012-folds-for-lam.md).
    """
    chance, rank = rng.permutation(len(rows.y)), rng.permutation(len(rows.M))
    order = np.lexsort((chance, classes if classes.any() else np.repeat(rank, rows.m)))
    place = np.empty(len(rows.y), dtype=np.int64)
    place[order] = np.arange(len(rows.y)) % cv
    return place


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


def refuse_lost(model: Any, loss: Loss, data: LocalDatasets, fold: Fold) -> None:
    """Refuse a fold that leaves no row of some class to learn from."""
    if isinstance(loss, Multinomial) and len(lost := np.setdiff1d(data.labelled.y, data.y[fold.train])):
        raise ValueError(
            f"a fold holds out every row of the class {model.classes_.tolist()[int(lost[0])]!r}, and nothing can be "
            'learnt of it: use fewer folds or over="rows", or give it more rows'
        )


def as_it_was(training: Problem, fold: Fold) -> Problem:
    """The same without the nodes that a fold does not know yet, which are then predicted by the last that it knows."""
    return training if fold.known is None else until(training, fold.known)


def reachable(training: Problem, fold: Fold) -> NDArray[np.bool_]:
    """The rows held out, but for those of nodes that no label reaches at any λ."""
    rows = fold.test & ~np.isin(training.data.nodes, training.bound.at(1.0).undetermined)
    refuse_unreached(bool(rows.any()))
    return rows


def refuse_unreached(some: bool) -> None:
    """Refuse a fold of which no row held out is reached."""
    if not some:
        raise ValueError("a fold holds out labels that no other label is connected to; use fewer folds")
