"""One thread for BLAS while many small matrices are worked on.

The threads of a BLAS wait for each other by spinning. On matrices of a few hundred rows they gain nothing, and beside
other busy processes each call waits for threads that have no processor: 12 decompositions of 120 × 100 took 5 s
instead of 0.02 s.
"""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

THREADS_PAY = 1_000_000  # numbers in a matrix from which on two threads decompose it faster than one (measured)


class OneThread(ContextDecorator):
    """Holds BLAS to one thread in a block or a decorated function. Blocks may be nested, and overlap in threads.

    The number of threads belongs to the process: the first to come in sets it, the last to go out sets it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _libraries().limit(limits=1)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_thread = OneThread()


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS of NumPy and SciPy. Looking for them takes milliseconds, limiting them microseconds."""
    import scipy.linalg  # noqa: F401  SciPy's own BLAS is there only from now on
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
