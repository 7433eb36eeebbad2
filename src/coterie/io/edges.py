"""Graphs in files: a table of edges, two columns of node ids and perhaps one of weights."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from coterie.io.errors import BadGraphError, BadValueError, ColumnTypeError, DuplicateError
from coterie.io.sources import import_polars
from coterie.io.tables import first_row, place_in, read_table
from coterie.problem import EmpiricalGraph
from coterie.problem.convert import edge_columns

if TYPE_CHECKING:
    import polars as pl


def read_graph(path: str | PathLike[str]) -> EmpiricalGraph:
    """Read a graph from CSV, Parquet or Arrow: as :meth:`EmpiricalGraph.from_any` does from a frame.

    An edge may be listed twice, say once each way round, if both times carry the same weight.
    """
    edges = read_table(path)
    try:
        i, j, weight = edge_columns(edges)
    except ValueError as error:
        raise BadGraphError(f"{path}: {error}") from None
    edges = _with_ids_of_one_type(edges, path, i, j)
    _check(path, edges, i, j, weight)
    return EmpiricalGraph.from_any(edges)


def edge_frame(graph: EmpiricalGraph) -> pl.DataFrame:
    """Return the edges by id, with their weights: what :func:`read_graph` reads."""
    pl = import_polars()
    names = pl.Series(list(graph.names))
    first, second = (names.gather(graph.edges[:, end]) for end in (0, 1))
    return pl.DataFrame({"from": first, "to": second, "weight": graph.weights})


def _with_ids_of_one_type(edges: pl.DataFrame, path: str | PathLike[str], i: str, j: str) -> pl.DataFrame:
    """Return the edges with both ends as whole numbers, or, where one is text, both as text."""
    pl = import_polars()
    for name in (i, j):
        kind = edges.schema[name]
        if not (kind.is_integer() or isinstance(kind, pl.String | pl.Categorical | pl.Enum)):
            rule = "ids are whole numbers or text; if it holds the weights, call it 'weight'"
            raise ColumnTypeError(f"{path}: column {name!r} names nodes, but is {kind}; {rule}")
    if edges.schema[i].is_integer() and edges.schema[j].is_integer():
        return edges
    return edges.with_columns(pl.col(i, j).cast(pl.String))


def _check(path: str | PathLike[str], edges: pl.DataFrame, i: str, j: str, weight: str | None) -> None:
    """Refuse the first edge that cannot be one, and name its row."""
    pl = import_polars()
    for name in (i, j):
        if (at := first_row(edges, pl.col(name).is_null())) is not None:
            raise BadValueError(f"{place_in(path, at, name)}: there is no node id; fill or drop the row")
    if (at := first_row(edges, pl.col(i) == pl.col(j))) is not None:
        raise BadGraphError(f"{place_in(path, at, j)}: node {edges[j][at]!r} is joined to itself; drop the row")
    if weight is None:
        return
    if not edges.schema[weight].is_numeric():
        kind = edges.schema[weight]
        raise ColumnTypeError(f"{path}: column {weight!r} beside the nodes must hold weights, but is {kind}; drop it")
    fine = (pl.col(weight) > 0) & pl.col(weight).is_finite()
    if (at := first_row(edges, ~fine.fill_null(False))) is not None:
        value = edges[weight][at]
        what = "is missing" if value is None else f"is {value}"
        raise BadGraphError(f"{place_in(path, at, weight)}: the weight {what}; weights are positive and finite")
    other = pl.first(weight).over(pl.min_horizontal(i, j).alias("low"), pl.max_horizontal(i, j).alias("high"))
    if (at := first_row(edges, pl.col(weight) != other)) is not None:
        before = edges.select(other)[weight][at]
        raise DuplicateError(
            f"{place_in(path, at, weight)}: the edge {edges[i][at]!r} – {edges[j][at]!r} has the weight "
            f"{edges[weight][at]} here, and {before} before; keep one or add them up"
        )
