"""Threads that share the work of a pass: one contiguous range each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any

import numpy as np

WORTH_A_THREAD = 200_000  # edge coordinates that a thread should have to itself


def cores() -> int:
    """How many threads this process may use: its cores, or fewer where NUMBA_NUM_THREADS or OMP_NUM_THREADS says so."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = (os.environ.get(name, "") for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"))
    return max(1, min([here, *(int(number) for number in asked if number.isdecimal())]))


class Team:
    """As many threads as wanted, or (None) as pay for E edges with n coordinates; but not more than `most`."""

    def __init__(self, threads: int | None, E: int, n: int, most: int = sys.maxsize) -> None:
        wanted = threads or min(cores(), 1 + E * n // WORTH_A_THREAD)
        self.T = max(1, min(wanted, E, most))
        self.helpers = ThreadPoolExecutor(self.T - 1) if self.T > 1 else None

    def cuts(self, length: int) -> Any:
        """Where a sequence is cut into one range per thread."""
        return np.linspace(0, length, self.T + 1).astype(np.int64)

    def each(self, cuts: Any, work: Callable[..., Any]) -> list[Any]:
        """Do work(t, first, last) on every range, one a thread; the first is the caller's own."""
        if self.helpers is None:
            return [work(0, cuts[0], cuts[1])]
        jobs = [self.helpers.submit(copy_context().run, work, t, cuts[t], cuts[t + 1]) for t in range(1, self.T)]
        try:
            return [work(0, cuts[0], cuts[1]), *(job.result() for job in jobs)]
        finally:
            wait(jobs)  # also when interrupted: nobody may write any more when the results are read
