"""Nodes of the data that are not in the graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from os import PathLike

from coterie.io.errors import UnknownNodeError
from coterie.io.rows import Columns, Rows, find_row, place_of
from coterie.io.sources import engine
from coterie.problem import EmpiricalGraph
from coterie.problem.ids import some_of


class KnownNodes:
    """The nodes of a graph, to check data against."""

    def __init__(self, graph: EmpiricalGraph) -> None:
        self.graph = graph
        self._known = frozenset(graph.names)

    def check_all(self, ids: Iterable[Hashable], path: str | PathLike[str], columns: Columns) -> None:
        """Refuse ids that files hold and the graph does not; the files are read again to name the first row."""
        if unknown := [name for name in ids if name not in self._known]:
            where = find_row(path, columns, engine().col(columns.node).is_in(unknown), columns.node)
            raise self._refused(where, unknown)

    def check_rows(self, rows: Rows, columns: Columns) -> None:
        """Refuse rows of a node that is not in the graph."""
        ids = rows.frame[columns.node]
        if unknown := [name for name in ids.unique(maintain_order=True) if name not in self._known]:
            place = int(ids.is_in(unknown).arg_max() or 0)
            raise self._refused(place_of(rows, columns.node, place), unknown)

    def _refused(self, where: str, unknown: list[Hashable]) -> UnknownNodeError:
        several = f" (nor are others: {some_of(unknown)})" if len(unknown) > 1 else ""
        known = f"its {self.graph.n_nodes} nodes are {some_of(self.graph.names, 3)}"
        return UnknownNodeError(f"{where} is not a node of the graph{several}; {known}")
