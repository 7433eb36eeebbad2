"""Rows of local datasets in files: node, features and label of each, checked, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.io.errors import DataError, EmptyDataError
from coterie.io.sources import Source, cell, import_polars, sources
from coterie.io.values import check_types, check_values, comes_as_text, id_type, is_text, name_unreadable, numbers_in
from coterie.problem import EmpiricalGraph
from coterie.problem.ids import Pairs, are_text, written

if TYPE_CHECKING:
    import polars as pl

    from coterie.io.preparation import Preparation
    from coterie.io.times import Times

ROW, GAPS = " row", " gaps"  # names of columns of our own


@dataclass(frozen=True)
class Columns:
    """Which columns are what.

    Attributes
    ----------
    node : str
        Ids: whole numbers or text.
    features : tuple of str
        Finite numbers.
    target : str or None
        Numbers; empty or nan where there is no label. None: labels are not read.
    offset : str or None
        Finite numbers that every row has, beside its features: an offset or an exposure. None: there are none.
    text_ids : bool
        Ids are text, exactly as they stand; False: whole numbers.
    text_labels : bool
        Labels are names of classes; empty where there is no label.
    made : Preparation or None
        How the features are made of columns; None: they are columns.
    times : Times or None
        The column with the time of each row, where nodes are places at times.
    """

    node: str
    features: tuple[str, ...]
    target: str | None = None
    text_ids: bool = True
    text_labels: bool = False
    made: Preparation | None = None
    times: Times | None = None
    offset: str | None = None

    @classmethod
    def of(
        cls,
        path: str | PathLike[str],
        node: str,
        target: str | None = None,
        features: Sequence[str] | None = None,
        but: Sequence[str] = (),
        text_ids: bool = True,
        classes: bool = False,
        times: Times | None = None,
        offset: str | None = None,
    ) -> Columns:
        """Check the names against the first file.

        Without `features`, every column is one that is not node, target or offset, nor among `but`. `classes`: labels
        may be names.
        """
        first = sources(path)[0]
        when = None if times is None else times.name
        named = [name for name in (node, when, target, offset) if name is not None]
        first.require([*named, *(features or ()), *but])
        rest = (name for name in first.schema if name not in (*named, *but))
        chosen = tuple(rest if features is None else features)
        if not chosen:
            raise DataError(f"{first.file}: there are no features; name at least one column")
        if len({*named, *chosen}) < len(named) + len(chosen):
            twice = ", ".join([*named, *chosen])
            what = "node, target and features" if offset is None else "node, target, offset or exposure, and features"
            raise DataError(f"{first.file}: a column is named twice among {what}: {twice}")
        named_classes = classes and target is not None and any(is_text(source, target) for source in sources(path))
        return cls(node, chosen, target, text_ids, named_classes, times=times, offset=offset)

    @property
    def keys(self) -> list[str]:
        """The columns that say which node a row belongs to."""
        return [self.node] if self.times is None else [self.node, self.times.name]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Features and target."""
        return self.features if self.target is None else (*self.features, self.target)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns of the files that features are made of, the offset, and the target."""
        names = self.features if self.made is None else self.made.columns
        return (*names, *(name for name in (self.offset, self.target) if name is not None))

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of which each level becomes a feature."""
        return {} if self.made is None else self.made.levels

    @property
    def keeps_gaps(self) -> bool:
        """Whether features may be null, in rows that are then dropped."""
        return self.made is not None and self.made.missing == "drop"

    def column_of(self, name: str) -> str:
        """Return the column that a feature is made of."""
        return name if self.made is None else self.made.features.get(name, name)

    def prepared(self, made: Preparation) -> Columns:
        """Return the same with features that are made like this."""
        return replace(self, features=tuple(made.features), made=made)

    def like(self, graph: EmpiricalGraph) -> Columns:
        """Return the same with ids as this graph has them: where they are text there, they are text here."""
        return replace(self, text_ids=are_text(graph.ids.first if isinstance(graph.ids, Pairs) else graph.names))


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a file.

    Attributes
    ----------
    file : Path
    first : int
        The number of the first of them in the file, from 1; the header of a CSV file is not counted.
    frame : polars.DataFrame
        Node (Int64 or String), time where there is one, features (Float64, finite, or null where `gaps` are dropped)
        and, where asked for, offset (Float64, finite) and target (Float64, nan: no label; or String, null: no label).
    gaps : polars.DataFrame or None
        Where values were missing, one column for each that was read. None: gaps are refused.
    """

    file: Path
    first: int
    frame: pl.DataFrame
    gaps: pl.DataFrame | None = None

    @property
    def whole(self) -> pl.DataFrame:
        """The rows without those that lack a feature."""
        pl = import_polars()
        numbers = pl.col(pl.Float64)
        lacks = self.gaps is not None and any(column.null_count() for column in self.frame.select(numbers))
        return self.frame.filter(pl.all_horizontal(numbers.is_not_null())) if lacks else self.frame


def scan_rows(path: str | PathLike[str], columns: Columns) -> Iterator[Rows]:
    """Yield all rows, in order, in batches; the first bad value is an error that names file, column and row."""
    files = sources(path)
    for source in files:
        source.require([*columns.keys, *columns.read])
        check_types(source, columns)
    found = False
    for source in files:
        for rows in rows_of(source, columns):
            found = found or len(rows.frame) > 0
            yield rows
    if not found:
        raise EmptyDataError(f"{path}: there are no rows")


def rows_of(source: Source, columns: Columns) -> Iterator[Rows]:
    """Yield the rows of one file, checked, in batches."""
    source.check_lengths()
    first = 1
    for frame, gaps in _batches(source, columns):
        rows = Rows(source.file, first, frame, gaps)
        check_values(rows, columns)
        yield rows
        first += len(frame)


def read_rows(path: str | PathLike[str], columns: Columns) -> pl.DataFrame:
    """Return all rows in memory as one frame, checked like those of :func:`scan_rows`; those with gaps are dropped."""
    table = import_polars().concat([rows.whole for rows in scan_rows(path, columns)])
    if table.is_empty():
        raise EmptyDataError(f"{path}: a value is missing in every row; no row is left")
    return table


def find_row(path: str | PathLike[str], columns: Columns, wrong: pl.Expr, name: str) -> str:
    """Return where the first row is for which `wrong` holds, and its value of column `name`, for a message."""
    for rows in scan_rows(path, columns):
        found = rows.frame.select(wrong.alias(ROW))[ROW]
        if found.any():
            return place_of(rows, name, int(found.arg_max() or 0))
    raise ValueError(f"{path}: there is no such row any more; was the file changed?")


def place_of(rows: Rows, name: str, place: int) -> str:
    """Return file, column, row and value, for a message."""
    return f"{cell(rows.file, name, rows.first + place)}: {written(rows.frame[name][place])}"


def _batches(source: Source, columns: Columns) -> Iterator[tuple[pl.DataFrame, pl.DataFrame | None]]:
    """The rows of a file, and where they have gaps if that is allowed."""
    pl = import_polars()
    query = source.scan(_types(source, columns), gaps=[name for name in columns.read if name not in columns.levels])
    parts = [pl.col(columns.node).cast(id_type(source, columns))]
    parts += [] if columns.times is None else [columns.times.values]
    made = columns.made
    parts += [numbers_in(source, name) for name in columns.features] if made is None else made.expressions(source)
    if columns.offset is not None:
        parts.append(numbers_in(source, columns.offset))
    if columns.target is not None:
        label = pl.col(columns.target).cast(pl.String) if columns.text_labels else numbers_in(source, columns.target)
        parts.append(label if columns.text_labels else label.fill_null(np.nan))
    gaps = [] if made is None or made.missing is None else [pl.struct(made.gaps(source)).alias(GAPS)]
    with source.reading():
        try:
            for frame in query.select(*parts, *gaps).collect_batches(lazy=True):
                yield (frame.drop(GAPS), frame[GAPS].struct.unnest()) if gaps else (frame, None)
        except pl.exceptions.PolarsError:
            name_unreadable(source, columns)
            raise


def _types(source: Source, columns: Columns) -> dict[str, Any]:
    """As what the columns of a CSV file are read."""
    pl = import_polars()
    text = [name for name in columns.read if name in columns.levels or comes_as_text(source, name)]
    text += [str(columns.target)] if columns.text_labels else []
    text += [] if columns.times is None else [columns.times.name]
    types = dict.fromkeys(columns.read, pl.Float64) | dict.fromkeys(text, pl.String)
    return types | {columns.node: id_type(source, columns)}
