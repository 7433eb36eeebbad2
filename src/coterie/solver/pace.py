"""NumPy or compiled? How long a solve will take in NumPy, and when compiling pays.

Compiled kernels are specialised to the number of features, the penalty and the kind of loss: what they take to compile
(or, where that has been done before, to load) is paid once for each of these *sorts* of problems and process. So a
small problem of a new sort is solved in NumPy; and once NumPy has worked on a sort for about as long as compiling
takes, there is more to come, and it is compiled (decision 22).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from coterie.kernels import BLOCK, Stopwatch, is_wide
from coterie.kernels.choice import are_kept
from coterie.problem import BoundProblem

SHORT = 1.0  # seconds in NumPy up to which a solve is short
LOADING, COMPILING = 0.5, 10.0  # CPU seconds in NumPy that are worth kernels from the disk, and new ones
ITERATIONS = 400  # of a solve
OVERHEAD, EACH = 6e-5, 1.5e-8  # seconds for an iteration in NumPy, and for each number that it works on

_spent: dict[Hashable, Stopwatch] = {}
_compiled: set[Hashable] = set()
_solves: ContextVar[int] = ContextVar("solves to come", default=1)


def sort_of(problem: BoundProblem) -> Hashable:
    """What compiled kernels are specialised to: columns (of a last block, where there are many), penalty and loss."""
    n = problem.n_features
    columns = (n - 1) % BLOCK + 1 if is_wide(n) else n
    return is_wide(n), columns, problem.penalty.kernel, type(problem.f)


def seconds_in_numpy(problem: BoundProblem) -> float:
    """About how long a solve takes in NumPy."""
    rows = 0 if problem.f.design is None else len(problem.f.design.X)
    numbers = (problem.graph.n_edges + problem.graph.n_nodes + rows) * problem.n_features
    return ITERATIONS * (OVERHEAD + EACH * numbers)


def is_long(problem: BoundProblem) -> bool:
    """Whether a solve takes long in NumPy."""
    return seconds_in_numpy(problem) > SHORT


@contextmanager
def expecting(solves: int) -> Iterator[None]:
    """Inside, solves are some of so many of one sort."""
    token = _solves.set(solves * _solves.get())
    try:
        yield
    finally:
        _solves.reset(token)


class Pace:
    """Keeps the time that solves of one sort take in NumPy, without what other processes take."""

    def __init__(self, problem: BoundProblem) -> None:
        self.sort = sort_of(problem)
        self.spent = _spent.setdefault(self.sort, Stopwatch())
        self.seconds, self.long, self.began = seconds_in_numpy(problem), is_long(problem), time.thread_time()
        self.can_compile = problem.penalty.kernel is not None

    def compiles(self) -> bool:
        """Whether to begin with compiled kernels."""
        if self.sort in _compiled or self.long:
            return self.can_compile
        return self.can_compile and max(self.spent.seconds, _solves.get() * self.seconds) > patience()

    def impatient(self) -> bool:
        """Whether NumPy has worked on problems of this sort for so long that compiling pays."""
        return self.can_compile and self.spent.seconds + time.thread_time() - self.began > patience()

    def ended(self, *, compiled: bool) -> None:
        """Note what a solve was done with, and how long it took."""
        if compiled:
            _compiled.add(self.sort)
        else:
            self.spent.seconds += time.thread_time() - self.began


@cache
def patience() -> float:
    """How many seconds in NumPy are worth compiled kernels: few where some have been kept on disk."""
    return LOADING if are_kept() else COMPILING
