"""Options that several commands have."""

from __future__ import annotations

import typer

DataArgument = typer.Argument(
    metavar="DATA", help="CSV, Parquet or Arrow: a file, a folder, or a pattern in quotation marks."
)
NodeOption = typer.Option(help="Column that says which node a row belongs to.")
JsonOption = typer.Option("--json", help="Print one JSON object instead of words.")
QuietOption = typer.Option("--quiet", "-q", help="Print nothing but errors, and what --json asks for.")
ModelArgument = typer.Argument(metavar="MODEL", help="Folder of a model that `coterie fit` wrote.")
