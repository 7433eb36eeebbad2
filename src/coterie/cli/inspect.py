"""coterie inspect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import plain_errors
from coterie.cli.options import JsonOption, ModelArgument


def inspect(
    model: Annotated[Path, ModelArgument],
    nodes: Annotated[bool, typer.Option("--nodes", help="List nodes, not clusters: rows, errors, models.")] = False,
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Say how well a model predicts, how certain its optimum is, what it is, and which nodes share one.

    With --json, all clusters are listed, with --nodes all nodes too.
    """
    with plain_errors():
        from coterie.cli.describe import all_clusters, all_nodes, as_object, cluster_table, in_words, node_table
        from coterie.cli.screen import show_json, show_table
        from coterie.estimators import load

        fitted = load(model)
        if json:
            found = {**as_object(fitted), "cluster_models": all_clusters(fitted)}
            found |= {"node_models": all_nodes(fitted)} if nodes else {}
            show_json({**found, "model": str(model), "notes": fitted.notes_})
            return
        echo("\n".join(in_words(fitted, fitted.notes_)) + "\n")
        header, rows, left_out = (node_table if nodes else cluster_table)(fitted)
        show_table(header, rows)
        if left_out:
            echo(f"{left_out} `coterie coefficients {model} --out FILE` writes the models of all nodes.")
