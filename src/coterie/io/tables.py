"""Ordinary tables: read whole, counted, and what they would need in memory."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from coterie.io.errors import ColumnTypeError, EmptyDataError
from coterie.io.sources import Source, engine, sources

if TYPE_CHECKING:
    import polars as pl

COPIES = 6  # of all numbers at the peak: the frame, the arrays, sorted, labelled, and by size (measured: 5.3)


def read_table(path: str | PathLike[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a table as it is: all columns, or these.

    Several files become one table; they have the same columns, of types that fit together.
    """
    pl = engine()
    files = sources(path)
    names = list(files[0].schema) if columns is None else list(columns)
    frames = []
    for source in files:
        source.require(names)
        _check_types(source, files[0], names)
        with source.reading():
            frames.append(source.scan().select(names).collect())
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


def count_rows(path: str | PathLike[str]) -> int:
    """Count rows; quick but for CSV, which has to be read through."""
    total = 0
    for source in sources(path):
        with source.reading():
            total += source.scan().select(engine().len()).collect(engine="streaming").item()
    return total


def memory_needed(path: str | PathLike[str], n_features: int) -> int:
    """Return about how many bytes a fit takes that needs its rows in memory, as logistic regression does."""
    return COPIES * count_rows(path) * (n_features + 2) * 8
