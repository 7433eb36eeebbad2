"""Rows that ranks read together: each goes to the rank whose node it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.part import Integers, find
from coterie.io.errors import DataError, UnknownNodeError
from coterie.io.formats import Table
from coterie.io.labels import counts_as_numbers, label_counts
from coterie.io.moments import Moments
from coterie.io.ranks.directory import sent_rows
from coterie.io.ranks.network import RankNetwork
from coterie.io.ranks.pieces import in_step, pieces_of, shares
from coterie.io.rows import Columns, Rows, find_row, rows_of, scan_rows
from coterie.io.sources import import_polars
from coterie.io.stream import RunningMoments
from coterie.io.values import check_types
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    import polars as pl


FILES = 1 << 40  # numbers of rows: those of a file, and of the ranks that read it, are this far apart


class OwnRows(NamedTuple):
    """Rows of own nodes, in the order of the files.

    nodes : the place of each row's node among them; y : labels, nan where there is none; offset : None without one.
    """

    nodes: Integers
    X: Array
    y: Array
    offset: Array | None


class Batch(NamedTuple):
    """Some rows of a rank's share, and the number of the first of them: numbers ascend through the files."""

    first: int
    rows: Rows


def read_own_rows(table: Table, columns: Columns, network: RankNetwork, classes: list[Any] | None = None) -> OwnRows:
    """Read rows together and keep those of own nodes. `classes`: labels are their places in this list."""
    width = len(_numbers(columns))
    found = [part for part in _arriving(table, columns, network, classes) if len(part[0])]
    nodes, called = (np.concatenate([np.empty(0, dtype=np.int64), *(part[k] for part in found)]) for k in (0, 1))
    Z = np.concatenate([np.empty((0, width)), *(part[2] for part in found)])
    del found
    order = np.argsort(called)
    nodes, Z = nodes[order], Z[order]
    n = len(columns.features)
    return OwnRows(nodes, Z[:, :n], Z[:, -1], None if columns.offset is None else Z[:, n])


def read_own_moments(table: Table, columns: Columns, network: RankNetwork) -> Moments:
    """Read rows together and keep the moments of own nodes, which are called by their places."""
    pl = import_polars()
    with RunningMoments(len(columns.numbers)) as running:
        for at, _, Z in _arriving(table, columns, network, None):
            running.add(at, pl.DataFrame(Z, schema=list(columns.numbers)))
    return running.result(running.keys().tolist())


def count_labels(table: Table, columns: Columns, crew: Crew) -> dict[Any, int]:
    """How many of all rows have each label; labels that came as text, and are numbers after all, are numbers."""
    here: Counter[Any] = Counter()
    for batch in in_step(crew, batches_of(table, columns, crew), table):
        here.update({} if batch is None else label_counts(batch.rows.whole[str(columns.target)]))
    total: Counter[Any] = Counter()
    for pairs in crew.said(list(here.items())):
        total.update(dict(pairs))
    return counts_as_numbers(total) if columns.text_labels else total


def batches_of(table: Table, columns: Columns, crew: Crew) -> Iterator[Batch]:
    """The rows of this rank's share; of a bad value, the files are read again to name its row."""
    here = shares(table, crew)

    def batches() -> Iterator[Batch]:
        try:
            for file, share in enumerate(here):
                first = (file * crew.size + crew.rank) * FILES
                for piece in pieces_of([share]):
                    piece.require([*columns.keys, *columns.read])
                    check_types(piece, columns)
                    for rows in rows_of(piece, columns):
                        yield Batch(first, rows)
                        first += len(rows.frame)
        except DataError:
            for _ in scan_rows(table, columns):
                pass
            raise

    return batches()


def _arriving(
    table: Table, columns: Columns, network: RankNetwork, classes: list[Any] | None
) -> Iterator[tuple[Integers, Integers, Array]]:
    """Batches of rows of own nodes: places of nodes, numbers of rows, and what they hold, the label last."""
    directory, crew = network.directory, network.directory.crew
    for batch in in_step(crew, batches_of(table, columns, crew), table):
        ids, called, Z = _as_numbers(batch, columns, classes)
        different = ids.unique(maintain_order=True)
        numbers, owners = directory.numbers_of(different)

        def known(different: pl.Series = different, numbers: Integers = numbers) -> None:
            _refuse_unknown(table, columns, different, numbers)

        crew.do(known, f"use its share of {table}")
        place = _places(ids, different)
        there, called, rows = sent_rows(crew, owners[place], numbers[place], called, Z)
        yield find(network.share.own, there), called, rows


def _places(ids: pl.Series, different: pl.Series) -> Integers:
    """The place of each id among the different ones."""
    pl = import_polars()
    known = pl.DataFrame({"id": different, "at": np.arange(len(different))})
    return ids.to_frame("id").join(known, on="id", how="left", maintain_order="left")["at"].to_numpy()


def _numbers(columns: Columns) -> list[str]:
    """What a row holds: features, the offset where there is one, and the label."""
    return [*columns.features, *([] if columns.offset is None else [columns.offset]), str(columns.target)]


def _as_numbers(batch: Batch | None, columns: Columns, classes: list[Any] | None) -> tuple[pl.Series, Integers, Array]:
    """Ids of nodes, numbers of rows, and what these hold."""
    pl, names = import_polars(), _numbers(columns)
    if batch is None:
        return pl.Series("id", [], dtype=pl.String), np.empty(0, dtype=np.int64), np.empty((0, len(names)))
    frame = batch.rows.whole
    if classes is not None:
        frame = frame.with_columns(_as_places(frame[names[-1]], classes).alias(names[-1]))
    Z = np.ascontiguousarray(frame.select(names).to_numpy(), dtype=np.float64)
    return frame[columns.node].cast(pl.String).alias("id"), batch.first + np.arange(len(frame)), Z


def _as_places(label: pl.Series, classes: list[Any]) -> pl.Series:
    """The places of labels among the classes, names or whole numbers; nan where there is none."""
    pl = import_polars()
    if not isinstance(classes[0], str):
        label = label.cast(pl.Float64)
        classes = [float(c) for c in classes]
    places = label.replace_strict(classes, np.arange(len(classes), dtype=float), default=None, return_dtype=pl.Float64)
    return places.fill_null(np.nan)


def _refuse_unknown(table: Table, columns: Columns, ids: pl.Series, numbers: Integers) -> None:
    """Refuse nodes that are not in the graph; the files are read again to name the first row."""
    if (numbers >= 0).all():
        return
    pl = import_polars()
    unknown = ids.filter(pl.Series(numbers < 0)).to_list()
    where = find_row(table, columns, pl.col(columns.node).cast(pl.String).is_in(unknown), columns.node)
    raise UnknownNodeError(f"{where} is not a node of the graph")
