"""Where nodes are: columns of their rows that are the same in all rows of a node."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike

import numpy as np

from coterie.io.errors import DuplicateError
from coterie.io.rows import Columns, find_row, scan_rows
from coterie.io.sources import engine
from coterie.problem.arrays import Array

ROUNDING = 1e-9  # relative; rows that say a node is further off than this do not agree


def read_places(path: str | PathLike[str], node: str, names: tuple[str, ...]) -> tuple[list[Hashable], Array]:
    """Return the nodes in order, and the coordinates of each, in one pass over files."""
    pl = engine()
    columns = Columns.of(path, node, features=names)
    ends = [
        one for k, name in enumerate(names) for one in (pl.min(name).alias(f"{k}min"), pl.max(name).alias(f"{k}max"))
    ]
    firsts = [pl.first(name).alias(f"{k}first") for k, name in enumerate(names)]
    parts = [rows.frame.group_by(node, maintain_order=True).agg(*firsts, *ends) for rows in scan_rows(path, columns)]
    again = [pl.first("^.*first$"), pl.min("^.*min$"), pl.max("^.*max$")]
    table = pl.concat(parts).group_by(node, maintain_order=True).agg(*again).sort(node)
    for k, name in enumerate(names):
        first, low, high = (table[f"{k}{what}"].to_numpy() for what in ("first", "min", "max"))
        apart = high - low > ROUNDING * np.maximum(np.abs(first), 1.0)
        if apart.any():
            _refuse(path, columns, name, table[node][int(apart.argmax())], float(first[apart.argmax()]))
    return table[node].to_list(), table.select("^.*first$").to_numpy()


def _refuse(path: str | PathLike[str], columns: Columns, name: str, node: Hashable, first: float) -> None:
    pl = engine()
    differs = (pl.col(columns.node) == node) & ((pl.col(name) - first).abs() > ROUNDING * max(abs(first), 1.0))
    where = find_row(path, columns, differs, name)
    raise DuplicateError(f"{where}, but node {node!r} had {first!r} in an earlier row; a node is in one place")
