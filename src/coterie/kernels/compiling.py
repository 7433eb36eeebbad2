"""How kernels are compiled: without the GIL, kept on disk, with vector instructions. Importing this imports Numba."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from multiprocessing import parent_process
from typing import Any

import numba
from numba.core import event

from coterie.kernels import compilation
from coterie.kernels.kept import keep_by_name

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "nnan", "ninf"}}


def jit(function: Any) -> Any:
    """Compile without the GIL, with results cached on disk and products and sums contracted."""
    return cached(function, **OPTIONS)


def fastmath(function: Any) -> Any:
    """The same for plain sums, whose terms may be added in any order: several at a time."""
    return cached(function, **{**OPTIONS, "fastmath": True})


def cached(function: Any, **options: Any) -> Any:
    """Compile, with results cached on disk; where no folder can be written to, without, and say so once.

    Numba looks for a folder when a function is decorated (NUMBA_CACHE_DIR, `__pycache__` beside the file, the user's
    cache folder), and raises RuntimeError when it finds none: read-only installations, containers without a home.
    """
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        _announcer.say_uncached()
        return numba.njit(**options)(function)
    keep_by_name(dispatcher)
    return dispatcher


def inline_ir(function: Any) -> Any:
    """Make a function part of every kernel that calls it. Not for functions of arrays: those would be counted."""
    return numba.njit(inline="always", **OPTIONS)(function)


def inline_llvm(function: Any) -> Any:
    """Compile a function into every kernel that calls it."""
    return numba.njit(forceinline=True, **OPTIONS)(function)


class _Announcer(event.Listener):
    """Says once why the first use takes longer: in a line on standard error, or as a warning where nothing can be kept.

    It also sets what our kernels are compiled with: unrolled loops become vector instructions only by a pass that Numba
    leaves off (1.3 to 2.6 times slower).
    """

    def __init__(self) -> None:
        self.silent = parent_process() is not None  # the first process says it for all that it starts
        self.cached = True
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
        self.settings.append(numba.config.SLP_VECTORIZE)  # type: ignore[attr-defined]
        ours = (event.data["dispatcher"].py_func.__module__ or "").startswith("coterie.")
        if ours:
            numba.config.SLP_VECTORIZE = 1  # type: ignore[attr-defined]
        if ours and not self.silent and not compilation.silent:
            self.silent = True
            print("coterie: compiling kernels on first use; later processes find them ready", file=sys.stderr)

    def on_end(self, event: event.Event) -> None:
        numba.config.SLP_VECTORIZE = self.settings.pop()  # type: ignore[attr-defined]


class _Clock(event.Listener):
    """Keeps the time that kernels take to be compiled, and to be found and put on disk: no time limit counts it."""

    def __init__(self) -> None:
        self.at_work, self.began, self.lock = 0, 0.0, threading.Lock()

    def on_start(self, event: event.Event) -> None:
        with self.lock:
            if not self.at_work:
                self.began = time.perf_counter()
            self.at_work += 1

    def on_end(self, event: event.Event) -> None:
        with self.lock:
            self.at_work -= 1
            if not self.at_work:
                compilation.seconds += time.perf_counter() - self.began


_announcer = _Announcer()
event.register("numba:compile", _announcer)
event.register("numba:compiler_lock", _Clock())
