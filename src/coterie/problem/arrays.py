"""The one array type (NumPy, float64 unless a docstring says otherwise, shapes in the docstrings) and its door."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def as_floats(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as float64, or say which argument does not hold numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers only ({error})") from None


LARGEST = 1e150
"""Above that, squares and sums of squares leave the range of double precision."""


def too_large(values: Array) -> NDArray[np.bool_]:
    """Where finite numbers are too large to be squared and added up."""
    return np.asarray((np.abs(values) > LARGEST) & np.isfinite(values))


def as_whole(value: Any, name: str) -> int:
    """Return value as an int, or say which argument is not a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None


def rows_of(starts: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of some nodes, node by node; those of node i are starts[i], …, starts[i + 1] − 1."""
    m = np.diff(starts)[which]
    return np.arange(int(m.sum())) + np.repeat(starts[which] - (np.cumsum(m) - m), m)
