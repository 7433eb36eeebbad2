"""Data larger than memory: one pass over files, rows never held, into the moments of every node."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from coterie.io.moments import Moments
from coterie.io.rows import Columns, scan_rows
from coterie.io.sources import engine
from coterie.kernels.moments import add_rows, number_ids
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    import polars as pl

BLOCK = 1 << 14  # rows that are handled at a time: they fit a processor's cache
FIRST_ROOM = 1 << 10  # nodes; the room doubles when it is full


def stream_moments(path: str | PathLike[str], columns: Columns) -> Moments:
    """Read CSV, Parquet or Arrow files once and return the moments of every node that occurs.

    Parameters
    ----------
    path : str or path
        A file, a folder, or a pattern such as ``days/*.parquet``.
    columns : Columns
        Which columns hold the node, the features and, not to be left out, the target. Rows whose target is empty or
        nan do not count, but make their node known.
    """
    if columns.target is None:
        raise ValueError("moments need labels; name the target column")
    pl = engine()
    names = pl.Categories.random()  # numbers for ids that are text, in a space of their own
    running = RunningMoments(len(columns.numbers))
    text = False
    for rows in scan_rows(path, columns):
        ids = rows.frame[columns.node]
        text = ids.dtype == pl.String
        if text:
            ids = ids.cast(pl.Categorical(names)).to_physical().cast(pl.Int64)
        running.add(ids, rows.frame.select(columns.numbers))
    return running.result([names[key] for key in running.keys()] if text else running.keys().tolist())


class RunningMoments:
    """Moments of nodes that turn up in any order, known by whole numbers.

    Parameters
    ----------
    q : int
        The number of columns: features, and the label as the last.
    """

    def __init__(self, q: int) -> None:
        self._known = 0
        self._table = _free_table(FIRST_ROOM)
        self._m = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._origin, self._mean = np.zeros((FIRST_ROOM, q)), np.zeros((FIRST_ROOM, q))
        self._C = np.zeros((FIRST_ROOM, q * (q + 1) // 2))
        self._Z, self._numbers = np.empty((q, BLOCK)), np.empty(BLOCK, dtype=np.int64)

    def add(self, ids: pl.Series, table: pl.DataFrame) -> None:
        """Add rows: one id each, and finite numbers, but for labels that are nan."""
        columns = table.get_columns()
        for start in range(0, len(ids), BLOCK):
            nodes = self._numbered(ids.slice(start, BLOCK).to_numpy())
            Z = self._Z[:, : len(nodes)]
            for row, column in zip(Z, columns, strict=True):
                row[:] = column.slice(start, BLOCK).to_numpy()
            labelled = ~np.isnan(Z[-1])
            if not labelled.all():
                nodes, Z = nodes[labelled], Z[:, labelled]
            add_rows(nodes, Z, self._m, self._origin, self._mean, self._C)

    def keys(self) -> NDArray[np.int64]:
        """Return the ids in the order of their numbers."""
        taken = self._table[self._table[:, 1] >= 0]
        return taken[np.argsort(taken[:, 1]), 0]

    def result(self, ids: list[Hashable]) -> Moments:
        """Return the moments, with these names for the nodes."""
        k, q = self._known, self._mean.shape[1]
        comoments = np.zeros((k, q, q))
        lower = np.tril_indices(q)
        comoments[:, lower[0], lower[1]] = comoments[:, lower[1], lower[0]] = self._C[:k]
        return Moments(tuple(ids), self._m[:k].copy(), self._origin[:k] + self._mean[:k], comoments)

    def _numbered(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        if 2 * (self._known + len(ids)) > len(self._table):
            keys = self.keys()
            self._table = _free_table(2 * (self._known + len(ids)))
            number_ids(keys, self._table, 0, np.empty_like(keys))
        numbers = self._numbers[: len(ids)]
        self._known = number_ids(ids, self._table, self._known, numbers)
        if self._known > len(self._m):
            room = 2 * self._known
            self._m, self._origin, self._mean, self._C = (
                _grown(array, room) for array in (self._m, self._origin, self._mean, self._C)
            )
        return numbers


def _free_table(nodes: int) -> NDArray[np.int64]:
    """Return a table for `number_ids`, at least twice as long as there are nodes."""
    return np.full((1 << (2 * nodes - 1).bit_length(), 2), -1, dtype=np.int64)


def _grown(array: Array, length: int) -> Array:
    grown = np.zeros((length, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown
