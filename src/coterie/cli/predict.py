"""coterie predict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, check_table, plain_errors
from coterie.cli.options import DataArgument, JsonOption, ModelArgument, QuietOption

if TYPE_CHECKING:
    import polars as pl

    from coterie.estimators.base import NetworkedModel
    from coterie.io.rows import Columns

PREDICTION, PROBABILITY, UNDETERMINED = "prediction", "probability", "undetermined"


def predict(
    model: Annotated[Path, ModelArgument],
    data: Annotated[Path, DataArgument],
    out: Annotated[Path, typer.Option(help="File to write: its name ends in .parquet, .csv or .arrow.")],
    node: Annotated[
        str | None,
        typer.Option(help="Column that says which node a row belongs to.", show_default="as when the model was fitted"),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Write the columns of DATA too, as they stand.")] = False,
    json: Annotated[bool, JsonOption] = False,
    quiet: Annotated[bool, QuietOption] = False,
) -> None:
    """Predict the target of every row of DATA with the model of its node.

    Writes a table of the node, the prediction and, after a logistic regression, the probability of class 1, in the
    order of the rows. Where the model has nodes that no label reaches, a column `undetermined` marks their rows, whose
    predictions say nothing of them. Rows are read in batches: DATA may be larger than memory.
    """
    with plain_errors(quiet):
        check_table(out, data)
        from coterie.cli.kept import KeptColumns
        from coterie.cli.screen import say, show_json, working
        from coterie.estimators import load
        from coterie.io.tables import write_batches

        fitted = load(model)
        columns = _columns(fitted, model, data, node)
        schema = _schema(fitted, columns)
        kept = KeptColumns(data) if keep else None
        if kept is not None:
            added = {name: kind for name, kind in schema.items() if name != columns.node}
            kept.refuse(list(added))
            schema = kept.schema | added
        count = unreached = 0

        def batches() -> Iterator[pl.DataFrame]:
            nonlocal count, unreached
            for frame in _predictions(fitted, data, columns):
                count += len(frame)
                unreached += int(frame[UNDETERMINED].sum()) if UNDETERMINED in frame.columns else 0
                tell(f"{count:,} rows", None)
                yield frame if kept is None else kept.take(len(frame)).hstack(frame.drop(columns.node))

        with working(quiet) as tell:
            write_batches(out, batches(), schema)
        if unreached:
            say(
                f"no label reaches the nodes of {unreached:,} rows, marked {UNDETERMINED}: nothing is known of them",
                quiet,
            )
        if json:
            show_json({"predictions": str(out), "rows": count, "columns": list(schema)})
        elif not quiet:
            echo(f"{count:,} predictions written to {out}")


def _columns(fitted: NetworkedModel, model: Path, data: Path, node: str | None) -> Columns:
    from coterie.io.errors import ModelFileError
    from coterie.io.rows import Columns

    names, node = getattr(fitted, "feature_names_in_", None), node or fitted.groups_column_
    if names is None:
        raise ModelFileError(f"{model}: the model was fitted to columns without names; use it from Python")
    if node is None:
        raise BadInputError("say with --node which column holds the nodes; the model was not told")
    if node in (PREDICTION, PROBABILITY, UNDETERMINED):
        raise BadInputError(f"the column of the nodes is called {node!r}, as one that is written; call it otherwise")
    return Columns.of(data, node, features=[str(name) for name in names]).like(fitted.graph_)


def _predictions(fitted: NetworkedModel, data: Path, columns: Columns) -> Iterator[pl.DataFrame]:
    from coterie.io.nodes import KnownNodes
    from coterie.io.rows import scan_rows
    from coterie.io.sources import import_polars

    pl, known, schema = import_polars(), KnownNodes(fitted.graph_), _schema(fitted, columns)
    for rows in scan_rows(data, columns):
        known.check_rows(rows, columns)
        X, ids = rows.frame.select(columns.features), rows.frame[columns.node]
        found = [ids, pl.Series(PREDICTION, fitted.predict(X, groups=ids))]
        if PROBABILITY in schema:
            found.append(pl.Series(PROBABILITY, fitted.predict_proba(X, groups=ids)[:, 1]))
        if UNDETERMINED in schema:
            found.append(ids.is_in(fitted.undetermined_nodes_.tolist()).alias(UNDETERMINED))
        yield pl.DataFrame(found).cast(schema)


def _schema(fitted: NetworkedModel, columns: Columns) -> dict[str, Any]:
    """The columns that are written."""
    from coterie.io.sources import import_polars

    pl = import_polars()
    ids = pl.String if columns.text_ids else pl.Int64
    schema: dict[str, Any] = {columns.node: ids, PREDICTION: pl.Float64}
    if hasattr(fitted, "classes_"):
        schema |= {PREDICTION: pl.Series(fitted.classes_.tolist()).dtype, PROBABILITY: pl.Float64}
    return schema | ({UNDETERMINED: pl.Boolean} if len(fitted.undetermined_nodes_) else {})
