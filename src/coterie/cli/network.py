"""--graph and --knn: where the network comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coterie.cli.errors import BadInputError
from coterie.io.errors import BadGraphError, UnreadableFileError

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel
    from coterie.io.formats import Table, TextFormat
    from coterie.problem import EmpiricalGraph
    from coterie.problem.convert import Measure


def split_names(text: str) -> list[str]:
    """The columns that an option lists."""
    return [name.strip() for name in text.split(",")]


def text_format(separator: str | None, decimal: str, encoding: str) -> TextFormat:
    """What options say of text files."""
    from coterie.io.formats import TextFormat

    try:
        return TextFormat(separator, decimal, encoding)
    except ValueError as error:
        raise BadInputError(f"--separator, --decimal, --encoding: {error}") from None


def edge_table(graph: Path, data: Table) -> Table:
    """The file of the edges: written like DATA if its header is, else as `coterie graph` writes it."""
    from coterie.io.formats import Table
    from coterie.io.sources import sources

    alike = Table(graph, replace(data.text, separator=data.text.separator_of(data.path)))
    try:
        return alike if all(source.is_separated for source in sources(alike)) else Table(graph)
    except UnreadableFileError:  # the letters are others
        return Table(graph)


@dataclass(frozen=True)
class Knn:
    """Join every node to its k nearest by these columns. Latitude and longitude, by their names, lie on the Earth."""

    names: tuple[str, ...]
    k: int

    @classmethod
    def parse(cls, text: str) -> Knn:
        from coterie.graphs.knn import latitude_and_longitude

        columns, colon, k = text.rpartition(":")
        names = tuple(split_names(columns))
        if not colon or not k.strip().isdecimal() or int(k) < 1 or not all(names):
            raise BadInputError(f"--knn {text}: give columns and a number of neighbours, such as lat,lon:5")
        if len(names) == 2 and latitude_and_longitude(names) == (1, 0):
            names = names[::-1]
        return cls(names, int(k))

    @property
    def metric(self) -> str:
        """Great circles between places on the Earth, else straight lines."""
        from coterie.graphs.knn import latitude_and_longitude

        on_earth = len(self.names) == 2 and latitude_and_longitude(self.names) == (0, 1)
        return "haversine" if on_earth else "euclidean"


@dataclass(frozen=True, eq=False)
class Network:
    """A graph, and where its nodes are if that is known: a note for the report."""

    graph: EmpiricalGraph
    coordinates: dict[str, Any] | None = None


def read_network(
    data: PathLike[str],
    node: str,
    graph: PathLike[str] | None,
    knn: Knn | None,
    measure: Measure,
    text_ids: bool = True,
) -> Network:
    """Read the edges, or join the nodes of the data to their nearest."""
    if knn is None:
        from coterie.io.edges import read_graph

        assert graph is not None
        return Network(read_graph(graph, measure, text_ids))
    from coterie.graphs import knn_graph
    from coterie.io.nodes import read_coordinates

    ids, places = read_coordinates(data, node, knn.names, text_ids)
    try:
        found = knn_graph(places, knn.k, metric=knn.metric, ids=ids)
    except ValueError as error:
        raise BadGraphError(f"{data}: columns {', '.join(map(repr, knn.names))}: {error}") from None
    note = {"names": list(knn.names), "values": places.tolist()} if len(knn.names) == 2 else None
    return Network(found, note)


def place_column(node: str, time: str | None, strength: float | None, over: str, shared: bool) -> str:
    """The column of --node that names places; without --time, the only one."""
    from coterie.problem.arrays import LARGEST

    names = split_names(node)
    if time is None:
        if len(names) > 1:
            raise BadInputError(f"--node {node}: say with --time which of these columns holds the times")
        if strength is not None or over in ("places", "times", "blocks"):
            what = f"--over {over}" if strength is None else "--time-strength"
            raise BadInputError(f"{what} is for places at times; name the column of the times with --time")
        return node
    places = [name for name in names if name != time]
    if len(places) != 1 or len(names) > 2:
        raise BadInputError(f"--node {node} --time {time}: give two columns, of places and of times, as place,{time}")
    if shared:
        raise BadInputError("--shared is for nodes of one graph, and --time makes two; leave one of them out")
    if strength is not None and not 0 < strength <= LARGEST:
        raise BadInputError(
            f"--time-strength {strength:g}: give a positive number, {LARGEST:g} at most; 0 would leave times apart"
        )
    return places[0]


def in_time(model: NetworkedModel, space: EmpiricalGraph, times: list[Any], strength: float | None) -> dict[str, Any]:
    """The parameters of a model of places at times."""
    from coterie.graphs import time_graph

    parameters: dict[str, Any] = {"graph": (space, time_graph(times))}
    if strength is None:
        return parameters
    choosing = "time_strengths" in model.get_params(deep=False)
    return parameters | ({"time_strengths": [strength]} if choosing else {"time_strength": strength})


def check_choice(graph: Path | None, knn: str | None, weight: str | None, distance: str | None) -> Knn | None:
    """Refuse both and neither; return what --knn says."""
    if graph is None and (weight is not None or distance is not None):
        raise BadInputError("--weight and --distance name columns of --graph, which is not given")
    if weight is not None and distance is not None:
        raise BadInputError("give --weight or --distance, not both")
    if (graph is None) == (knn is None):
        raise BadInputError("give either --graph, a file of edges, or --knn, such as lat,lon:5")
    return None if knn is None else Knn.parse(knn)
