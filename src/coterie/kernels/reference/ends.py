"""Sums of what edges bring to their ends, plain or in twice the precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.reference.sums import grouped, sum_rows_exactly

Array = NDArray[Any]
Integers = NDArray[Any]


def by_group(group: Integers, values: Array, G: int) -> Array:
    """Sums (G, n) of the rows of values (N, n)."""
    n = values.shape[1]
    if n == 1:
        return np.bincount(group, weights=values[:, 0], minlength=G)[:, None]
    at = group[:, None] * n + np.arange(n)
    return np.bincount(at.ravel(), weights=values.ravel(), minlength=G * n).reshape(G, n)


def at_ends(ends: Integers, u: Array, V: int) -> Array:
    """Dᵀu: what flows out of each node."""
    i, j = ends[:, 0].astype(np.int64), ends[:, 1].astype(np.int64)
    return by_group(i, u, V) - by_group(j, u, V)


def exactly_by_group(group: Integers, values: Array, G: int) -> tuple[Array, Array]:
    """The same in twice the precision, hi + lo, with the error that `sums` states."""
    order, starts = grouped(group, G)
    hi = values[order]
    return sum_rows_exactly(starts, hi, np.zeros_like(hi))


def total(terms: Array) -> float:
    """The sum of all terms, rounded once."""
    try:
        return math.fsum(terms.ravel())
    except (OverflowError, ValueError):  # it is infinite, or no number
        with np.errstate(all="ignore"):
            return float(terms.sum())
