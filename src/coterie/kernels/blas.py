"""One thread for BLAS while many small matrices are worked on.

The threads of a BLAS wait for each other by spinning. On matrices of a few hundred rows they gain nothing, and beside
other busy processes each call waits for threads that have no processor: 12 decompositions of 120 × 100 took 5 s
instead of 0.02 s.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

THREADS_PAY = 1_000_000  # numbers in a matrix from which on two threads decompose it faster than one (measured)


_held = threading.Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread, also as a decorator. Nothing is done where an outer block, or another thread, holds it.

    The number of threads belongs to the process: it is set and set back by the same thread, so that it is right again
    in the end, whatever overlaps.
    """
    if not _held.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1):
            yield
    finally:
        _held.release()


def threads_for(numbers: int) -> AbstractContextManager[None]:
    """As many threads as pay for matrices of so many numbers: one, unless they are large."""
    return nullcontext() if numbers > THREADS_PAY else one_thread()


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS of NumPy and SciPy. Looking for them takes milliseconds, limiting them microseconds."""
    import scipy.linalg  # noqa: F401  SciPy's own BLAS is there only from now on
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
