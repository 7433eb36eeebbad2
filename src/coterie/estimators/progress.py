"""What a fit tells while it works."""

from __future__ import annotations

import math
from collections.abc import Callable

from coterie.solver import Record

Tell = Callable[[str, float], None]
"""Called with a line of text and the part of the work that is done, 0 to 1."""

Verbose = int | Tell
"""0: silent; above: lines are printed; or a function that gets them."""


def listener(verbose: Verbose) -> Tell | None:
    """Return whom to tell; None: nobody."""
    if callable(verbose):
        return verbose
    return _print if verbose else None


def follow(tell: Tell, tol: float) -> Callable[[Record], None]:
    """Return a callback of `solve`. The gap falls by a factor at a time, so its logarithm measures the work done."""
    first: list[float] = []

    def told(record: Record) -> None:
        line = f"iteration {record.n_iter:6d}  objective {record.objective:.6e}  gap {record.gap:.1e}"
        done = 0.0
        if math.isfinite(record.gap) and 0 < tol < 1:
            first.append(max(record.gap, tol))
            whole = math.log(first[0] / tol)
            done = 1 - math.log(max(record.gap, tol) / tol) / whole if whole > 0 else 1.0
        tell(line, min(max(done, 0.0), 1.0))

    return told


def _print(line: str, done: float) -> None:
    print(line)
