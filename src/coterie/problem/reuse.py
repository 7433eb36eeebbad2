"""What does not depend on λ, computed once for all of a path."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from coterie.kernels.interruption import seconds_left

FEW = 16  # results that are kept: a solve asks for up to eight, one with strengths of columns for twice as many

Result = TypeVar("Result")

_kept: ContextVar[deque[tuple[Any, ...]] | None] = ContextVar("results to be used again", default=None)


@contextmanager
def reusing() -> Iterator[None]:
    """Inside, `reused` keeps its latest results."""
    token = _kept.set(deque(maxlen=FEW))
    try:
        yield
    finally:
        _kept.reset(token)


def reused(function: Callable[..., Result], *arguments: Any) -> Result:
    """function(*arguments), or what it has returned before for arguments that are equal, number by number.

    What is found when time is up may be rougher than it could be, and is not kept for others, who have theirs.
    """
    kept = _kept.get()
    if kept is None:
        return function(*arguments)
    for before, result in kept:
        if same(before, (function, *arguments)):
            return result
    result = function(*arguments)
    if seconds_left() > 0:
        kept.append(((function, *arguments), result))
    return result


def same(one: Any, other: Any) -> bool:
    """Whether two values, with all that they hold, are equal."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return bool(one == other)
