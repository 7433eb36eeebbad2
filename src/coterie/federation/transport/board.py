"""What a site has ready for its neighbours: they ask for it, as often as they need to, until nobody can need it.

A message is float64 numbers, array after array in the order of their names: who asks knows their shapes.

A board also knows who takes part, its *standing*: a number for every site, even while it takes part and odd while it is
away. Whoever gives up waiting for a neighbour, or comes back, adds one to its number; of two numbers the larger one is
newer. Messages belong to a standing: where sites hear of another one, they begin anew with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Condition

import numpy as np

from coterie.federation.loop import FederationError
from coterie.problem.arrays import Array

KEPT = {"weights": 2, "claims": 2, "up": 2, "down": 2}  # a neighbour is never more than one behind; the start stays
MAY_BE_INFINITE = ("up", "down", "about", "claims")  # what nobody knows

Entry = tuple[str, int]  # kind and number of a message
Standing = tuple[int, ...]


class Board:
    """Messages by kind, number and neighbour; other threads may wait for one.

    Parameters
    ----------
    sites : sequence of str
        All of them.
    standing : tuple of int, optional
        Of a former life; if not given, all sites take part.

    Attributes
    ----------
    standing, heard : tuple of int
        What the messages belong to, and the newest that anyone has told.
    end : str
        Why the run has ended here, for the neighbours; empty while it goes on.
    """

    def __init__(self, sites: Sequence[str] = (), standing: Standing | None = None) -> None:
        self.sites = list(sites)
        self.entries: dict[Entry, dict[str, bytes]] = {}
        self.changed = Condition()
        self.standing = self.heard = (0,) * len(sites) if standing is None else standing
        self.end = ""
        self.keep: Callable[[], None] = _nothing  # writes the board to disk, before totals are told to anyone

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

    def wait(self, kind: str, number: int, who: str, seconds: float, standing: Standing = ()) -> bytes | None:
        """The message for a neighbour, as soon as it is there; None: not yet, or there is something else to hear."""
        with self.changed:
            self.changed.wait_for(
                lambda: (
                    (self.standing == standing and (kind, number) in self.entries) or self.heard != standing or self.end
                ),
                seconds,
            )
            return None if self.standing != standing else self.entries.get((kind, number), {}).get(who)

    def hear(self, numbers: Standing) -> None:
        """Take notice of what somebody says of who takes part."""
        with self.changed:
            self.heard = tuple(max(pair) for pair in zip(self.heard, numbers, strict=True))
            self.changed.notify_all()

    @property
    def away(self) -> frozenset[str]:
        """The sites that do not take part."""
        return frozenset(site for site, x in zip(self.sites, self.standing, strict=True) if x % 2)

    def add_one(self, site: str) -> None:
        """Say of a site that it has gone, or come back."""
        self.hear(tuple(x + (name == site) for name, x in zip(self.sites, self.heard, strict=True)))

    def begin_anew(self, here: str, may_return: bool) -> bool:
        """Take the newest standing for granted; what was said before belongs to another.

        False: in this standing the site here is away, and may not return.
        """
        if self.heard[self.sites.index(here)] % 2:
            if not may_return:
                return False
            self.add_one(here)
        with self.changed:
            self.standing, self.keep = self.heard, _nothing
            self.entries.clear()
        return True

    def close(self, why: str) -> None:
        """Have nothing more to say but why."""
        with self.changed:
            self.end = why
            self.changed.notify_all()


def _nothing() -> None:
    """Keep nothing: nothing has been said yet."""


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
    finite = ~np.isnan(numbers) if kind in MAY_BE_INFINITE else np.isfinite(numbers)
    if len(numbers) != sum(sizes) or not finite.all():
        raise FederationError(f"site {who!r} has sent {kind} of another length, or numbers that are none")
    parts = np.split(numbers.astype(np.float64), np.cumsum(sizes)[:-1])
    return {name: part.reshape(shapes[name]) for name, part in zip(sorted(shapes), parts, strict=True)}
