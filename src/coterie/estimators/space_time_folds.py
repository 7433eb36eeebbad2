"""Folds for places at times: each is predicted from what would be known there and then, and from nothing else.

- "places": all times of some places, from the other places at all times. How good is it for a new place?
- "times": the times that come next, from all places at the times before. How good is it for the future?
- "blocks": some places at the times that come next, from the other places at the times before. How good is it for a new
  place in the future?
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import TimeSeriesSplit

from coterie.estimators.fold import Fold, Held, dealt
from coterie.problem import LocalDatasets

Mask = NDArray[np.bool_]


def space_time_folds(
    data: LocalDatasets,
    classes: NDArray[np.int64],
    cv: int,
    over: Held,
    rng: np.random.RandomState,
    repeats: int,
    n_places: int | None,
) -> list[Fold]:
    """Return the folds; those of places are drawn `repeats` times."""
    if n_places is None:
        raise ValueError(f'over="{over}" is for nodes that are places at times; give graph=(space, time) to the model')
    counts, place, time = ~np.isnan(data.y) & (data.weights > 0), data.nodes % n_places, data.nodes // n_places
    if over == "times":
        if repeats > 1:
            raise ValueError(f"cv_repeats={repeats}: folds over times are not drawn, and are the same each time")
        return [
            Fold(counts & (time <= last), counts & tested, (last + 1) * n_places)
            for last, tested in _stretches(time, counts, cv)
        ]
    _check(len(np.unique(place[counts])), cv, "places")
    stretches = _stretches(time, counts, cv) if over == "blocks" else []
    folds = []
    for _ in range(repeats):
        of = np.full(len(place), -1)
        of[counts] = dealt(data.labelled, classes, np.unique(place[counts], return_inverse=True)[1], cv, rng)
        if over == "places":
            folds += [Fold(counts & (of != k), of == k) for k in range(cv)]
        for k, (last, tested) in enumerate(stretches):
            folds.append(Fold(counts & (of != k) & (time <= last), (of == k) & tested, (last + 1) * n_places))
    empty = next((k for k, fold in enumerate(folds) if not (fold.train.any() and fold.test.any())), None)
    if empty is not None:
        raise ValueError(
            f"fold {empty + 1} over {over} has no labels to learn from or none to test on; use fewer folds"
        )
    return folds


def _stretches(time: NDArray[np.int64], counts: Mask, cv: int) -> list[tuple[int, Mask]]:
    """For each fold, the last time that is known, and the rows of the times that come next."""
    times = np.unique(time[counts])
    _check(len(times) - 1, cv, "times")
    splits = TimeSeriesSplit(cv).split(times)
    return [(int(times[train[-1]]), counts & np.isin(time, times[test])) for train, test in splits]


def _check(there: int, cv: int, what: str) -> None:
    if there < 2:
        least = 3 if what == "times" else 2
        raise ValueError(f"folds over {what} need labels at {least} {what} or more")
    if not 2 <= cv <= there:
        raise ValueError(f"cv={cv} folds over {what}: between 2 and {there} can be made of these labels")
