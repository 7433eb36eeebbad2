"""Tables to files: CSV, Parquet or Arrow by the name's ending, in batches, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.io.files import staged_file
from coterie.io.sources import KINDS, engine

if TYPE_CHECKING:
    import polars as pl


def write_batches(path: Path, batches: Iterator[pl.DataFrame], schema: dict[str, Any]) -> None:
    """Write frames of this schema as they come, one after the other; an error on the way leaves no file."""
    from polars.io.plugins import register_io_source

    def source(columns: Any, predicate: Any, n_rows: Any, batch_size: Any) -> Iterator[pl.DataFrame]:
        yield from batches

    kind = KINDS[path.suffix.lower()]
    with staged_file(path) as temporary:
        table: Any = register_io_source(source, schema=engine().Schema(schema))
        sink = {"CSV": table.sink_csv, "Parquet": table.sink_parquet, "Arrow": table.sink_ipc}[kind]
        sink(temporary)
