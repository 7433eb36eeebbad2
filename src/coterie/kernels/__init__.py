"""Loops over arrays: plain functions, no classes, no allocation per node or edge.

Every module here is compiled on first use; `reference` holds the same functions in NumPy, and `choice` says which of
the two a solve uses. Nothing in this file, nor in `choice` and `reference`, needs the compiler.

Compiled kernels take a `vector_buffer`, a tuple of n zeros. From its length the compiler knows n, unrolls the loops
over coordinates and keeps them in vector registers, 1.4 to 2.8 times faster than a loop of unknown length. Above n = 10
passes over edges take blocks of coordinates instead (`blocks`), passes over nodes a scratch array (`vector_buffer`).
Where that does not pay (`forms`), passes over nodes take a scratch array, and those over edges are `any_n`'s.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from coterie.kernels.forms import knows_n

LINE = 64  # bytes that memory hands over at a time
BLOCK = 8  # coordinates at a time, where there are more
UNROLL_UP_TO = 10  # above that the compiler gives up on keeping vectors in registers, and is many times slower
L1, L2, SQUARED = 0, 1, 2  # which penalty
TIED = -1.0  # in the place of a strength of ∞, which compiled code does not know
ENDLESS = 1e200  # in the place of a bound of ∞, for the same reason; steps as short as 1e-100 are a part of it
RELAXED, ANCHORED, KEEPING = 0, 1, 2  # u ← aû + bu, or + gu₀, or with u₀ ← û


def vector_buffer(n: int) -> Any:
    """Return room for one vector of length n: registers, or scratch memory."""
    return (0.0,) * n if knows_n() and not is_wide(n) else np.empty(n)


def is_wide(n: int) -> bool:
    """Whether vectors of n numbers are too long for registers, and handled in blocks."""
    return n > UNROLL_UP_TO


def blocks(n: int) -> Any:
    """Return n zeros; where that is wide, the zeros of a block and of what is left over, and the number of blocks.

    The compiler knows the length of a tuple, and unrolls loops over it. Kernels for any n do without.
    """
    if not knows_n():
        return ()
    if not is_wide(n):
        return (0.0,) * n
    tail = (n - 1) % BLOCK + 1
    return (0.0,) * BLOCK, (0.0,) * tail, (n - tail) // BLOCK


def static_int(number: int) -> tuple[int, ...]:
    """Return something of this length, which the compiler knows; it drops what that rules out."""
    return (0,) * number


def finite(bounds: Any) -> Any:
    """Return bounds as compiled code takes them."""
    return np.clip(bounds, -ENDLESS, ENDLESS)


def aligned(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return zeros that begin where a cache line does, so that short rows do not lie across two."""
    size = np.dtype(dtype).itemsize * math.prod(shape)
    room = np.zeros(size + LINE, dtype=np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + size].view(dtype).reshape(shape)


class Stopwatch:
    """Seconds that something has taken, altogether."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.silent = False  # nobody wants to be told

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the seconds that a block takes; what is added inside is not added twice."""
        began, before = time.perf_counter(), self.seconds
        yield
        self.seconds = before + time.perf_counter() - began


compilation = Stopwatch()  # `compiling` keeps it


def seconds_compiling() -> float:
    """How long this process has been compiling, altogether."""
    return compilation.seconds
