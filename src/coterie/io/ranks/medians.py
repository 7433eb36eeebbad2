"""Medians of numbers of which every rank of an MPI job has some, exactly, and without sending them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.crew import Crew
from coterie.problem.arrays import Array

SIGN = np.int64(-(1 << 63))


def weighted_median(crew: Crew, values: Array, weights: Array) -> float:
    """The least value with which, and below which, at least half of the weight lies; 0 where there is none."""
    half = 0.5 * crew.sum(float(weights.sum()))
    return _least(crew, values, weights, half) if half > 0 else 0.0


def median(crew: Crew, values: Array) -> float:
    """As NumPy has it: of an even number, the mean of the two in the middle."""
    N, ones = round(crew.sum(len(values))), np.ones(len(values))
    low, high = (_least(crew, values, ones, k + 1.0) for k in ((N - 1) // 2, N // 2))
    return (low + high) / 2


def _least(crew: Crew, values: Array, weights: Array, enough: float) -> float:
    """The least value up to which there is enough weight. Floats in their order are whole numbers in theirs: halve."""
    order = np.argsort(values)
    known, share = _numbered(values[order]), np.concatenate([[0.0], np.cumsum(weights[order])])
    low, high = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
    while low < high:
        middle = (low + high) // 2
        below = float(share[np.searchsorted(known, np.int64(middle), side="right")])
        low, high = (low, middle) if crew.sum(below) >= enough else (middle + 1, high)
    return float(_floats(np.array([low], dtype=np.int64))[0])


def _numbered(x: Array) -> NDArray[np.int64]:
    """Whole numbers in the order of the floats that they stand for."""
    bits = (x + 0.0).view(np.int64)  # there is one zero
    return np.where(bits < 0, SIGN - bits, bits)


def _floats(numbers: NDArray[np.int64]) -> Array:
    """What they stand for."""
    return np.where(numbers < 0, SIGN - numbers, numbers).view(np.float64)
