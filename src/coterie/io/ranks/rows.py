"""Rows that ranks read together: each goes to the rank whose node it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.part import Integers, find
from coterie.io.errors import DataError, UnknownNodeError
from coterie.io.formats import Table
from coterie.io.moments import Moments
from coterie.io.ranks.directory import sent_rows
from coterie.io.ranks.network import RankNetwork
from coterie.io.ranks.pieces import Shares, in_step, pieces_of, shares
from coterie.io.rows import Columns, find_row, rows_of, scan_rows
from coterie.io.sources import import_polars
from coterie.io.stream import RunningMoments
from coterie.io.values import check_types
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    import polars as pl


class OwnRows(NamedTuple):
    """Rows of own nodes: the place of each row's node among them, features, and labels (nan: none)."""

    nodes: Integers
    X: Array
    y: Array


def read_own_rows(table: Table, columns: Columns, network: RankNetwork, classes: list[Any] | None = None) -> OwnRows:
    """Read rows together and keep those of own nodes. `classes`: labels are their places in this list."""
    width = len(columns.features) + 1
    found = [(at, Z) for at, Z in _arriving(table, columns, network, classes) if len(at)]
    nodes = np.concatenate([np.empty(0, dtype=np.int64), *(at for at, _ in found)])
    Z = np.concatenate([np.empty((0, width)), *(rows for _, rows in found)])
    return OwnRows(nodes, Z[:, :-1], Z[:, -1])


def read_own_moments(table: Table, columns: Columns, network: RankNetwork) -> Moments:
    """Read rows together and keep the moments of own nodes, which are called by their places."""
    pl = import_polars()
    with RunningMoments(len(columns.numbers)) as running:
        for at, Z in _arriving(table, columns, network, None):
            running.add(at, pl.DataFrame(Z, schema=list(columns.numbers)))
    return running.result(running.keys().tolist())


def read_classes(table: Table, columns: Columns, crew: Crew) -> list[Any]:
    """The different labels of all rows, sorted: names, or numbers."""
    here: set[Any] = set()
    for batch in in_step(crew, _batches(shares(table, crew), table, columns), table):
        labels = import_polars().Series([]) if batch is None else batch[str(columns.target)].drop_nulls().unique()
        here |= set(labels.to_list())
    letters = np.frombuffer(json.dumps([name for name in here if name == name]).encode(), dtype=np.uint8).copy()
    return sorted({name for part in crew.in_turn(letters) for name in json.loads(part.tobytes())})


def _arriving(
    table: Table, columns: Columns, network: RankNetwork, classes: list[Any] | None
) -> Iterator[tuple[Integers, Array]]:
    """Batches of rows of own nodes: places of nodes, and numbers with the label as the last."""
    directory, crew, width = network.directory, network.directory.crew, len(columns.numbers)
    for batch in in_step(crew, _batches(shares(table, crew), table, columns), table):
        ids, Z = _as_numbers(batch, columns, width, classes)
        different = ids.unique(maintain_order=True)
        numbers, owners = directory.numbers_of(different)

        def known(different: pl.Series = different, numbers: Integers = numbers) -> None:
            _refuse_unknown(table, columns, different, numbers)

        crew.do(known, f"use its share of {table}")
        place = _places(ids, different)
        there, rows = sent_rows(crew, owners[place], numbers[place], Z)
        yield find(network.share.own, there), rows


def _places(ids: pl.Series, different: pl.Series) -> Integers:
    """The place of each id among the different ones."""
    pl = import_polars()
    known = pl.DataFrame({"id": different, "at": np.arange(len(different))})
    return ids.to_frame("id").join(known, on="id", how="left", maintain_order="left")["at"].to_numpy()


def _as_numbers(
    batch: pl.DataFrame | None, columns: Columns, width: int, classes: list[Any] | None
) -> tuple[pl.Series, Array]:
    pl = import_polars()
    if batch is None:
        return pl.Series("id", [], dtype=pl.String), np.empty((0, width))
    label = batch[str(columns.target)]
    if classes is not None:
        keys = classes if columns.text_labels else [float(c) for c in classes]
        label = label.replace_strict(keys, np.arange(len(keys), dtype=float), default=None, return_dtype=pl.Float64)
        label = label.fill_null(np.nan)
    numbers = batch.select(columns.features).with_columns(label.alias(str(columns.target)))
    return batch[columns.node].cast(pl.String).alias("id"), np.ascontiguousarray(numbers.to_numpy(), dtype=np.float64)


def _batches(here: Shares, table: Table, columns: Columns) -> Iterator[pl.DataFrame]:
    """The rows of this rank's share; of a bad value, the files are read again to name its row."""
    try:
        for piece in pieces_of(here):
            piece.require([*columns.keys, *columns.read])
            check_types(piece, columns)
            for rows in rows_of(piece, columns):
                yield rows.whole
    except DataError:
        for _ in scan_rows(table, columns):
            pass
        raise


def _refuse_unknown(table: Table, columns: Columns, ids: pl.Series, numbers: Integers) -> None:
    """Refuse nodes that are not in the graph; the files are read again to name the first row."""
    if (numbers >= 0).all():
        return
    pl = import_polars()
    unknown = ids.filter(pl.Series(numbers < 0)).to_list()
    where = find_row(table, columns, pl.col(columns.node).cast(pl.String).is_in(unknown), columns.node)
    raise UnknownNodeError(f"{where} is not a node of the graph")
