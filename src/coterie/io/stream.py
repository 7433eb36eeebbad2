"""Data larger than memory: one pass over files, rows never held, into the moments of every node."""

from __future__ import annotations

import os
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.io.memory import moments_needed, require_memory_for_moments
from coterie.io.moments import Moments
from coterie.io.rows import Columns, scan_rows
from coterie.io.sources import import_polars
from coterie.kernels.choice import Either, compiled, using
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    import polars as pl

kernels = Either("moments", "coterie.io.moment_kernels")

FEW = 2_000_000  # products, up to which compiled loops are not worth their loading
BLOCK = 1 << 14  # rows that are handled at a time: they fit a processor's cache
FIRST_ROOM = 1 << 10  # nodes; the room doubles when it is full
SMALL = 1 << 26  # bytes that may be taken in advance: wide tables begin with fewer nodes and rows
MOST_THREADS = 8


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
    text: dict[str, int] = {}
    with RunningMoments(len(columns.numbers)) as running:
        for rows in scan_rows(path, columns):
            frame = rows.whole
            ids = frame[columns.node]
            keys = ids.to_numpy() if ids.dtype.is_integer() else _text_keys(ids, text)
            running.add(keys, frame.select(columns.numbers))
    names = list(text)
    return running.result([names[key] if names else key for key in running.keys().tolist()])


def _text_keys(ids: pl.Series, known: dict[str, int]) -> NDArray[np.int64]:
    """Return whole numbers for ids that are text, the next for one that is not known yet."""
    pl = import_polars()
    codes = ids.cast(pl.Categorical)
    different = codes.unique()
    places = different.to_physical().to_numpy()
    keys = np.empty(int(places.max(initial=0)) + 1, dtype=np.int64)
    keys[places] = [known.setdefault(name, len(known)) for name in different.cast(pl.String).to_list()]
    return keys[codes.to_physical().to_numpy()]


class RunningMoments:
    """Moments of nodes that turn up in any order, known by whole numbers.

    Threads share the nodes, and each takes the rows of its own in their order: the result is the same for any number.

    Parameters
    ----------
    q : int
        The number of columns: features, and the label as the last.
    """

    def __init__(self, q: int) -> None:
        self._known, self._work = 0, 0
        self._table = _free_table(FIRST_ROOM)
        self._spare = SMALL // moments_needed(1, q - 1)  # nodes that may be too many
        room = min(FIRST_ROOM, self._spare)
        self._m = np.zeros(room, dtype=np.int64)
        self._origin, self._mean = np.zeros((room, q)), np.zeros((room, q))
        self._C = np.zeros((room, q * (q + 1) // 2))
        self._block = max(min(BLOCK, SMALL // (8 * q)), 1)
        self._Z, self._numbers = np.empty((q, self._block)), np.empty(self._block, dtype=np.int64)
        self._parts = 1 << (min(os.cpu_count() or 1, MOST_THREADS).bit_length() - 1)
        self._pool = ThreadPoolExecutor(self._parts)

    def __enter__(self) -> RunningMoments:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def add(self, ids: NDArray[np.int64], table: pl.DataFrame) -> None:
        """Add rows: one id each, and finite numbers, but for labels that are nan."""
        self._work += len(ids) * len(self._Z) ** 2
        with using(compiled=compiled() or self._work > FEW):
            self._add(ids, table)

    def _add(self, ids: NDArray[np.int64], table: pl.DataFrame) -> None:
        columns = table.get_columns()
        for start in range(0, len(ids), self._block):
            nodes = self._numbered(ids[start : start + self._block])
            Z = self._Z[:, : len(nodes)]
            for row, column in zip(Z, columns, strict=True):
                row[:] = column.slice(start, self._block).to_numpy()
            labelled = ~np.isnan(Z[-1])
            if not labelled.all():
                nodes, Z = nodes[labelled], Z[:, labelled]
            rows: tuple[Any, ...] = (self._parts, nodes, Z, self._m, self._origin, self._mean, self._C)
            for done in [self._pool.submit(kernels.add_rows, part, *rows) for part in range(self._parts)]:
                done.result()

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
            kernels.number_ids(keys, self._table, 0, np.empty_like(keys))
        numbers = self._numbers[: len(ids)]
        self._known = kernels.number_ids(ids, self._table, self._known, numbers)
        if self._known > len(self._m):
            require_memory_for_moments(self._known, self._mean.shape[1] - 1)
            room = self._known + min(self._known, max(self._spare, self._known // 4))
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
