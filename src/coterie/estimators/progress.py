"""What a fit tells while it works: to the logger "coterie", or to whom `verbose` says."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from coterie.solver import Record

Tell = Callable[[str, float], None]
"""Called with a line of text and the part of the work that is done, 0 to 1."""

Verbose = int | Tell
"""Above 0: lines are printed, unless they are logged; or a function that gets them."""

LOGGER = logging.getLogger("coterie")


def listener(verbose: Verbose) -> Tell | None:
    """Return the function that gets progress; None: progress is not reported."""
    if callable(verbose):
        return verbose
    if LOGGER.hasHandlers() and LOGGER.isEnabledFor(logging.INFO):
        return _log
    return _print if verbose else None


def follow(tell: Tell, tol: float) -> Callable[[Record], None]:
    """Return a callback of `solve`. The gap falls by a factor at a time, so its logarithm measures the work done."""
    first = 0.0

    def told(record: Record) -> None:
        nonlocal first
        line = f"iteration {record.n_iter:6d}  objective {record.objective:.6e}  gap {record.gap:.1e}"
        left = max(record.gap, tol)
        first = first if 0 < first < math.inf else left
        countable = 0 < tol < left < math.inf
        tell(line, max(1 - math.log(left / tol) / math.log(first / tol), 0.0) if countable else float(left <= tol))

    return told


def _log(line: str, done: float) -> None:
    LOGGER.info(line)


def _print(line: str, done: float) -> None:
    print(line)
