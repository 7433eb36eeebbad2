"""Ordinary tables: read whole, counted, and what they would need in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from coterie.io.errors import ColumnTypeError, EmptyDataError, TooLargeError
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


def first_row(table: pl.DataFrame, wrong: pl.Expr) -> int | None:
    """Return the first row for which `wrong` holds, counted from 0."""
    found = table.select(wrong.alias("wrong"))["wrong"]
    return found.arg_max() if found.any() else None


def place_in(path: str | PathLike[str], row: int, name: str) -> str:
    """Return file, column and row, for a message: rows of the files are counted from 1, each file by itself."""
    for source in sources(path):
        rows = count_rows(source.file)
        if row < rows:
            return f"{source.file}: column {name!r}, row {row + 1}"
        row -= rows
    raise ValueError(f"{path} has changed while it was read")


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


def memory_available() -> int:
    """Return how many bytes this process may still take, as far as the system says; all there are where it does not."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if hasattr(os, "sysconf") else []
    found += [1024 * kilobytes for kilobytes in _numbers("/proc/meminfo", "MemAvailable:")]
    control = "/sys/fs/cgroup"
    found += [
        most - used for most in _numbers(f"{control}/memory.max") for used in _numbers(f"{control}/memory.current")
    ]
    return max(min(found, default=1 << 62), 0)


def _numbers(file: str, after: str = "") -> list[int]:
    """The whole number that a file of the system holds, after this word; none where there is no such thing."""
    try:
        words = Path(file).read_text(encoding="ascii").split()
        return [int(words[words.index(after) + 1 if after else 0])]
    except (OSError, ValueError, IndexError):
        return []


def require_memory(needed: int, path: str | PathLike[str]) -> None:
    """Refuse rows that would not fit."""
    there = memory_available()
    if needed > there:
        raise TooLargeError(
            f"{path}: its rows have to be in memory for this, which takes about {in_words(needed)}, and "
            f"{in_words(there)} are available; take fewer rows or columns"
        )


def in_words(n_bytes: int) -> str:
    """Write a number of bytes for people."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 5e7 else f"{max(n_bytes / 1e6, 0.1):.1f} MB"
