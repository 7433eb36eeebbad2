"""coterie coefficients."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import check_table, plain_errors
from coterie.cli.options import ModelArgument, QuietOption


def coefficients(
    model: Annotated[Path, ModelArgument],
    out: Annotated[Path, typer.Option(help="File to write: its name ends in .parquet, .csv or .arrow.")],
    errors: Annotated[
        bool, typer.Option("--errors", help="Standard errors, too, given the clusters: of --refit clusters.")
    ] = False,
    quiet: Annotated[bool, QuietOption] = False,
) -> None:
    """Write a table of all models: one row per node, with its coefficients, its intercept and its cluster."""
    with plain_errors(quiet):
        check_table(out, model)
        from coterie.estimators import load
        from coterie.estimators.export import node_columns
        from coterie.io.errors import ModelFileError
        from coterie.io.sources import import_polars
        from coterie.io.tables import write_batches

        fitted = load(model)
        try:
            columns = fitted._coef_columns(errors)
        except ValueError as error:
            raise ModelFileError(f"{model}: {error}") from None
        for name in node_columns(fitted):
            columns[name] = [one if isinstance(one, str | int | float | date) else str(one) for one in columns[name]]
        table = import_polars().DataFrame(columns)
        write_batches(out, iter([table]), dict(table.schema))
        if not quiet:
            echo(f"The coefficients of {len(table):,} nodes written to {out}")
