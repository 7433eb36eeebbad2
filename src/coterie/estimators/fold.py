"""What a fold is, and how groups of rows are dealt to folds."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.problem.datasets import LabelledRows

Held = Literal["nodes", "rows", "places", "times", "blocks"]
Over = Literal["auto"] | Held
OF_SPACE_TIME = ("places", "times", "blocks")


class Fold(NamedTuple):
    """Masks of the rows whose labels are learnt from, and of those that are held out.

    known : how many nodes there are when the fold is learnt, those of the times that have come; None: all.
    """

    train: NDArray[np.bool_]
    test: NDArray[np.bool_]
    known: int | None = None


def dealt(
    rows: LabelledRows, classes: NDArray[np.int64], of: NDArray[np.int64], cv: int, rng: np.random.RandomState
) -> NDArray[np.int64]:
    """The fold of each labelled row, the same for all rows of a group, such as a node; `of` numbers the groups.

    Large groups come first, those of about one size (within a factor of 2) in random order. Each goes where it adds
    least to Σ ‖share‖², the share of each class that the folds have: an empty fold as long as there is one.
    """
    n_groups = int(of.max()) + 1
    share = np.zeros((n_groups, max(int(classes.max(initial=0)) + 1, 2)))
    np.add.at(share, (of, classes), rows.weights)
    share /= np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    size = np.round(share.sum(axis=1), 12)  # condensed rows have the weights of their rows to rounding only
    place, load = np.empty(n_groups, dtype=np.int64), np.zeros((cv, share.shape[1]))
    for i in np.lexsort((rng.permutation(len(size)), -np.floor(np.log2(size + 1e-12)))):
        place[i] = np.lexsort((load.sum(axis=1), np.round(load @ share[i], 12)))[0]
        load[place[i]] += share[i]
    return place[of]
