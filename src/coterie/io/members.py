"""Which cluster each node belongs to, and which nodes are labelled, as a table says."""

from __future__ import annotations

from collections.abc import Hashable
from os import PathLike
from typing import NamedTuple

from coterie.io.errors import BadValueError, DuplicateError, UnknownNodeError
from coterie.io.sources import engine
from coterie.io.tables import first_row, place_in, read_table
from coterie.problem import EmpiricalGraph
from coterie.problem.ids import are_text


class Members(NamedTuple):
    """The cluster of each node, and the nodes with a label."""

    cluster_of: dict[Hashable, Hashable]
    labelled: list[Hashable]


def read_members(path: str | PathLike[str], node: str, cluster: str, target: str, graph: EmpiricalGraph) -> Members:
    """Read the clusters of the nodes of a graph; a node with some rows whose target is not empty is labelled.

    Parameters
    ----------
    path : str or path
        CSV, Parquet or Arrow: one row per node, or many that agree on its cluster.
    node, cluster, target : str
        Columns.
    """
    pl = engine()
    table = read_table(path, [node, cluster, target])
    if are_text(graph.names):
        table = table.with_columns(pl.col(node).cast(pl.String))
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
    return Members(dict(zip(table[node].to_list(), table[cluster].to_list(), strict=True)), labelled)
