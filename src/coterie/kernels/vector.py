"""A vector of n numbers that lives in registers (a tuple) or in scratch memory (an array)."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numba.extending import overload

from coterie.kernels.compiling import inline_llvm


def put(vector, k, value):
    """Return the vector with its k-th entry replaced."""
    raise NotImplementedError("for compiled code only")


@overload(put, inline="always")
def _put(vector, k, value):
    if isinstance(vector, types.BaseTuple):
        return lambda vector, k, value: tuple_setitem(vector, k, value)  # type: ignore[call-arg]

    def into_array(vector, k, value):
        vector[k] = value
        return vector

    return into_array


def another(vector):
    """Return room for one more vector of this length."""
    raise NotImplementedError("for compiled code only")


@overload(another, inline="always")
def _another(vector):
    if isinstance(vector, types.BaseTuple):
        return lambda vector: vector
    return lambda vector: np.empty_like(vector)


def inverse(x):
    """Return 1 / x in the precision of x."""
    raise NotImplementedError("for compiled code only")


@overload(inverse, inline="always")
def _inverse(x):
    if x == types.float32:
        return lambda x: np.float32(1) / x
    return lambda x: 1 / x


@inline_llvm
def at(start, k):
    """start + k, unsigned: nothing to check for being negative, which would keep loops from becoming vectors."""
    return start + np.uint64(k)
