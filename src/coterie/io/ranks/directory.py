"""Which number each node has, and which rank it belongs to, where no rank knows all nodes.

Every id has a *home*, the rank of its range of the alphabet, which knows its number, and whose node it is. Numbers are
those that all ids have when they are sorted: the same for any number of ranks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.part import Integers
from coterie.io.sources import import_polars
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    import polars as pl

SAMPLES = 200  # ids of each rank, by which the alphabet is cut into ranges that have about as many
UNKNOWN = -1


class Directory:
    """The nodes of a network.

    Attributes
    ----------
    names : polars.Series
        The ids whose home is here, sorted: these nodes have the numbers first, first + 1, …
    first, n_nodes : int
    owner : array of int
        The rank of each of these nodes, once they are assigned.
    """

    def __init__(self, crew: Crew, ids: pl.Series) -> None:
        """Number all ids that some rank has; `ids`, text, are different ones."""
        self.crew = crew
        self.cuts = _cuts(crew, ids)
        order, counts = self._by_home(ids)
        there, _ = sent_text(crew, ids.gather(order), counts)
        self.names = there.unique().sort()
        sizes = crew.every(np.array([len(self.names)])).ravel()
        self.firsts = np.concatenate([[0], np.cumsum(sizes)])
        self.first, self.n_nodes = int(self.firsts[crew.rank]), int(self.firsts[-1])
        self.owner = np.zeros(len(self.names), dtype=np.int64)

    def numbers_of(self, ids: pl.Series) -> tuple[Integers, Integers]:
        """The number and the owner of each of these ids; −1 where there is no such node."""
        pl = import_polars()
        order, counts = self._by_home(ids)
        asked, asking = sent_text(self.crew, ids.gather(order), counts)
        known = pl.DataFrame({"id": self.names, "at": np.arange(len(self.names))})
        place = asked.to_frame("id").join(known, on="id", how="left", maintain_order="left")["at"]
        at = place.fill_null(UNKNOWN).to_numpy()
        owner = np.append(self.owner, UNKNOWN)[at]
        answers, _ = self.crew.swapped(np.column_stack([np.where(at < 0, at, at + self.first), owner]), asking)
        out = np.empty((len(ids), 2), dtype=np.int64)
        out[order] = answers
        return out[:, 0], out[:, 1]

    def home_of(self, numbers: Integers) -> Integers:
        """The home of each node."""
        return np.searchsorted(self.firsts, numbers, side="right") - 1

    def owners_of(self, numbers: Integers) -> Integers:
        """The owner of each of these nodes."""
        different, back = np.unique(numbers, return_inverse=True)
        asked, asking = self.crew.swapped(different, np.bincount(self.home_of(different), minlength=self.crew.size))
        answers, _ = self.crew.swapped(self.owner[asked - self.first], asking)
        return answers[back.reshape(numbers.shape)]

    def own(self) -> tuple[Integers, pl.Series]:
        """The nodes that belong to this rank, ascending, and their ids."""
        order = np.argsort(self.owner, kind="stable")
        counts = np.bincount(self.owner, minlength=self.crew.size)
        numbers, _ = self.crew.swapped(self.first + order, counts)
        names, _ = sent_text(self.crew, self.names.gather(order), counts)
        order = np.argsort(numbers)
        return numbers[order], names.gather(order)

    def _by_home(self, ids: pl.Series) -> tuple[Integers, Integers]:
        """An order in which ids of one home follow each other, and how many each home has."""
        home = np.asarray(self.cuts.search_sorted(ids, side="right"), dtype=np.int64)
        return np.argsort(home, kind="stable"), np.bincount(home, minlength=self.crew.size)


def _cuts(crew: Crew, ids: pl.Series) -> pl.Series:
    """Where the alphabet is cut, the same at every rank."""
    pl = import_polars()
    some = ids.sort().gather(np.linspace(0, len(ids) - 1, min(SAMPLES, len(ids))).astype(np.int64))
    to_all = pl.concat([some] * crew.size)
    samples = sent_text(crew, to_all, np.full(crew.size, len(some)))[0].sort()
    return samples.gather(np.arange(1, crew.size) * len(samples) // crew.size)


def sent_text(crew: Crew, texts: pl.Series, counts: Integers) -> tuple[pl.Series, Integers]:
    """Send counts[q] texts to each rank q; return what all sent here, rank by rank, and how many each."""
    pl = import_polars()
    lengths = texts.str.len_bytes().to_numpy().astype(np.int64)
    letters = np.frombuffer("".join(texts.to_list()).encode(), dtype=np.uint8)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    sizes = np.diff(ends[np.concatenate([[0], np.cumsum(counts)])])
    coming, from_each = crew.swapped(lengths, counts)
    content = crew.swapped(letters, sizes)[0].tobytes()
    cuts = np.concatenate([[0], np.cumsum(coming)]).tolist()
    there = [content[a:b].decode() for a, b in pairwise(cuts)]
    return pl.Series("id", there, dtype=pl.String), from_each


def sent_rows(crew: Crew, to: NDArray[np.int64], *columns: Array) -> list[Array]:
    """Send one row of every column to each of these ranks; return the rows that come here."""
    order = np.argsort(to, kind="stable")
    counts = np.bincount(to, minlength=crew.size)
    return [crew.swapped(column[order], counts)[0] for column in columns]
