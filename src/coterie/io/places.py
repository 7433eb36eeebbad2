"""Where nodes are: columns of their rows that are the same in all rows of a node."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from coterie.io.errors import DuplicateError
from coterie.io.rows import Columns, find_row, scan_rows
from coterie.io.sources import engine
from coterie.problem.arrays import Array

if TYPE_CHECKING:
    import polars as pl

ID = "id"
ROUNDING = 1e-9  # relative; rows that say a node is further off than this do not agree


def read_places(path: str | PathLike[str], node: str, names: tuple[str, ...]) -> tuple[list[Hashable], Array]:
    """Return the nodes in order, and the coordinates of each, in one pass over files."""
    pl = engine()
    columns = Columns.of(path, node, features=names)
    table = None
    for rows in scan_rows(path, columns):
        once = [pl.col(name).alias(f"{what} {name}") for name in names for what in ("first", "min", "max")]
        part = rows.frame.select(pl.col(node).alias(ID), *once)
        table = _together(part if table is None else pl.concat([table, part]), names)
    assert table is not None  # else there were no rows, which is an error by now
    table = table.sort(ID)
    for name in names:
        first, low, high = (table[f"{what} {name}"].to_numpy() for what in ("first", "min", "max"))
        apart = high - low > ROUNDING * np.maximum(np.abs(first), 1.0)
        if apart.any():
            _refuse(path, columns, name, table[ID][int(apart.argmax())], float(first[apart.argmax()]))
    return table[ID].to_list(), table.select(f"first {name}" for name in names).to_numpy()


def _together(table: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """One row per node."""
    pl = engine()
    merged = [getattr(pl, what)(f"{what} {name}") for name in names for what in ("first", "min", "max")]
    return table.group_by(ID, maintain_order=True).agg(merged)


def _refuse(path: str | PathLike[str], columns: Columns, name: str, node: Hashable, first: float) -> None:
    pl = engine()
    differs = (pl.col(columns.node) == node) & ((pl.col(name) - first).abs() > ROUNDING * max(abs(first), 1.0))
    where = find_row(path, columns, differs, name)
    raise DuplicateError(f"{where}, but node {node!r} had {first!r} in an earlier row; a node is in one place")
