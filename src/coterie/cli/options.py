"""Options that several commands have, and the values that options can take."""

from __future__ import annotations

from enum import StrEnum

import typer

TEXT = "How text files are written"

DataArgument = typer.Argument(
    metavar="DATA",
    help="CSV, Parquet or Arrow: a file, a folder, a pattern in quotation marks; -: standard input.",
)
SeparatorOption = typer.Option(
    help="The sign between columns, such as ; or tab.", show_default="a tab in .tsv, else a comma", rich_help_panel=TEXT
)
DecimalOption = typer.Option(help="The decimal sign; with a comma, columns are separated by ;.", rich_help_panel=TEXT)
EncodingOption = typer.Option(help="Such as latin-1, cp1252 or utf-16.", rich_help_panel=TEXT)
NodeOption = typer.Option(help="Column that says which node a row belongs to.")
IdsOption = typer.Option(help="Ids of nodes are text, exactly as they stand in files; or whole numbers.")
WeightOption = typer.Option(
    help="Column of --graph with the weights: large where nodes are alike.", show_default="weight"
)
DistanceOption = typer.Option(
    help="Instead: column of --graph with distances d; weights are 1/(d + s/10), s their median."
)
OffsetOption = typer.Option(help="Of poisson: column of what is added to the logarithm of the expected count.")
ExposureOption = typer.Option(help="Of poisson: column of what expected counts are in proportion to, such as hours.")
JsonOption = typer.Option("--json", help="Print one JSON object instead of words.")
QuietOption = typer.Option("--quiet", "-q", help="Print nothing but errors, and what --json asks for.")
ModelArgument = typer.Argument(metavar="MODEL", help="Folder of a model that `coterie fit` wrote.")


class IdsName(StrEnum):
    """What ids of nodes are."""

    text = "text"
    numbers = "numbers"


class LossName(StrEnum):
    """Losses by the names of the option."""

    squared = "squared"
    lasso = "lasso"
    logistic = "logistic"
    poisson = "poisson"
    huber = "huber"
    quantile = "quantile"


class RefitName(StrEnum):
    """What is refitted, by the names of the option."""

    clusters = "clusters"


class RuleName(StrEnum):
    """Which λ folds choose, by the names of the option."""

    best = "best"
    one_se = "one_se"


class ClassWeightName(StrEnum):
    """What the classes count, by the names of the option."""

    balanced = "balanced"


class PenaltyName(StrEnum):
    """Penalties by the names of the option."""

    l1 = "l1"
    l2 = "l2"
    squared = "squared"


class WeightName(StrEnum):
    """What counts alike."""

    rows = "rows"
    nodes = "nodes"


class MissingName(StrEnum):
    """What becomes of gaps."""

    mean = "mean"
    drop = "drop"


class OverName(StrEnum):
    """What folds hold out."""

    auto = "auto"
    nodes = "nodes"
    rows = "rows"
    places = "places"
    times = "times"
    blocks = "blocks"
