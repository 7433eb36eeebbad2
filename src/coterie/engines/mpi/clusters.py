"""Clusters that the duals show, across ranks: nodes joined by edges with slack, coordinate by coordinate.

Every rank finds the clusters of its part, own nodes and halo. A cluster of the network is made of such pieces, which
have a halo node in common with a piece of a peer. Pieces have names, rank and number; a piece takes the smallest name
that it has heard of from its halo, again and again, until all pieces of a cluster go by the name of one of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.exchange import Exchange
from coterie.engines.mpi.part import Part
from coterie.problem.arrays import Array

NUMBERS = 1 << 44  # a name is rank · NUMBERS + number
NOBODY = np.iinfo(np.int64).max


class PartClusters:
    """The pieces of a part, and the names of their clusters."""

    def __init__(
        self, part: Part, label: NDArray[np.int64], counts: NDArray[np.int64], halo: Exchange | None = None
    ) -> None:
        self.part, self.halo = part, halo or part.halo
        self.piece = label + np.concatenate([[0], np.cumsum(counts)[:-1]])  # (V, n): pieces of all coordinates
        own = np.zeros(int(counts.sum()), dtype=bool)
        own[self.piece[: part.own]] = True
        first = part.crew.rank * NUMBERS + np.arange(len(own))
        self.name = np.where(own, first, NOBODY)  # what is only halo goes by a peer's name
        self._agree_on_names()
        self.total = round(part.crew.sum(float((own & (self.name == first)).sum())))
        self.shared = np.unique(self.piece[part.own :]) if len(part.halo.receive) else np.empty(0, dtype=np.int64)

    def _agree_on_names(self) -> None:
        part, more = self.part, True
        theirs = self.piece[part.own :].ravel()
        while more:
            names = self.name[self.piece]
            self.halo(names.view(np.float64))
            heard = self.name.copy()
            if len(part.halo.receive):
                np.minimum.at(heard, theirs, names[part.own :].ravel())
            more = part.crew.any(bool((heard != self.name).any()))
            self.name = heard

    def average(self, x: Array) -> Array:
        """Means of x (V, n), cluster by cluster: pieces are added up where the piece is that their name is of."""
        part, K = self.part, len(self.name)
        own = self.piece[: part.own].ravel()
        total, size = np.bincount(own, x[: part.own].ravel(), minlength=K), np.bincount(own, minlength=K).astype(float)
        owner, number = np.divmod(self.name[self.shared], NUMBERS)
        order = np.argsort(owner, kind="stable")
        sent = np.column_stack([number, total[self.shared], size[self.shared]])[order]
        asked, counts = part.crew.swapped(sent, np.bincount(owner, minlength=part.crew.size))
        here = asked[:, 0].astype(np.int64)
        total[self.shared] = size[self.shared] = 0.0
        total += np.bincount(here, asked[:, 1], minlength=K)
        size += np.bincount(here, asked[:, 2], minlength=K)
        mean = np.divide(total, size, out=np.zeros(K), where=size > 0)
        answers, _ = part.crew.swapped(mean[here], counts)
        mean[self.shared[order]] = answers
        out = mean[self.piece]
        self.halo(out)
        return out
