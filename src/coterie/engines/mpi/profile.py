"""Where the time of a job goes, and how much ranks tell each other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from coterie.engines.mpi.crew import Crew

PHASES = (
    "reading",
    "assigning nodes",
    "solving",
    "taking a part",
    "iterating",
    "writing",
    "waiting while iterating",
    "waiting otherwise",
)


class Profile:
    """Seconds that this rank has spent in each phase, and what it has sent to its neighbours."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.iterations, self.messages, self.bytes = 0, 0, 0
        self.iterating = False

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began, self.iterating = time.perf_counter(), name == "iterating"
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - began
            self.iterating = False

    def waited(self, seconds: float) -> None:
        self.seconds["waiting while iterating" if self.iterating else "waiting otherwise"] += seconds

    def lines(self, crew: Crew) -> list[str]:
        """What all ranks together have to say, line by line; every rank must ask."""
        here = [*self.seconds.values(), self.iterations, self.messages, self.bytes]
        least, most = (part(crew.every(np.array(here, dtype=np.float64)), axis=0) for part in (np.min, np.max))
        text = [f"{crew.size} ranks, {int(most[len(PHASES)]):,} iterations; least and most of a rank:"]
        spent = [(name, a, b) for name, a, b in zip(PHASES, least, most, strict=False) if b > 0]
        text += [f"  {name:<25} {a:8.2f} s {b:8.2f} s" for name, a, b in spent]
        a, b = least[-2:], most[-2:]
        text.append(f"  {'messages to neighbours':<25} {int(a[0]):10,} {int(b[0]):10,}")
        text.append(f"  {'bytes to neighbours':<25} {int(a[1]):10,} {int(b[1]):10,}")
        return text
