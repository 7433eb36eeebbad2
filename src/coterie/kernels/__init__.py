"""Compiled loops. Plain functions on arrays: no classes, no allocation per node or edge.

Kernels take a *register*, a tuple of n zeros. From its length the compiler knows n, unrolls the loops over
coordinates and keeps them in vector registers, 1.4 to 2.8 times faster than a loop of unknown length. Above n = 10
passes over edges take blocks of coordinates instead (`cut`), passes over nodes a scratch array (`register`).
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from typing import Any

import numba
import numpy as np
from numba.core import event

LINE = 64  # bytes that memory hands over at a time
BLOCK = 8  # coordinates at a time, where there are more
UNROLL_UP_TO = 10  # above that the compiler gives up on keeping vectors in registers, and is many times slower


OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "nnan", "ninf"}}


def jit(function: Any) -> Any:
    """Compile without the GIL, with results cached on disk and products and sums contracted."""
    return cached(function, **OPTIONS)


def reordered(function: Any) -> Any:
    """The same for plain sums, whose terms may be added in any order: several at a time."""
    return cached(function, **{**OPTIONS, "fastmath": True})


def cached(function: Any, **options: Any) -> Any:
    """Compile, with results cached on disk; where no folder can be written to, without, and say so once.

    Numba looks for a folder when a function is decorated (NUMBA_CACHE_DIR, `__pycache__` beside the file, the user's
    cache folder), and raises RuntimeError when it finds none: read-only installations, containers without a home.
    """
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        _announcer.say_uncached()
        return numba.njit(**options)(function)


def spliced(function: Any) -> Any:
    """Make a function part of every kernel that calls it. Not for functions of arrays: those would be counted."""
    return numba.njit(inline="always", **OPTIONS)(function)


def inlined(function: Any) -> Any:
    """Compile a function into every kernel that calls it."""
    return numba.njit(forceinline=True, **OPTIONS)(function)


def register(n: int) -> Any:
    """Return room for one vector of length n."""
    return np.empty(n) if is_wide(n) else (0.0,) * n


def is_wide(n: int) -> bool:
    """Whether vectors of n numbers are too long for registers, and handled in blocks."""
    return n > UNROLL_UP_TO


def cut(n: int) -> Any:
    """Return n zeros; where that is wide, the zeros of a block and of what is left over, and the number of blocks.

    The compiler knows the length of a tuple, and unrolls loops over it.
    """
    if not is_wide(n):
        return (0.0,) * n
    tail = (n - 1) % BLOCK + 1
    return (0.0,) * BLOCK, (0.0,) * tail, (n - tail) // BLOCK


def known(number: int) -> tuple[int, ...]:
    """Return something of this length, which the compiler knows; it drops what that rules out."""
    return (0,) * number


def aligned(shape: tuple[int, ...]) -> Any:
    """Return zeros that begin where a cache line does, so that short rows do not lie across two."""
    size = 8 * math.prod(shape)
    room = np.zeros(size + LINE, dtype=np.uint8)
    begin = -room.ctypes.data % LINE
    return room[begin : begin + size].view(np.float64).reshape(shape)


class _Announcer(event.Listener):
    """Says once why the first use takes longer: on a terminal, or as a warning where every process compiles anew.

    It also keeps the time that compiling has taken, which no time limit counts, and sets what our kernels are compiled
    with: unrolled loops become vector instructions only by a pass that Numba leaves off (1.3 to 2.6 times slower).
    """

    def __init__(self) -> None:
        self.silent = not sys.stderr.isatty()
        self.cached = True
        self.seconds, self.began = 0.0, 0.0
        self.settings: list[int] = []  # of others, one for each compilation that is going on

    def say_uncached(self) -> None:
        if self.cached:
            self.cached, self.silent = False, True
            warnings.warn(
                "compiled kernels cannot be kept here, so that every process compiles them anew, which takes some "
                "seconds; set NUMBA_CACHE_DIR to a folder that can be written to",
                stacklevel=2,
            )

    def on_start(self, event: event.Event) -> None:
        if not self.settings:
            self.began = time.perf_counter()
        self.settings.append(numba.config.SLP_VECTORIZE)  # type: ignore[attr-defined]
        ours = (event.data["dispatcher"].py_func.__module__ or "").startswith("coterie.")
        if ours:
            numba.config.SLP_VECTORIZE = 1  # type: ignore[attr-defined]
        if ours and not self.silent:
            self.silent = True
            print("coterie: compiling kernels on first use; later processes find them ready", file=sys.stderr)

    def on_end(self, event: event.Event) -> None:
        numba.config.SLP_VECTORIZE = self.settings.pop()  # type: ignore[attr-defined]
        if not self.settings:
            self.seconds += time.perf_counter() - self.began


_announcer = _Announcer()
event.register("numba:compile", _announcer)


def seconds_compiling() -> float:
    """How long this process has been compiling, altogether."""
    return _announcer.seconds
