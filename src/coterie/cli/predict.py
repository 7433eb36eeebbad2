"""coterie predict."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from warnings import catch_warnings, simplefilter

import typer

from coterie.cli.echo import echo
from coterie.cli.errors import BadInputError, check_table, plain_errors
from coterie.cli.network import split_names, text_format
from coterie.cli.options import (
    DataArgument,
    DecimalOption,
    EncodingOption,
    ExposureOption,
    JsonOption,
    ModelArgument,
    OffsetOption,
    QuietOption,
    SeparatorOption,
)

if TYPE_CHECKING:
    import polars as pl

    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.offsets import Offset
    from coterie.io.formats import Table
    from coterie.io.rows import Columns, Rows
    from coterie.io.times import Times

PREDICTION, PROBABILITY, UNDETERMINED = "prediction", "probability", "undetermined"


def predict(
    model: Annotated[Path, ModelArgument],
    data: Annotated[Path, DataArgument],
    out: Annotated[Path, typer.Option(help="File to write: its name ends in .parquet, .csv or .arrow.")],
    node: Annotated[
        str | None,
        typer.Option(
            help="Column that says which node a row belongs to; or place,time.",
            show_default="as when the model was fitted",
        ),
    ] = None,
    offset: Annotated[str | None, OffsetOption] = None,
    exposure: Annotated[str | None, ExposureOption] = None,
    separator: Annotated[str | None, SeparatorOption] = None,
    decimal: Annotated[str, DecimalOption] = ".",
    encoding: Annotated[str, EncodingOption] = "utf-8",
    keep: Annotated[bool, typer.Option("--keep", help="Write the columns of DATA too, as they stand.")] = False,
    json: Annotated[bool, JsonOption] = False,
    quiet: Annotated[bool, QuietOption] = False,
) -> None:
    """Predict the target of every row of DATA with the model of its node.

    Writes a table of the node, the prediction and, after a logistic regression, the probability of class 1, or of the
    second of two names, in the order of the rows; each of more classes has a column of its own. What the fit made of
    columns (--one-hot, --missing) is made again; a row that lacks a value has no prediction if the fit dropped such
    rows. A model of counts that was fitted with an offset or an exposure looks for it in the same column, unless
    --offset or --exposure names another. Where the model has nodes that no label reaches, a column `undetermined` marks
    their rows, whose predictions say nothing of them. Rows are read in batches: DATA may be larger than memory.
    """
    with plain_errors(quiet):
        check_table(out, data)
        from coterie.cli.kept import KeptColumns
        from coterie.cli.screen import say, show_json, working
        from coterie.estimators import load
        from coterie.io.formats import Table
        from coterie.io.nodes import KnownNodes
        from coterie.io.rows import scan_rows
        from coterie.io.tables import write_batches
        from coterie.report.text import plural

        fitted = load(model)
        table = Table(data, text_format(separator, decimal, encoding))
        given = _offset(fitted, offset, exposure)
        columns = _columns(fitted, model, table, node, None if given is None else given.column)
        known, schema = KnownNodes(fitted.graph_), _schema(fitted, columns)
        keys = columns.keys
        kept = KeptColumns(table) if keep else None
        if kept is not None:
            added = {name: kind for name, kind in schema.items() if name not in keys}
            kept.refuse(list(added))
            schema = kept.schema | added
        count = unreached = gaps = later = without = elsewhere = 0

        def batches() -> Iterator[pl.DataFrame]:
            nonlocal count, unreached, gaps, later, without, elsewhere
            for rows in scan_rows(table, columns):
                if fitted.shared:
                    elsewhere += known.count_unknown(rows, columns)
                else:
                    known.check_rows(rows, columns)
                frame = _predictions(fitted, rows, columns, given)
                count += len(frame)
                without += frame[PREDICTION].null_count()
                later += _after_the_last(fitted, frame, columns)
                gaps += 0 if rows.gaps is None else int(rows.gaps.sum().sum_horizontal().item())
                unreached += int(frame[UNDETERMINED].sum()) if UNDETERMINED in frame.columns else 0
                tell(f"{count:,} rows", None)
                yield frame if kept is None else kept.take(len(frame)).hstack(frame.drop(keys))

        with working(quiet) as tell:
            write_batches(out, batches(), schema)
        if gaps:
            became = f"{without:,} rows have no prediction" if columns.keeps_gaps else "they get the means of the fit"
            say(f"{gaps:,} values are missing; {became}", quiet)
        if later:
            last = _last_time(fitted)
            rows = plural(later, "prediction")
            say(f"{rows} for times after {last}, the last of the model: with the models of that time", quiet)
        if elsewhere:
            say(f"{elsewhere:,} rows of nodes that are not in the graph get the model that all nodes share", quiet)
        if unreached:
            say(
                f"no label reaches the nodes of {unreached:,} rows, marked {UNDETERMINED}: nothing is known of them",
                quiet,
            )
        if json:
            show_json({"predictions": str(out), "rows": count, "without": without, "columns": list(schema)})
        elif not quiet:
            echo(f"{count - without:,} predictions written to {out}")


def _offset(fitted: NetworkedModel, offset: str | None, exposure: str | None) -> Offset | None:
    """Where offsets or exposures are; None: there are none."""
    from coterie.estimators.offsets import Offset

    try:
        given = Offset.for_model(fitted, offset, exposure) or fitted.offset_
    except (TypeError, ValueError) as error:
        raise BadInputError(str(error)) from None
    if given is not None and given.column is None:
        raise BadInputError(f"the model was fitted with an {given.kind}; name its column with --{given.kind}")
    return given


def _columns(fitted: NetworkedModel, model: Path, data: Table, node: str | None, offset: str | None) -> Columns:
    from coterie.io.errors import ModelFileError
    from coterie.io.rows import Columns

    names, found = getattr(fitted, "feature_names_in_", None), node or fitted.groups_column_
    if names is None:
        raise ModelFileError(f"{model}: the model was fitted to columns without names; use it from Python")
    if found is None:
        raise BadInputError("say with --node which column holds the nodes; the model was not told")
    place, times = _keys(fitted, split_names(found) if isinstance(found, str) else list(found))
    for name in (place, *(() if times is None else (times.name,))):
        if name in (PREDICTION, UNDETERMINED, *_probabilities(fitted)):
            raise BadInputError(
                f"the column of the nodes is called {name!r}, as one that is written; call it otherwise"
            )
    made = fitted.preparation_
    read = [str(name) for name in names] if made is None else made.columns
    columns = Columns.of(data, place, features=read, times=times, offset=offset).like(fitted.graph_)
    return columns if made is None else columns.prepared(made)


def _keys(fitted: NetworkedModel, names: list[str]) -> tuple[str, Times | None]:
    """The column of the nodes; or those of places and of times."""
    from coterie.estimators.space_time import pairs_of
    from coterie.io.times import Times

    pairs = pairs_of(fitted.graph_)
    wanted = 1 if pairs is None else 2
    if len(names) != wanted:
        what = "one column" if pairs is None else "two columns, of the places and of the times"
        raise BadInputError(f"the nodes of this model are in {what}; --node names {len(names)}: {', '.join(names)}")
    return names[0], None if pairs is None else Times.like(names[1], pairs.second)


def _after_the_last(fitted: NetworkedModel, frame: pl.DataFrame, columns: Columns) -> int:
    """How many rows come after the last time of a model."""
    if columns.times is None:
        return 0
    return int((frame[columns.times.name] > _last_time(fitted)).sum())


def _last_time(fitted: NetworkedModel) -> Any:
    pair: Any = fitted.graph_.names[-1]
    last = pair[1]
    return last.astimezone(UTC) if isinstance(last, datetime) and last.tzinfo is not None else last


def _predictions(fitted: NetworkedModel, rows: Rows, columns: Columns, offset: Offset | None) -> pl.DataFrame:
    """What is written of some rows."""
    from coterie.io.sources import import_polars

    pl, schema = import_polars(), _schema(fitted, columns)
    X, keys = rows.frame.select(columns.features), [rows.frame[name] for name in columns.keys]
    ids = keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
    lacks = X.select(pl.any_horizontal(pl.all().is_null())).to_series()
    X = X.fill_null(0.0)
    known = {} if offset is None else {offset.kind: _known(rows, offset)}
    with catch_warnings():
        simplefilter("ignore", UserWarning)  # of times after the last, which are counted
        found = [*keys, pl.Series(PREDICTION, fitted.predict(X, groups=ids, **known))]
        if probabilities := _probabilities(fitted):
            chances = fitted.predict_proba(X, groups=ids).T[-len(probabilities) :]  # of two, that of the second
            found += [pl.Series(name, chance) for name, chance in zip(probabilities, chances, strict=True)]
    if UNDETERMINED in schema:
        found.append(_undetermined(fitted, keys))
    said = [PREDICTION, *probabilities]
    return pl.DataFrame(found).with_columns(pl.when(~lacks).then(pl.col(*said)).name.keep()).cast(schema)


def _undetermined(fitted: NetworkedModel, keys: list[pl.Series]) -> pl.Series:
    """Which rows belong to nodes that no label reaches."""
    from coterie.io.sources import import_polars

    unknown = fitted.undetermined_nodes_.tolist()
    if len(keys) == 1:
        return keys[0].is_in(unknown).alias(UNDETERMINED)
    these, pl = set(unknown), import_polars()
    return pl.Series(UNDETERMINED, [pair in these for pair in zip(*keys, strict=True)], dtype=pl.Boolean)


def _probabilities(fitted: Any) -> list[str]:
    """Columns of probabilities: one for two classes, else one for each, with its name; none where there are none."""
    classes = fitted.classes_.tolist() if hasattr(fitted, "classes_") else []
    return [PROBABILITY] if len(classes) == 2 else [f"{PROBABILITY}_{name}" for name in classes]


def _known(rows: Rows, offset: Offset) -> pl.Series:
    """The offsets or exposures of some rows; the first that is none is refused, with its row."""
    from coterie.estimators.offsets import EXPOSURE
    from coterie.io.errors import BadValueError
    from coterie.io.rows import place_of

    values = rows.frame[offset.values]
    if offset.kind == EXPOSURE and (wrong := values <= 0).any():
        where = place_of(rows, offset.values, int(wrong.arg_max() or 0))
        raise BadValueError(f"{where} is not an exposure; exposures are numbers > 0")
    return values


def _schema(fitted: NetworkedModel, columns: Columns) -> dict[str, Any]:
    """The columns that are written."""
    from coterie.io.sources import import_polars

    pl = import_polars()
    ids = pl.String if columns.text_ids else pl.Int64
    times = {} if columns.times is None else {columns.times.name: columns.times.type}
    schema: dict[str, Any] = {columns.node: ids, **times, PREDICTION: pl.Float64}
    if probabilities := _probabilities(fitted):
        schema |= {PREDICTION: pl.Series(fitted.classes_.tolist()).dtype, **dict.fromkeys(probabilities, pl.Float64)}
    return schema | ({UNDETERMINED: pl.Boolean} if len(fitted.undetermined_nodes_) else {})
