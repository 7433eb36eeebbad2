"""Sums and medians over rows of which every rank of an MPI job holds those of its own nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.engines.mpi.crew import Crew
from coterie.estimators.scaling import Holders
from coterie.io.ranks.medians import weighted_median
from coterie.problem.arrays import Array


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
        return weighted_median(self.ranks, values, weights)
