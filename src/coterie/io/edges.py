"""Graphs in files: a table of edges, two columns of node ids and perhaps one of weights."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING

from coterie.io.errors import BadGraphError, BadValueError, ColumnTypeError, DuplicateError
from coterie.io.sources import Source, import_polars, sources
from coterie.io.tables import first_row, place_in, read_table
from coterie.problem import EmpiricalGraph
from coterie.problem.convert import UNSAID, Measure, edge_columns

if TYPE_CHECKING:
    import polars as pl

WHOLE = "ids were asked for as whole numbers; leave that out, and they are text"


def read_graph(path: str | PathLike[str], measure: Measure = UNSAID, text_ids: bool = True) -> EmpiricalGraph:
    """Read a graph from CSV, Parquet or Arrow: as :meth:`EmpiricalGraph.from_any` does from a frame.

    Ids are text, exactly as they stand; unless `text_ids`, whole numbers. An edge may be listed twice, say once each
    way round, if both times carry the same weight.
    """
    i, j, weight = columns_of_edges(path, measure, text_ids)
    named = [i, j] if weight is None else [i, j, weight]
    edges = read_table(path, named, text=[i, j] if text_ids else [])
    check_edges(path, edges, i, j, weight, measure)
    try:
        return EmpiricalGraph.from_any(edges, weight=measure.weight, distance=measure.distance)
    except ValueError as error:
        raise BadGraphError(f"{path}: {error}") from None


def columns_of_edges(path: str | PathLike[str], measure: Measure, text_ids: bool) -> tuple[str, str, str | None]:
    """Return the columns with the two ends of edges, and with their weights if there is one."""
    first = sources(path)[0]
    names = list(first.schema)
    try:
        i, j, weight = edge_columns(names, measure)
    except ValueError as error:
        raise BadGraphError(f"{path}: {error}") from None
    for name in (i, j):
        _check_id_type(first, name, text_ids)
    return i, j, weight


def edge_frame(graph: EmpiricalGraph) -> pl.DataFrame:
    """Return the edges by id, with their weights: what :func:`read_graph` reads."""
    pl = import_polars()
    names = pl.Series(list(graph.names))
    first, second = (names.gather(graph.edges[:, end]) for end in (0, 1))
    return pl.DataFrame({"from": first, "to": second, "weight": graph.weights})


def _check_id_type(source: Source, name: str, text_ids: bool) -> None:
    """Refuse columns that cannot name nodes."""
    pl = import_polars()
    kind = source.schema[name]
    if kind.is_integer() or (text_ids and isinstance(kind, pl.String | pl.Categorical | pl.Enum)):
        return
    rule = "ids are whole numbers or text; if it holds the weights, call it 'weight'" if text_ids else WHOLE
    raise ColumnTypeError(f"{source.file}: column {name!r} names nodes, but is {kind}; {rule}")


def check_edges(
    path: str | PathLike[str],
    edges: pl.DataFrame,
    i: str,
    j: str,
    weight: str | None,
    measure: Measure,
    place: Callable[[str | PathLike[str], int, str], str] = place_in,
) -> None:
    """Refuse the first edge that cannot be one, and name its row."""
    pl = import_polars()
    for name in (i, j):
        if (at := first_row(edges, pl.col(name).is_null())) is not None:
            raise BadValueError(f"{place(path, at, name)}: there is no node id; fill or drop the row")
    if (at := first_row(edges, pl.col(i) == pl.col(j))) is not None:
        raise BadGraphError(f"{place(path, at, j)}: node {edges[j][at]!r} is joined to itself; drop the row")
    if weight is None:
        return
    if not edges.schema[weight].is_numeric():
        kind = edges.schema[weight]
        raise ColumnTypeError(f"{path}: column {weight!r} must hold numbers, but is {kind}")
    far = measure.distance is not None
    word, rule = ("distance", "finite and not negative") if far else ("weight", "positive and finite")
    fine = ((pl.col(weight) >= 0) if far else (pl.col(weight) > 0)) & pl.col(weight).is_finite()
    if (at := first_row(edges, ~fine.fill_null(False))) is not None:
        value = edges[weight][at]
        what = "is missing" if value is None else f"is {value}"
        raise BadGraphError(f"{place(path, at, weight)}: the {word} {what}; {word}s are {rule}")
    other = pl.first(weight).over(pl.min_horizontal(i, j).alias("low"), pl.max_horizontal(i, j).alias("high"))
    if (at := first_row(edges, pl.col(weight) != other)) is not None:
        before = edges.select(other)[weight][at]
        raise DuplicateError(
            f"{place(path, at, weight)}: the edge {edges[i][at]!r} – {edges[j][at]!r} has the {word} "
            f"{edges[weight][at]} here, and {before} before; keep one or add them up"
        )
