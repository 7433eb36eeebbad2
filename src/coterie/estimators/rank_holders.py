"""Sums and medians over rows of which every rank of an MPI job holds those of its own nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.engines.mpi.crew import Crew
from coterie.estimators.scaling import Holders
from coterie.problem.arrays import Array

SIGN = np.int64(-(1 << 63))


class RankHolders(Holders):
    """Every rank holds the rows of its own nodes."""

    def __init__(self, ranks: Crew) -> None:
        self.ranks = ranks

    def added(self, values: Any) -> Any:
        total = self.ranks.added(np.atleast_1d(np.asarray(values, dtype=np.float64)))
        return total if np.ndim(values) else float(total[0])

    def first(self, value: Array, there: bool) -> Array:
        some, values = self.ranks.every(np.array([there])).ravel(), self.ranks.every(value)
        return values[int(some.argmax())]

    def median(self, values: Array, weights: Array) -> float:
        """The least value below which, itself included, half of the weight lies.

        It is found bit by bit: floats in their order are whole numbers in theirs.
        """
        order = np.argsort(values)
        known, share = _numbered(values[order]), np.concatenate([[0.0], np.cumsum(weights[order])])
        half = 0.5 * self.ranks.sum(float(share[-1]))
        if not half:
            return 0.0
        low, high = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
        while low < high:
            middle = (low + high) // 2
            below = float(share[np.searchsorted(known, np.int64(middle), side="right")])
            low, high = (low, middle) if self.ranks.sum(below) >= half else (middle + 1, high)
        return float(_floats(np.array([low], dtype=np.int64))[0])


def _numbered(x: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Whole numbers in the order of the floats that they stand for."""
    bits = (x + 0.0).view(np.int64)  # there is one zero
    return np.where(bits < 0, SIGN - bits, bits)


def _floats(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> Array:
    """What they stand for."""
    return np.where(numbers < 0, SIGN - numbers, numbers).view(np.float64)
