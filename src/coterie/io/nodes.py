"""What tables say of nodes: where they are, which cluster each belongs to, and which are not in the graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.io.errors import BadValueError, DuplicateError, UnknownNodeError
from coterie.io.rows import Columns, Rows, find_row, place_of, scan_rows
from coterie.io.sources import import_polars
from coterie.io.tables import first_row, place_in, read_table
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.ids import Pairs, are_text, some_of

if TYPE_CHECKING:
    import polars as pl

ID = "id"
SAME_PLACE = 1e-9  # relative; rows that say a node is further off than this do not agree


class KnownNodes:
    """The nodes of a graph, to check data against."""

    def __init__(self, graph: EmpiricalGraph) -> None:
        self.graph = graph
        self._pairs = graph.ids if isinstance(graph.ids, Pairs) else None
        self._names = graph.names if self._pairs is None else self._pairs.first
        self._known = frozenset(self._names)

    def check_all(self, ids: Iterable[Hashable], path: str | PathLike[str], columns: Columns) -> None:
        """Refuse ids that files hold and the graph does not; the files are read again to name the first row."""
        if unknown := [name for name in ids if name not in self._known]:
            where = find_row(path, columns, import_polars().col(columns.node).is_in(unknown), columns.node)
            raise self._refused(where, unknown)

    def check_rows(self, rows: Rows, columns: Columns) -> None:
        """Refuse rows of a node that is not in the graph."""
        ids = rows.frame[columns.node]
        if unknown := [name for name in ids.unique(maintain_order=True) if name not in self._known]:
            place = int(ids.is_in(unknown).arg_max() or 0)
            raise self._refused(place_of(rows, columns.node, place), unknown)
        if self._pairs is not None and columns.times is not None:
            self._check_times(rows, columns.times.name, self._pairs.second)

    def count_unknown(self, rows: Rows, columns: Columns) -> int:
        """How many rows are of nodes that are not in the graph."""
        return sum(name not in self._known for name in rows.frame[columns.node])

    def _check_times(self, rows: Rows, name: str, times: Sequence[Any]) -> None:
        """Refuse times that are not known and do not come after the last."""
        here, last = rows.frame[name], times[-1]
        if early := [time for time in here.unique(maintain_order=True) if time <= last and time not in times]:
            where = place_of(rows, name, int((here == early[0]).arg_max() or 0))
            raise UnknownNodeError(
                f"{where} is not among the {len(times)} times of the model, {some_of(times, 3)}, nor after the last"
            )

    def _refused(self, where: str, unknown: list[Hashable]) -> UnknownNodeError:
        several = f" (nor are others: {some_of(unknown)})" if len(unknown) > 1 else ""
        known = f"its {len(self._names)} {'nodes' if self._pairs is None else 'places'} are {some_of(self._names, 3)}"
        return UnknownNodeError(f"{where} is not a node of the graph{several}; {known}")


def read_coordinates(
    path: str | PathLike[str], node: str, names: tuple[str, ...], text_ids: bool = True
) -> tuple[list[Hashable], Array]:
    """Return the nodes in order, and the coordinates of each, in one pass over files.

    Coordinates are columns that are the same in all rows of a node.
    """
    pl = import_polars()
    columns = Columns.of(path, node, features=names, text_ids=text_ids)
    table = None
    for rows in scan_rows(path, columns):
        once = [pl.col(name).alias(f"{what} {name}") for name in names for what in ("first", "min", "max")]
        part = rows.frame.select(pl.col(node).alias(ID), *once)
        table = _one_row_per_node(part if table is None else pl.concat([table, part]), names)
    assert table is not None  # else there were no rows, which is an error by now
    table = table.sort(ID)
    for name in names:
        first, low, high = (table[f"{what} {name}"].to_numpy() for what in ("first", "min", "max"))
        apart = high - low > SAME_PLACE * np.maximum(np.abs(first), 1.0)
        if apart.any():
            _refuse_second_place(path, columns, name, table[ID][int(apart.argmax())], float(first[apart.argmax()]))
    return table[ID].to_list(), table.select(f"first {name}" for name in names).to_numpy()


def _one_row_per_node(table: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """One row per node."""
    pl = import_polars()
    merged = [getattr(pl, what)(f"{what} {name}") for name in names for what in ("first", "min", "max")]
    return table.group_by(ID, maintain_order=True).agg(merged)


def _refuse_second_place(path: str | PathLike[str], columns: Columns, name: str, node: Hashable, first: float) -> None:
    pl = import_polars()
    differs = (pl.col(columns.node) == node) & ((pl.col(name) - first).abs() > SAME_PLACE * max(abs(first), 1.0))
    where = find_row(path, columns, differs, name)
    raise DuplicateError(
        f"{where}, but node {node!r} had {first!r} in an earlier row; a node is in one place: "
        "give all its rows the same coordinates, such as their means"
    )


class ClusterTable(NamedTuple):
    """The cluster of each node, and the nodes with a label."""

    cluster_of: dict[Hashable, Hashable]
    labelled: list[Hashable]


def read_cluster_table(
    path: str | PathLike[str], node: str, cluster: str, target: str, graph: EmpiricalGraph
) -> ClusterTable:
    """Read the clusters of the nodes of a graph; a node with some rows whose target is not empty is labelled.

    Parameters
    ----------
    path : str or path
        CSV, Parquet or Arrow: one row per node, or many that agree on its cluster.
    node, cluster, target : str
        Columns.
    """
    pl = import_polars()
    table = read_table(path, [node, cluster, target], text=[node] if are_text(graph.names) else [])
    for name in (node, cluster):
        if (row := first_row(table, pl.col(name).is_null())) is not None:
            raise BadValueError(f"{place_in(path, row, name)}: the value is missing; fill or drop the row")
    known = set(graph.names)
    if unknown := [name for name in table[node].unique(maintain_order=True) if name not in known]:
        row = first_row(table, pl.col(node) == unknown[0]) or 0
        raise UnknownNodeError(f"{place_in(path, row, node)}: {unknown[0]!r} is not a node of the graph")
    before = pl.first(cluster).over(node)
    if (row := first_row(table, pl.col(cluster) != before)) is not None:
        name, here, first = table[node][row], table[cluster][row], table.select(before)[cluster][row]
        where = place_in(path, row, cluster)
        raise DuplicateError(f"{where}: node {name!r} is in cluster {here!r} here, and in {first!r} before")
    there = pl.col(target).is_not_null()
    if table.schema[target].is_float():
        there &= pl.col(target).is_not_nan()
    labelled = table.filter(there)[node].unique(maintain_order=True).to_list()
    return ClusterTable(dict(zip(table[node].to_list(), table[cluster].to_list(), strict=True)), labelled)
