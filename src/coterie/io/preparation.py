"""What is made of columns before they are features: levels become columns of 0 and 1, gaps are filled or dropped.

It is learnt from the files of a fit and kept in the model, so that predictions do the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from coterie.io.errors import BadValueError, DataError
from coterie.io.rows import Columns, Rows, scan_rows
from coterie.io.sources import Source, import_polars, sources
from coterie.io.values import levels_text, numbers_in

if TYPE_CHECKING:
    import polars as pl

MISSING = ("mean", "drop")
DIGITS = 12  # of a mean that are kept: in which order threads add up does not show in them


@dataclass(frozen=True)
class Preparation:
    """How columns of files become features.

    Attributes
    ----------
    columns : tuple of str
        What is read.
    levels : mapping of str to tuple of str
        Columns whose values are levels. Each level is a feature, 1 in its rows and 0 in others, but for the first,
        which the intercept stands for.
    missing : "mean", "drop" or None
        What becomes of gaps among the features: the mean of the column, or nothing of the row. None: they are refused.
    means : mapping of str to float
        What gaps are filled with.
    """

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: str | None = None
    means: Mapping[str, float] = field(default_factory=dict)

    @property
    def features(self) -> dict[str, str]:
        """The names of the features, and the column that each is made of."""
        return {
            feature: name
            for name in self.columns
            for feature in ([f"{name}={level}" for level in self.levels[name][1:]] if name in self.levels else [name])
        }

    def expressions(self, source: Source) -> list[pl.Expr]:
        """Return the features; gaps that are not filled are null."""
        pl, made = import_polars(), []
        for feature, name in self.features.items():
            if name in self.levels:
                is_it: dict[str | None, float | None] = {
                    level: float(feature == f"{name}={level}") for level in self.levels[name]
                }
                column = levels_text(name).replace_strict({**is_it, None: None}, return_dtype=pl.Float64)
            else:
                column = numbers_in(source, name)
            if self.missing is not None:
                column = column.fill_nan(None)
            made.append((column.fill_null(self.means[feature]) if feature in self.means else column).alias(feature))
        return made

    def gaps(self, source: Source) -> list[pl.Expr]:
        """Return, for each column, where it has a gap."""
        texts = {name: levels_text(name) for name in self.levels}
        found = [texts[name] if name in texts else numbers_in(source, name).fill_nan(None) for name in self.columns]
        return [column.is_null().alias(name) for name, column in zip(self.columns, found, strict=True)]


@dataclass(frozen=True)
class Gaps:
    """What was missing in the files of a fit: by column, and in how many rows of all."""

    by_column: Mapping[str, int]
    rows: int
    of: int

    def in_words(self, missing: str) -> str:
        """Return a sentence on what became of them; none where there were none."""
        listed = ", ".join(f"{name} {count:,}" for name, count in self.by_column.items() if count)
        if not listed:
            return ""
        if missing == "drop":
            return f"{self.rows:,} of {self.of:,} rows are left out, because values are missing ({listed})"
        total = sum(self.by_column.values())
        return f"{total:,} missing values are filled with the means of their columns ({listed})"


class Reader:
    """Who reads the files of a fit: this process reads all of them."""

    def texts(self, path: str | PathLike[str], name: str) -> set[str]:
        """The different values of a column, as text."""
        return {text for source in sources(path) for text in texts_in(source, name)}

    def rows(self, path: str | PathLike[str], columns: Columns) -> Iterator[Rows]:
        """All rows, in batches."""
        return scan_rows(path, columns)

    def added(self, numbers: Sequence[float]) -> Sequence[float]:
        """Sums over all who read."""
        return numbers


def prepare(
    path: str | PathLike[str],
    columns: Columns,
    one_hot: Sequence[str] = (),
    missing: str | None = None,
    reader: Reader | None = None,
) -> tuple[Columns, Gaps | None]:
    """Learn what is made of columns, in one pass for levels and one for gaps; and what was missing."""
    reader = reader or Reader()
    if missing not in (None, *MISSING):
        raise ValueError(f'missing is "mean", "drop" or None, not {missing!r}')
    if not one_hot and missing is None:
        return columns, None
    sources(path)[0].require(one_hot)
    if unknown := [name for name in one_hot if name not in columns.features]:
        raise DataError(f"{path}: column {unknown[0]!r} is to be one-hot, but is no feature: add it to the features")
    levels = {name: _levels(path, name, reader) for name in one_hot}
    made = Preparation(columns.features, levels, "drop" if missing else None)
    if len(made.features) < sum(len(known) - 1 for known in levels.values()) + len(columns.features) - len(levels):
        raise DataError(f"{path}: a column has the name of a feature that --one-hot makes; rename it")
    if missing is None:
        return columns.prepared(made), None
    means, gaps = _means_and_gaps(path, replace(columns, target=None, text_labels=False).prepared(made), reader)
    made = replace(made, missing=missing, means=means if missing == "mean" else {})
    return columns.prepared(made), gaps


def texts_in(source: Source, name: str) -> list[str]:
    """The different values of a column of one file, as text."""
    source.require([name])
    with source.reading():
        query = source.scan({name: import_polars().String}).select(levels_text(name))
        return query.unique().collect(engine="streaming")[name].drop_nulls().to_list()


def _levels(path: str | PathLike[str], name: str, reader: Reader) -> tuple[str, ...]:
    """The values of a column, in order."""
    found = reader.texts(path, name)
    if len(found) < 2:
        raise BadValueError(f"{path}: column {name!r} has {len(found)} level; there is nothing to tell apart")
    return tuple(sorted(found))


def _means_and_gaps(path: str | PathLike[str], columns: Columns, reader: Reader) -> tuple[dict[str, float], Gaps]:
    assert columns.made is not None
    names, read = columns.features, columns.made.columns
    sums, counts, lacks = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(read))
    rows = of = 0
    for part in reader.rows(path, columns):
        assert part.gaps is not None
        rows, of = rows + len(part.frame) - len(part.whole), of + len(part.frame)
        lacks += part.gaps.select(read).sum().row(0)
        for k, column in enumerate(part.frame.select(names)):
            sums[k] += float(column.sum())
            counts[k] += len(column) - column.null_count()
    total = np.array(reader.added([*sums, *counts, *lacks, rows, of]))
    sums, counts, lacks, of_all = np.split(total, np.cumsum([len(names), len(names), len(read)]))
    if empty := [name for name, count in zip(names, counts, strict=True) if not count]:
        raise BadValueError(f"{path}: column {columns.column_of(empty[0])!r} is empty in every row; leave it out")
    means = {name: float(f"{mean:.{DIGITS}g}") for name, mean in zip(names, sums / counts, strict=True)}
    by_column = {name: round(count) for name, count in zip(read, lacks.tolist(), strict=True)}
    return means, Gaps(by_column, *map(round, of_all.tolist()))
