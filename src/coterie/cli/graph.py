"""coterie graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import check_table, plain_errors
from coterie.cli.network import Knn, read_network, text_format
from coterie.cli.options import (
    DataArgument,
    DecimalOption,
    EncodingOption,
    IdsName,
    IdsOption,
    JsonOption,
    NodeOption,
    QuietOption,
    SeparatorOption,
)


def graph(
    data: Annotated[Path, DataArgument],
    node: Annotated[str, NodeOption],
    knn: Annotated[str, typer.Option(help="Columns with coordinates and a number of neighbours, as lat,lon:5.")],
    out: Annotated[Path, typer.Option(help="File of edges to write: its name ends in .parquet, .csv or .arrow.")],
    ids: Annotated[IdsName, IdsOption] = IdsName.text,
    separator: Annotated[str | None, SeparatorOption] = None,
    decimal: Annotated[str, DecimalOption] = ".",
    encoding: Annotated[str, EncodingOption] = "utf-8",
    json: Annotated[bool, JsonOption] = False,
    quiet: Annotated[bool, QuietOption] = False,
) -> None:
    """Join every node to its nearest, and write the edges with their weights.

    Look at the file, change it, and give it to `coterie fit --graph`. Columns whose names begin with lat and lon (or
    lng) are degrees on the Earth; others are coordinates in a plane or space.
    """
    with plain_errors(quiet):
        check_table(out, data)
        nearest = Knn.parse(knn)
        from coterie.cli.screen import show_json
        from coterie.io.edges import edge_frame
        from coterie.io.formats import Table
        from coterie.io.tables import write_batches
        from coterie.problem.convert import UNSAID

        table = Table(data, text_format(separator, decimal, encoding))
        found = read_network(table, node, None, nearest, UNSAID, text_ids=ids is IdsName.text).graph
        edges = edge_frame(found)
        write_batches(out, iter([edges]), dict(edges.schema))
        if json:
            show_json({"edges": found.n_edges, "nodes": found.n_nodes, "file": str(out)})
        elif not quiet:
            echo(f"{found.n_edges:,} edges between {found.n_nodes:,} nodes written to {out}")
