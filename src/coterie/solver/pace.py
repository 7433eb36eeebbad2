"""NumPy or compiled? How long a solve will take in NumPy, and when compiling pays.

Compiled kernels are specialised to the number of features, the penalty and the kind of loss: what they take to compile
(or, where that has been done before, to load) is paid once for each of these *sorts* of problems and process. So a
small problem of a new sort is solved in NumPy; and once NumPy has worked on a sort for about as long as compiling
takes, there is more to come, and it is compiled (decision 22).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from coterie.kernels import BLOCK, is_wide
from coterie.kernels.choice import are_kept
from coterie.problem import BoundProblem

SHORT = 1.0  # seconds in NumPy up to which a solve is short
LOADING, COMPILING = 0.5, 10.0  # seconds in NumPy that are worth kernels from the disk, and new ones
ITERATIONS = 400  # of a solve
OVERHEAD, EACH = 6e-5, 1.5e-8  # seconds for an iteration in NumPy, and for each number that it works on
CERTIFIED = 0.02  # seconds for the certificates of a solve, however small it is

_spent: dict[Hashable, float] = {}
_compiled: set[Hashable] = set()
_solves: ContextVar[int] = ContextVar("solves to come", default=1)


def sort_of(problem: BoundProblem) -> Hashable:
    """What compiled kernels are specialised to: columns (of a last block, where there are many), penalty and loss."""
    n = problem.n_features
    columns = (n - 1) % BLOCK + 1 if is_wide(n) else n
    return is_wide(n), columns, problem.penalty.kernel, type(problem.f)


def seconds_in_numpy(problem: BoundProblem, n_iter: int = ITERATIONS) -> float:
    """About how long so many iterations, and their certificates, take in NumPy."""
    rows = 0 if problem.f.design is None else len(problem.f.design.X)
    numbers = (problem.graph.n_edges + problem.graph.n_nodes + rows) * problem.n_features
    return CERTIFIED + n_iter * (OVERHEAD + EACH * numbers)


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
    """Keeps the time that solves of one sort take in NumPy.

    It is estimated, not measured: what is solved how must not depend on how busy the machine is.
    """

    def __init__(self, problem: BoundProblem) -> None:
        self.problem, self.sort = problem, sort_of(problem)
        self.can_compile = problem.penalty.kernel is not None

    def compiles(self) -> bool:
        """Whether to begin with compiled kernels."""
        whole = _solves.get() * seconds_in_numpy(self.problem)
        pays = max(_spent.get(self.sort, 0.0), whole) > patience()
        return self.can_compile and (pays or self.sort in _compiled or is_long(self.problem))

    def is_impatient(self, n_iter: int) -> bool:
        """Whether, after these iterations, NumPy has worked on this sort for so long that compiling pays."""
        spent = _spent.get(self.sort, 0.0) + seconds_in_numpy(self.problem, n_iter)
        return self.can_compile and spent > patience()

    def ended(self, n_iter: int, *, compiled: bool) -> None:
        """Note what a solve was done with, and how long it took."""
        if compiled:
            _compiled.add(self.sort)
        else:
            _spent[self.sort] = _spent.get(self.sort, 0.0) + seconds_in_numpy(self.problem, n_iter)


@cache
def patience() -> float:
    """How many seconds in NumPy are worth compiled kernels: few where some have been kept on disk."""
    return LOADING if are_kept() else COMPILING
