"""coterie resolve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, plain_errors
from coterie.cli.network import edge_table, text_format
from coterie.cli.options import (
    DecimalOption,
    DistanceOption,
    EncodingOption,
    JsonOption,
    SeparatorOption,
    WeightOption,
)

if TYPE_CHECKING:
    from coterie.graphs import Resolvability
    from coterie.io.formats import Table

HEADER = ("cluster", "nodes", "labelled", "boundary", "margin", "resolved", "label next")
MOST_ROWS = 20


def resolve(
    source: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder of a model; or, with --graph, a table of nodes.")
    ],
    graph: Annotated[Path | None, typer.Option(help="Edges, as for `coterie fit`.", show_default=False)] = None,
    node: Annotated[str | None, typer.Option(help="With --graph: the column of the nodes.")] = None,
    cluster: Annotated[str | None, typer.Option(help="With --graph: the column of their clusters.")] = None,
    target: Annotated[
        str | None, typer.Option(help="With --graph: a node is labelled if this column is not empty in all its rows.")
    ] = None,
    weight: Annotated[str | None, WeightOption] = None,
    distance: Annotated[str | None, DistanceOption] = None,
    separator: Annotated[str | None, SeparatorOption] = None,
    decimal: Annotated[str, DecimalOption] = ".",
    encoding: Annotated[str, EncodingOption] = "utf-8",
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Can the labels hold the clusters apart? And which node should be labelled next?

    For the clusters that a model has found; or, before anything is fitted, for clusters that a table names. A cluster
    with a margin above 1 is recovered from labels without noise; 2, the most, leaves room for noise.
    """
    with plain_errors():
        if graph is None:
            from coterie.estimators import load
            from coterie.graphs import resolvability
            from coterie.io.errors import ModelFileError

            model = load(source)
            if (model.n_labelled_ < 0).any():
                raise ModelFileError(f"{source}: only the sites of a federation know which nodes have labels")
            found = resolvability(model.graph_, model.n_labelled_ > 0, model.clusters_)
        elif node is None or cluster is None or target is None:
            raise BadInputError("--graph needs --node, --cluster and --target too")
        else:
            from coterie.io.formats import Table

            table = Table(source, text_format(separator, decimal, encoding))
            found = _of_table(table, edge_table(graph, table), (weight, distance), node, cluster, target)
        _show(found, json)


def _of_table(
    source: Table, graph: Table, measure: tuple[str | None, str | None], node: str, cluster: str, target: str
) -> Resolvability:
    from coterie.graphs import resolvability
    from coterie.io.edges import read_graph
    from coterie.io.errors import DataError
    from coterie.io.nodes import read_cluster_table
    from coterie.problem.convert import Measure

    network = read_graph(graph, Measure(*measure))
    table = read_cluster_table(source, node, cluster, target, network)
    try:
        return resolvability(network, table.labelled, table.cluster_of)
    except ValueError as error:
        raise DataError(f"{source}: {error}") from None


def _show(found: Resolvability, json: bool) -> None:
    from coterie.cli.describe import plain_id
    from coterie.cli.screen import show_json, show_table
    from coterie.report.text import called

    resolved, next_ = sum(one.resolved for one in found), found.next_label
    if json:
        of_nodes = {"next_label": [plain_id(one.next_label) for one in found]}
        of_nodes["bottlenecks"] = [[plain_id(edge) for edge in one.bottleneck] for one in found]
        show_json({"resolved": resolved, "next_label": plain_id(next_), "clusters": found.to_dict() | of_nodes})
        return
    rows = [
        (
            *(str(one.cluster), f"{one.n_nodes:,}", f"{one.n_labelled:,}", f"{one.boundary:.4g}", f"{one.margin:.3f}"),
            *("yes" if one.resolved else "no", "" if one.next_label is None else called(one.next_label)),
        )
        for one in sorted(found, key=lambda one: -one.n_nodes)[:MOST_ROWS]
    ]
    show_table(HEADER, rows)
    left = len(found) - MOST_ROWS
    if left > 0:
        echo(f"… {left:,} more cluster{'' if left == 1 else 's'}; --json has all of them.")
    advice = "" if next_ is None else f" Label next: {called(next_)}."
    echo(f"\n{resolved} of {len(found)} clusters resolved.{advice}")
