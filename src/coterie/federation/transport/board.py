"""What a site has ready for its neighbours: they ask for it, as often as they need to, until nobody can need it.

A message is float64 numbers, array after array in the order of their names: who asks knows their shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition

import numpy as np

from coterie.federation.loop import FederationError
from coterie.problem.arrays import Array

KEPT = {"weights": 2, "up": 2, "down": 2}  # a neighbour is never more than one behind; what is said at the start stays

Entry = tuple[str, int]  # kind and number of a message


class Board:
    """Messages by kind, number and neighbour; other threads may wait for one."""

    def __init__(self) -> None:
        self.entries: dict[Entry, dict[str, bytes]] = {}
        self.changed = Condition()
        self.keep: Callable[[], None] = lambda: None  # writes the board to disk, before totals are told to anyone

    def put(self, kind: str, number: int, messages: Mapping[str, bytes]) -> None:
        """Have messages ready; the first of a kind and number stay, whatever is put later."""
        with self.changed:
            self.entries.setdefault((kind, number), dict(messages))
            numbers = sorted(k for name, k in self.entries if name == kind and k >= 0)
            for old in numbers[: -KEPT[kind]] if kind in KEPT else ():
                del self.entries[kind, old]
            if kind == "down":
                self.keep()
            self.changed.notify_all()

    def published(self, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array] | None:
        """What is ready, the same for all neighbours; None: nothing."""
        for content in self.entries.get((kind, number), {}).values():
            return unpacked("this", kind, content, shapes)
        return None

    def wait(self, kind: str, number: int, who: str, seconds: float) -> bytes | None:
        """The message for a neighbour, as soon as it is there."""
        with self.changed:
            self.changed.wait_for(lambda: (kind, number) in self.entries, seconds)
            return self.entries.get((kind, number), {}).get(who)


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Arrays as bytes."""
    return b"".join(np.ascontiguousarray(arrays[name], dtype="<f8").tobytes() for name in sorted(arrays))


def unpacked(who: str, kind: str, content: bytes, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array]:
    """Arrays of these shapes.

    Raises
    ------
    FederationError
        When that is not what `who` has sent.
    """
    numbers = np.frombuffer(content, dtype="<f8") if len(content) % 8 == 0 else np.full(1, np.nan)
    sizes = [int(np.prod(shapes[name])) for name in sorted(shapes)]
    finite = ~np.isnan(numbers) if kind in ("up", "down") else np.isfinite(numbers)
    if len(numbers) != sum(sizes) or not finite.all():
        raise FederationError(f"site {who!r} has sent {kind} of another length, or numbers that are none")
    parts = np.split(numbers.astype(np.float64), np.cumsum(sizes)[:-1])
    return {name: part.reshape(shapes[name]) for name, part in zip(sorted(shapes), parts, strict=True)}
