"""Ordinary tables: read whole, counted, written in batches, and where a row of them stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.io.errors import ColumnTypeError, EmptyDataError
from coterie.io.files import staged_file
from coterie.io.formats import KINDS, TextFormat
from coterie.io.sources import Source, cell, import_polars, sources
from coterie.kernels.interruption import interruptible, is_pressed

if TYPE_CHECKING:
    import polars as pl


def read_table(
    path: str | PathLike[str], columns: Sequence[str] | None = None, text: Sequence[str] = ()
) -> pl.DataFrame:
    """Return a table as it is: all columns, or these; `text` names those that are text, exactly as it stands.

    Several files become one table; they have the same columns, of types that fit together.
    """
    pl = import_polars()
    files = sources(path)
    names = list(files[0].schema) if columns is None else list(columns)
    frames = []
    for source in files:
        source.require(names)
        source.check_lengths()
        _check_types(source, files[0], [name for name in names if name not in text])
        with source.reading():
            as_text = dict.fromkeys(text, pl.String)
            frames.append(source.scan(as_text).select(names).cast(as_text).collect())
    table = pl.concat(frames, how="vertical_relaxed")
    if table.is_empty():
        raise EmptyDataError(f"{path}: there are no rows")
    return table


def _check_types(source: Source, first: Source, names: Sequence[str]) -> None:
    """Refuse a file with a column of another type than in the first, unless both hold numbers."""
    for name in names:
        here, before = source.schema[name], first.schema[name]
        if here != before and not (here.is_numeric() and before.is_numeric()):
            raise ColumnTypeError(f"{source.file}: column {name!r} is {here} here, but {before} in {first.file}")


def first_row(table: pl.DataFrame, wrong: pl.Expr) -> int | None:
    """Return the first row for which `wrong` holds, counted from 0."""
    found = table.select(wrong.alias("wrong"))["wrong"]
    return found.arg_max() if found.any() else None


def place_in(path: str | PathLike[str], row: int, name: str) -> str:
    """Return file, column and row, for a message: rows of the files are counted from 1, each file by itself."""
    for source in sources(path):
        rows = _length(source)
        if row < rows:
            return cell(source.file, name, row + 1)
        row -= rows
    raise ValueError(f"{path} has changed while it was read")


def count_rows(path: str | PathLike[str]) -> int:
    """Count rows; quick but for CSV, which has to be read through."""
    return sum(map(_length, sources(path)))


def _length(source: Source) -> int:
    with source.reading():
        return source.scan().select(import_polars().len()).collect(engine="streaming").item()


def write_batches(path: Path, batches: Iterator[pl.DataFrame], schema: dict[str, Any]) -> None:
    """Write frames of this schema as they come, one after the other; an error on the way leaves no file.

    The ending of the name says what is written: CSV (with tabs in .tsv), Parquet or Arrow.
    """
    from polars.io.plugins import register_io_source

    failed: list[BaseException] = []

    def source(columns: Any, predicate: Any, n_rows: Any, batch_size: Any) -> Iterator[pl.DataFrame]:
        try:
            yield from takewhile(lambda frame: not is_pressed(), batches)
        except BaseException as error:
            failed.append(error)
            raise

    kind = KINDS[path.suffix.lower()]
    with staged_file(path) as temporary:
        table: Any = register_io_source(source, schema=import_polars().Schema(schema))
        sink = {"CSV": table.sink_csv, "Parquet": table.sink_parquet, "Arrow": table.sink_ipc}[kind]
        options = {"separator": TextFormat().separator_of(path)} if kind == "CSV" else {}
        try:
            # A query that writes panics when it is interrupted: this thread notes Ctrl-C, and no further batch comes.
            # It wakes to do so: a signal that another thread receives does not end its waiting.
            with interruptible(), ThreadPoolExecutor(1) as other:
                query = other.submit(sink, temporary, **options)
                while wait([query], timeout=0.05).not_done:
                    pass
                query.result()
        except import_polars().exceptions.ComputeError:
            if failed:  # some versions of Polars wrap the error of a source in their own
                raise failed[0] from None
            raise
