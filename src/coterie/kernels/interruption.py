"""Ctrl-C and time limits, noticed between compiled calls and never inside one.

A KeyboardInterrupt that comes up while a compiled function returns is lost in a SystemError, and one that has to wait
for such a function may wait for long. So inside an `interruptible` block Ctrl-C only leaves a mark. All that may take
long works in pieces of a tenth of a second or so, and between them calls `check`, which raises, or `time_is_up`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any


class TimeUp(Exception):  # noqa: N818  it is no error
    """The time that was allowed is over."""


class _Marks(threading.local):
    """When the time of this thread is up. (Signals reach the main thread only, but all can have a limit.)"""

    deadline = inf


_marks = _Marks()
_pressed = False  # Ctrl-C, and nobody has noticed yet


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, `check` raises KeyboardInterrupt after Ctrl-C, and TimeUp when the time that `allow_until` sets is over.

    Also a decorator. A second Ctrl-C that comes before the first has been noticed raises at once, wherever that is.
    A program's own handler of SIGINT is left alone.
    """
    global _pressed
    before, ours = _marks.deadline, _installed()
    try:
        yield
    finally:
        _marks.deadline = before
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            late, _pressed = _pressed, False
            if late:  # too late for a check: it counts from here on
                raise KeyboardInterrupt


def allow_until(deadline: float) -> None:
    """Set when the time is up, on the clock of time.perf_counter; inf: never."""
    _marks.deadline = deadline


def check() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed, TimeUp if the time is over; otherwise do nothing, quickly."""
    if time_is_up():
        raise TimeUp


def time_is_up() -> bool:
    """Whether the time is over: what can end early, and be of use all the same, ends then. Raises after Ctrl-C."""
    global _pressed
    if _pressed and threading.current_thread() is threading.main_thread():
        _pressed = False
        raise KeyboardInterrupt
    return time.perf_counter() >= _marks.deadline


def _installed() -> bool:
    """Put our handler in the place of Python's own; False where that is not there, or not ours to replace."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    signal.signal(signal.SIGINT, _mark)
    return True


def _mark(number: int, frame: Any) -> None:
    global _pressed
    if _pressed:
        _pressed = False
        raise KeyboardInterrupt
    _pressed = True
