"""Ctrl-C and time limits, noticed between compiled calls and never inside one.

A KeyboardInterrupt that comes up while a compiled function returns is lost in a SystemError, and one that has to wait
for such a function may wait for long. So inside an `interruptible` block Ctrl-C only leaves a mark. All that may take
long works in pieces of a tenth of a second or so, and between them calls `check`, which raises, or `time_is_up`.

Processes that do the same at the same time (`in_lockstep`) must also end at the same time, wherever the clock of each
stands. They all see the clock that they agreed on last, and it is only when they `agree` that anything is raised.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from math import inf
from typing import Any, TypeVar

from coterie.kernels import seconds_compiling

WORK = 50_000_000  # products before a kernel returns: less than a tenth of a second
GLANCE = 0.02  # seconds between two checks while others work
FEW = 20_000  # numbers that a library works on in no time
GRACE = 0.2  # seconds that what is nearly done may take beyond its time

Result = TypeVar("Result")


class TimeUp(Exception):  # noqa: N818  it is no error
    """The time that was allowed is over."""


class _Marks(threading.local):
    """When the time of this thread is up. (Signals reach the main thread only, but all can have a limit.)"""

    deadline = inf
    compiled = 0.0  # seconds of compiling when that was set
    share: Share | None = None  # of processes in lockstep …
    left, worked = inf, 0.0  # … and what their clock says


Share = Callable[[float, float, bool], tuple[float, float, bool]]
"""Makes of the seconds left, the seconds worked and Ctrl-C of each process those of all."""


_marks = _Marks()
_pressed = False  # Ctrl-C, and nobody has noticed yet


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, `check` raises KeyboardInterrupt after Ctrl-C, and TimeUp when the time that `allow` sets is over.

    Also a decorator. A second Ctrl-C that comes before the first has been noticed raises at once, wherever that is.
    A program's own handler of SIGINT is left alone.
    """
    global _pressed
    before, ours = (_marks.deadline, _marks.compiled, _marks.left), _installed()
    try:
        yield
    finally:
        _marks.deadline, _marks.compiled, _marks.left = before
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            late, _pressed = _pressed, False
            if late:  # too late for a check: it counts from here on
                raise KeyboardInterrupt


@contextmanager
def in_lockstep(share: Share) -> Iterator[None]:
    """Inside, this process sees the clock that it shares with others."""
    _marks.left, _marks.worked, _ = share(*_here(), False)
    _marks.share = share
    try:
        yield
    finally:
        _marks.share = None


def agree(grace: float = 0.0) -> None:
    """Let processes in lockstep set their clock, and raise at all of them or at none; alone, as `check` does.

    With grace the time may be over for so many seconds.
    """
    global _pressed
    if _marks.share is None:
        return check() if grace == 0 else check_with_grace()
    _marks.left, _marks.worked, pressed = _marks.share(*_here(), _pressed)
    if pressed:
        _pressed = False
        raise KeyboardInterrupt
    if _marks.left <= -grace:
        raise TimeUp


def _here() -> tuple[float, float]:
    """Seconds left and seconds worked, by the clock of this process."""
    worked = time.perf_counter() - seconds_compiling()
    return _marks.deadline - _marks.compiled - worked, worked


def allow(seconds: float) -> None:
    """Set how much time there is from now on; inf: any. Compiling, on first use, does not count."""
    _marks.deadline, _marks.compiled = time.perf_counter() + seconds, seconds_compiling()
    _marks.left = seconds


def seconds_left() -> float:
    """How much of that time is left; negative when it is over."""
    return _here()[0] if _marks.share is None else _marks.left


def seconds_worked() -> float:
    """A clock that stands still while kernels are compiled."""
    return _here()[1] if _marks.share is None else _marks.worked


def is_pressed() -> bool:
    """Whether Ctrl-C has been pressed and nobody has noticed yet: for other threads, which do not raise it."""
    return _pressed


def check() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed, TimeUp if the time is over; otherwise do nothing, quickly."""
    if _marks.share is None and time_is_up():
        raise TimeUp


def check_with_grace() -> None:
    """The same for what is of no use unless it is completed: it may take a little longer."""
    if _marks.share is None and time_is_up() and seconds_left() <= -GRACE:
        raise TimeUp


def time_is_up() -> bool:
    """Whether the time is over: what can end early, and be of use all the same, ends then. Raises after Ctrl-C."""
    global _pressed
    if _marks.share is None and _pressed and threading.current_thread() is threading.main_thread():
        _pressed = False
        raise KeyboardInterrupt
    return seconds_left() <= 0


def pieces(count: int, each: int) -> Iterator[tuple[int, int]]:
    """Ranges (first, last) of `count` things that take `each` products, with a check between two; few are one range."""
    many = max(WORK // max(each, 1), 1)
    for first in range(0, count, many):
        if first:
            check()
        yield first, min(first + many, count)


def aside(work: Callable[[], Result], numbers: int) -> Result:
    """Return work(), a call of a library that works on so many numbers, without pieces, and lets other threads run.

    When the time is up, or after Ctrl-C, it is left to itself, and what it returns is nobody's.
    """
    if numbers <= FEW:
        return work()
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # it is raised where the result is waited for
            future.set_exception(error)

    threading.Thread(target=run).start()  # no daemon: the interpreter must not end under the library's feet
    while True:
        try:
            return future.result(GLANCE)
        except NotYet:
            check()


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
