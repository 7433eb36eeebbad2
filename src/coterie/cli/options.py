"""Options that several commands have, and the values that options can take."""

from __future__ import annotations

from enum import StrEnum

import typer

DataArgument = typer.Argument(
    metavar="DATA", help="CSV, Parquet or Arrow: a file, a folder, or a pattern in quotation marks."
)
NodeOption = typer.Option(help="Column that says which node a row belongs to.")
JsonOption = typer.Option("--json", help="Print one JSON object instead of words.")
QuietOption = typer.Option("--quiet", "-q", help="Print nothing but errors, and what --json asks for.")
ModelArgument = typer.Argument(metavar="MODEL", help="Folder of a model that `coterie fit` wrote.")


class LossName(StrEnum):
    """Losses by the names of the option."""

    squared = "squared"
    lasso = "lasso"
    logistic = "logistic"


class PenaltyName(StrEnum):
    """Penalties by the names of the option."""

    l1 = "l1"
    l2 = "l2"
    squared = "squared"


class WeightName(StrEnum):
    """What counts alike."""

    rows = "rows"
    nodes = "nodes"


class OverName(StrEnum):
    """What folds hold out."""

    auto = "auto"
    nodes = "nodes"
    rows = "rows"
