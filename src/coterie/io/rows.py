"""Rows of local datasets in files: node, features and label of each, checked, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.io.errors import BadValueError, ColumnTypeError, DataError, EmptyDataError
from coterie.io.sources import Source, cell, import_polars, sources
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import LARGEST
from coterie.problem.ids import are_text

if TYPE_CHECKING:
    import polars as pl

NO_NUMBERS = "name the features (--features), leave it out (--exclude), or make columns of 0 and 1 of it"
ROW = " row"  # a column name of our own while a bad value is looked for


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
    text_ids : bool
        Ids are text, exactly as they stand; False: whole numbers.
    """

    node: str
    features: tuple[str, ...]
    target: str | None = None
    text_ids: bool = True

    @classmethod
    def of(
        cls,
        path: str | PathLike[str],
        node: str,
        target: str | None = None,
        features: Sequence[str] | None = None,
        but: Sequence[str] = (),
        text_ids: bool = True,
    ) -> Columns:
        """Check the names against the first file.

        Without `features`, every column is one that is not node or target, nor among `but`.
        """
        first = sources(path)[0]
        named = [name for name in (node, target) if name is not None]
        first.require([*named, *(features or ()), *but])
        rest = (name for name in first.schema if name not in (*named, *but))
        chosen = tuple(rest if features is None else features)
        if not chosen:
            raise DataError(f"{first.file}: there are no features; name at least one column")
        if len({*named, *chosen}) < len(named) + len(chosen):
            twice = ", ".join([*named, *chosen])
            raise DataError(f"{first.file}: a column is named twice among node, target and features: {twice}")
        return cls(node, chosen, target, text_ids)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Features and target."""
        return self.features if self.target is None else (*self.features, self.target)

    def like(self, graph: EmpiricalGraph) -> Columns:
        """Return the same with ids as this graph has them: where they are text there, they are text here."""
        return replace(self, text_ids=are_text(graph.names))


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a file.

    Attributes
    ----------
    file : Path
    first : int
        The number of the first of them in the file, from 1; the header of a CSV file is not counted.
    frame : polars.DataFrame
        Node (Int64 or String), features (Float64, finite) and, where asked for, target (Float64, nan: no label).
    """

    file: Path
    first: int
    frame: pl.DataFrame


def scan_rows(path: str | PathLike[str], columns: Columns) -> Iterator[Rows]:
    """Yield all rows, in order, in batches; the first bad value is an error that names file, column and row."""
    files = sources(path)
    for source in files:
        source.require([columns.node, *columns.numbers])
        _check_types(source, columns)
    found = False
    for source in files:
        source.check_lengths()
        first = 1
        for frame in _batches(source, columns):
            rows = Rows(source.file, first, frame)
            _check_values(rows, columns)
            found = found or len(frame) > 0
            yield rows
            first += len(frame)
    if not found:
        raise EmptyDataError(f"{path}: there are no rows")


def read_rows(path: str | PathLike[str], columns: Columns) -> pl.DataFrame:
    """Return all rows in memory as one frame, checked like those of :func:`scan_rows`."""
    return import_polars().concat([rows.frame for rows in scan_rows(path, columns)])


def find_row(path: str | PathLike[str], columns: Columns, wrong: pl.Expr, name: str) -> str:
    """Return where the first row is for which `wrong` holds, and its value of column `name`, for a message."""
    for rows in scan_rows(path, columns):
        found = rows.frame.select(wrong.alias(ROW))[ROW]
        if found.any():
            return place_of(rows, name, int(found.arg_max() or 0))
    raise ValueError(f"{path}: there is no such row any more; was the file changed?")


def place_of(rows: Rows, name: str, place: int) -> str:
    """Return file, column, row and value, for a message."""
    return f"{cell(rows.file, name, rows.first + place)}: {rows.frame[name][place]!r}"


def _batches(source: Source, columns: Columns) -> Iterator[pl.DataFrame]:
    pl = import_polars()
    types = {columns.node: _id_type(source, columns)} | dict.fromkeys(columns.numbers, pl.Float64)
    query = source.scan(types).select(pl.col(name).cast(kind) for name, kind in types.items())
    if columns.target is not None:
        query = query.with_columns(pl.col(columns.target).fill_null(np.nan))
    with source.reading():
        try:
            yield from query.collect_batches(lazy=True)
        except pl.exceptions.PolarsError:
            if source.kind == "CSV":
                _name_unreadable(source, types)
            raise


def _id_type(source: Source, columns: Columns) -> Any:
    """Int64 or String: as which type ids are read."""
    pl = import_polars()
    kind = source.schema[columns.node]
    if not columns.text_ids:
        if source.kind != "CSV" and not kind.is_integer():
            raise ColumnTypeError(f"{source.file}: the node column {columns.node!r} is {kind}, not whole numbers")
        return pl.Int64
    if source.kind == "CSV" or kind.is_integer() or isinstance(kind, pl.String | pl.Categorical | pl.Enum):
        return pl.String
    raise ColumnTypeError(f"{source.file}: the node column {columns.node!r} is {kind}; ids are whole numbers or text")


def _check_types(source: Source, columns: Columns) -> None:
    pl = import_polars()
    _id_type(source, columns)
    for name in columns.numbers if source.kind != "CSV" else ():  # the columns of a CSV file are what we read them as
        kind = source.schema[name]
        if not (kind.is_numeric() or isinstance(kind, pl.Boolean | pl.Null)):
            raise ColumnTypeError(f"{source.file}: column {name!r} is {kind}, not numbers; {NO_NUMBERS}")


def _check_values(rows: Rows, columns: Columns) -> None:
    """Quick when all is well: an empty, nan, infinite or far too large value shows in the sum of its column's sizes."""
    pl = import_polars()
    frame = rows.frame
    fine = frame[columns.node].null_count() == 0
    fine = fine and all(frame[name].null_count() == 0 for name in columns.features)
    sizes = frame.select(pl.col(*columns.features).abs().sum()).row(0) if fine else (np.nan,)
    fine = all(size <= LARGEST for size in sizes)
    fine = fine and (columns.target is None or not frame.select(_unusable(columns.target).any()).item())
    if fine:
        return
    bad = {columns.node: pl.col(columns.node).is_null()}
    bad |= {name: ~(pl.col(name).abs() <= LARGEST).fill_null(False) for name in columns.features}
    if columns.target is not None:
        bad[columns.target] = _unusable(columns.target)
    places = frame.select(mask.arg_max().alias(name) for name, mask in bad.items()).row(0)
    wrong = frame.select(mask.any().alias(name) for name, mask in bad.items()).row(0)
    found = [(place, name) for place, name, yes in zip(places, bad, wrong, strict=True) if yes]
    if found:
        place, name = min(found, key=lambda one: one[0])
        _refuse_value(rows, columns, name, place)


def _unusable(target: str) -> pl.Expr:
    """Where a label is neither nan nor a number that can be squared."""
    label = import_polars().col(target)
    return label.is_not_nan() & (label.abs() > LARGEST)


def _refuse_value(rows: Rows, columns: Columns, name: str, place: int) -> None:
    value, node = rows.frame[name][place], rows.frame[columns.node][place]
    where = cell(rows.file, name, rows.first + place)
    if name == columns.node:
        raise BadValueError(f"{where}: there is no node id; fill or drop the row")
    if value is not None and np.isfinite(value):
        raise BadValueError(
            f"{where} (node {node!r}): numbers above {LARGEST:g} cannot be squared, and {value:g} is one"
        )
    what = "is missing" if value is None else f"is {value}"
    rule = "labels are finite, or empty where unknown" if name == columns.target else "fill or drop it"
    raise BadValueError(f"{where} (node {node!r}): the value {what}; {rule}")


def _name_unreadable(source: Source, types: dict[str, Any]) -> None:
    """Find the first cell of a CSV file that cannot be read as its column's type, and refuse it."""
    pl = import_polars()
    text = source.scan(dict.fromkeys(types, pl.String)).select(*types).with_row_index(ROW, offset=1)
    cells = [(pl.col(name), kind) for name, kind in types.items()]
    fails = [cell.is_not_null() & cell.cast(kind, strict=False).is_null() for cell, kind in cells]
    try:
        first = text.filter(pl.any_horizontal(fails)).head(1).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return  # it is not a matter of values
    for (name, kind), wrong in zip(types.items(), first.select(fails).row(0) if len(first) else (), strict=False):
        if wrong:
            what = "a whole number, as ids were asked for" if kind == pl.Int64 else "a number"
            where = cell(source.file, name, first[ROW][0])
            rule = "" if kind == pl.Int64 else f"; {NO_NUMBERS}"
            raise BadValueError(f"{where}: {first[name][0]!r} is not {what}{rule}") from None
