"""Sums over all sites, where each talks to its neighbours only: up a spanning tree, and down again.

The root is the site with the smallest name; every other site's parent is its neighbour nearest to the root, the one
with the smallest name if there are several. Nobody plans that: as many exchanges as there are sites find it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coterie.federation.loop import FederationError
from coterie.problem.arrays import Array


class ChangedError(Exception):
    """Other sites take part than before: what was begun with them is to begin anew."""


class LeftBehindError(FederationError):
    """This site could not be reached for a while: its end is not that of the others."""


class Peers(Protocol):
    """Whoever carries messages between a site and its neighbours.

    `away` are the sites that do not take part; `may_be_held` the neighbours that may go, as their weights are known.
    """

    may_be_held: set[str]

    @property
    def away(self) -> frozenset[str]: ...

    def begin_anew(self, may_return: bool) -> bool:
        """Go on with whoever takes part now, after a ChangedError; False: the others go on without this site."""

    def publish(self, kind: str, number: int, messages: Mapping[str, Mapping[str, Array]]) -> None:
        """Have a message ready for each of these neighbours, as often as they ask for it."""

    def published(self, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array] | None:
        """What was published under this number, perhaps in a former life; None: nothing."""

    def pull(self, neighbour: str, kind: str, number: int, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Array]:
        """Ask a neighbour for its message, and wait until it has one of these shapes.

        Raises
        ------
        ChangedError
            When other sites take part than before.
        """


@dataclass(frozen=True)
class SpanningTree:
    """The neighbours of one site in the tree; the root has no parent."""

    parent: str | None
    children: tuple[str, ...]

    @classmethod
    def found(cls, peers: Peers, neighbours: Sequence[str], rank: int, ranks: Mapping[str, int]) -> SpanningTree:
        """Find the tree together; ranks are places in the order of all names, which all sites have agreed on.

        Raises
        ------
        FederationError
            When there are sites that no path of edges leads to; unless some are away, which may cut off others.
        """
        root, distance, parent = rank, 0, None
        for k in range(len(ranks)):
            near = {"root": _row([root, distance])}
            peers.publish("tree", k, dict.fromkeys(neighbours, near))
            for one in neighbours:
                theirs, far = peers.pull(one, "tree", k, {"root": (1, 2)})["root"][0]
                if (theirs, far + 1) < (root, distance):
                    root, distance, parent = int(theirs), int(far) + 1, one
        if root != 0 and not peers.away:
            raise FederationError("no path of edges between sites leads from this site to all others")
        chosen = {one: {"parent": _row([float(one == parent)])} for one in neighbours}
        peers.publish("parent", 0, chosen)
        is_child = {one: peers.pull(one, "parent", 0, {"parent": (1, 1)})["parent"][0, 0] for one in neighbours}
        return cls(parent, tuple(one for one in neighbours if is_child[one]))

    def total(self, peers: Peers, number: int, sums: Array, maxima: Array) -> tuple[Array, Array]:
        """Add up what all sites have, and return the same totals to all; `number` says which time this is."""
        shapes = {"sums": (1, len(sums)), "maxima": (1, len(maxima))}
        before = peers.published("down", number, shapes)
        if before is not None:  # others may know it already
            return before["sums"][0], before["maxima"][0]
        for child in self.children:
            said = peers.pull(child, "up", number, shapes)
            sums, maxima = sums + said["sums"][0], np.maximum(maxima, said["maxima"][0])
        if self.parent is not None:
            peers.publish("up", number, {self.parent: {"sums": _row(sums), "maxima": _row(maxima)}})
            said = peers.pull(self.parent, "down", number, shapes)
            sums, maxima = said["sums"][0], said["maxima"][0]
        down = {"sums": _row(sums), "maxima": _row(maxima)}
        peers.publish("down", number, dict.fromkeys(self.children, down))
        return sums, maxima


def _row(numbers: Sequence[float] | Array) -> Array:
    return np.asarray(numbers, dtype=np.float64).reshape(1, -1)
