"""Columns that a command passes on from its input to its output."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

from coterie.cli.errors import BadInputError

if TYPE_CHECKING:
    import polars as pl


class KeptColumns:
    """All columns of a table, as they stand, read in step with rows that are read elsewhere.

    Those of CSV files are text, so that nothing in them changes.
    """

    def __init__(self, path: PathLike[str]) -> None:
        from coterie.io.sources import import_polars, sources

        self._pl, self._files = import_polars(), sources(path)
        first = self._files[0]
        self.schema: dict[str, Any] = {
            name: self._pl.String if first.kind == "CSV" else kind for name, kind in first.schema.items()
        }
        self._batches, self._rest = self._read(), self._pl.DataFrame(schema=self.schema)

    def refuse(self, names: list[str]) -> None:
        """Refuse columns that are called like what is written beside them."""
        for name in names:
            if name in self.schema:
                raise BadInputError(f"--keep: DATA has a column {name!r} already; rename it, or do without --keep")

    def take(self, n: int) -> pl.DataFrame:
        """The next n rows."""
        while len(self._rest) < n and (batch := next(self._batches, None)) is not None:
            self._rest = self._pl.concat([self._rest, batch])
        rows, self._rest = self._rest.head(n), self._rest.slice(n)
        return rows

    def _read(self) -> Iterator[pl.DataFrame]:
        for source in self._files:
            source.require(self.schema)
            rows = source.scan(self.schema if source.kind == "CSV" else None)
            with source.reading():
                as_first = (self._pl.col(name).cast(kind) for name, kind in self.schema.items())
                yield from rows.select(as_first).collect_batches(lazy=True)
