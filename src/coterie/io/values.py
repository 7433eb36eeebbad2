"""What the cells of a table are read as, and which of them are refused, with file, column and row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.io.errors import BadValueError, ColumnTypeError
from coterie.io.sources import NOTHING, Source, cell, import_polars
from coterie.io.times import IN_WORDS
from coterie.problem.arrays import LARGEST
from coterie.problem.ids import some_of

if TYPE_CHECKING:
    import polars as pl

    from coterie.io.rows import Columns, Rows

NO_FEATURE = "name the features (--features), leave it out (--exclude), or make columns of 0 and 1 of it (--one-hot)"
NO_LABEL = "labels are numbers, or names of classes with coterie fit --loss logistic"
NO_OFFSET = "an offset or an exposure is a number in every row"
MISSING = "fill it, drop the row, or say what to do with such values (--missing mean or drop)"
WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
OTHER_DECIMAL = {".": re.compile(r"[-+]?\d*,\d+"), ",": re.compile(r"[-+]?\d*\.\d+")}  # numbers, with the other sign
FIRST_ROWS = 10_000  # of a column of text, in which yes and no are looked for
ROW = " row"  # a column name of our own while a bad value is looked for


def is_text(source: Source, name: str) -> bool:
    """Whether a column holds text; in a CSV file, as its first rows suggest."""
    pl, kind = import_polars(), source.schema[name]
    return isinstance(kind, pl.String | pl.Categorical | pl.Enum) or (source.kind == "CSV" and kind == pl.Boolean)


def comes_as_text(source: Source, name: str) -> bool:
    """Whether a column is parsed here: text, and numbers with decimal commas, of which Polars takes 1.234 for one."""
    return is_text(source, name) or (source.kind == "CSV" and source.text.decimal == ",")


def id_type(source: Source, columns: Columns) -> Any:
    """Return Int64 or String: as which type ids are read."""
    pl = import_polars()
    kind = source.schema[columns.node]
    if not columns.text_ids:
        if source.kind != "CSV" and not kind.is_integer():
            raise ColumnTypeError(f"{source.file}: the node column {columns.node!r} is {kind}, not whole numbers")
        return pl.Int64
    if source.kind == "CSV" or kind.is_integer() or is_text(source, columns.node):
        return pl.String
    raise ColumnTypeError(f"{source.file}: the node column {columns.node!r} is {kind}; ids are whole numbers or text")


def check_types(source: Source, columns: Columns) -> None:
    """Refuse columns that cannot be what they are named as."""
    pl = import_polars()
    id_type(source, columns)
    for name in columns.read if source.kind != "CSV" else ():  # the columns of a CSV file are what we read them as
        kind = source.schema[name]
        if not (kind.is_numeric() or is_text(source, name) or isinstance(kind, pl.Boolean | pl.Null)):
            raise ColumnTypeError(f"{source.file}: column {name!r} is {kind}, not numbers; {_advice(columns, name)}")


def numbers_in(source: Source, name: str) -> pl.Expr:
    """Return a column as numbers; yes and true are 1, no and false are 0, where a column has nothing else."""
    pl = import_polars()
    return _parsed(source, name) if comes_as_text(source, name) else pl.col(name).cast(pl.Float64)


def _parsed(source: Source, name: str, strict: bool = True) -> pl.Expr:
    """A column of text as numbers; unless `strict`, what is none becomes null."""
    pl = import_polars()
    text = _text(name)
    if is_text(source, name) and _has_words(source, name):
        default: dict[str, Any] = {} if strict else {"default": None}
        return text.str.to_lowercase().replace_strict({**WORDS, None: None}, return_dtype=pl.Float64, **default)
    if source.text.decimal == ",":  # 1.234 may mean 1,234 or 1234: it is no number here
        text = text.str.replace_all(".", "?", literal=True).str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=strict)


def _text(name: str) -> pl.Expr:
    """A column of text, null where it is empty or says that there is nothing."""
    pl = import_polars()
    return pl.col(name).cast(pl.String).str.strip_chars().replace(["", NOTHING], None)


def _has_words(source: Source, name: str) -> bool:
    """Whether the first rows of a column of text say yes or no, true or false, and nothing else."""
    pl = import_polars()
    with source.reading():
        found = source.entire.scan({name: pl.String}).select(_text(name)).head(FIRST_ROWS).collect()[name]
    words = set(found.drop_nulls().str.to_lowercase().unique())
    return bool(words) and words <= WORDS.keys()


def _is_mere_text(source: Source, name: str) -> bool:
    """Whether the first value of a column is neither a number nor yes or no."""
    if not is_text(source, name) or _has_words(source, name):
        return False
    pl = import_polars()
    with source.reading():
        first = source.scan({name: pl.String}).select(_text(name)).drop_nulls().head(1)
        return bool(first.select(_parsed(source, name, strict=False).is_null()).collect()[name].any())


def check_values(rows: Rows, columns: Columns) -> None:
    """Refuse the first bad value.

    Quick when all is well: an empty, nan, infinite or far too large value shows in the sum of its column's sizes.
    """
    pl = import_polars()
    frame, gaps = rows.frame, columns.keeps_gaps
    known = [] if columns.offset is None else [columns.offset]
    fine = all(frame[name].null_count() == 0 for name in (*columns.keys, *known))
    fine = fine and (gaps or all(frame[name].null_count() == 0 for name in columns.features))
    sizes = frame.select(pl.col(*columns.features, *known).abs().sum()).row(0) if fine else (np.nan,)
    fine = all(size <= LARGEST for size in sizes)
    label = None if columns.target is None or columns.text_labels else columns.target
    fine = fine and (label is None or not frame.select(_unusable(label).any()).item())
    if fine:
        return
    bad = {name: pl.col(name).is_null() for name in columns.keys}
    bad |= {name: ~(pl.col(name).abs() <= LARGEST).fill_null(gaps) for name in columns.features}
    bad |= {name: ~(pl.col(name).abs() <= LARGEST).fill_null(False) for name in known}
    if label is not None:
        bad[label] = _unusable(label)
    places = frame.select(mask.arg_max().alias(name) for name, mask in bad.items()).row(0)
    wrong = frame.select(mask.any().alias(name) for name, mask in bad.items()).row(0)
    found = [(place, name) for place, name, yes in zip(places, bad, wrong, strict=True) if yes]
    if found:
        place, name = min(found, key=lambda one: one[0])
        _refuse_value(rows, columns, name, place)


def _unusable(target: str) -> pl.Expr:
    """Where a label is neither nan nor a number that can be squared."""
    label = import_polars().col(target)
    return label.is_not_nan() & (label.abs() > LARGEST)


def _refuse_value(rows: Rows, columns: Columns, name: str, place: int) -> None:
    value, node = rows.frame[name][place], rows.frame[columns.node][place]
    where = cell(rows.file, columns.column_of(name), rows.first + place)
    if name == columns.node:
        raise BadValueError(f"{where}: there is no node id; fill or drop the row")
    if columns.times is not None and name == columns.times.name:
        kind = IN_WORDS.get(columns.times.kind, "time")
        raise BadValueError(
            f"{where} (node {node!r}): there is no time, or it is no {kind} like the others; fill it in"
        )
    if value is not None and np.isfinite(value):
        raise BadValueError(
            f"{where} (node {node!r}): numbers above {LARGEST:g} cannot be squared, and {value:g} is one"
        )
    what = "is missing" if value is None else f"is {value}"
    rules = {columns.target: "labels are finite, or empty where unknown", columns.offset: NO_OFFSET}
    rule = rules.get(name, MISSING)
    raise BadValueError(f"{where} (node {node!r}): the value {what}; {rule}")


def name_unreadable(source: Source, columns: Columns) -> None:
    """Find the first cell that cannot be read as what its column is, and refuse it."""
    pl = import_polars()
    fails, names = _failures(source, columns), (columns.node, *columns.read)
    table = source.scan(dict.fromkeys(names, pl.String)).select(names).with_row_index(ROW, offset=1)
    try:
        first = table.filter(pl.any_horizontal(fails.values())).head(1).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return  # it is not a matter of values
    for name in fails if len(first) else ():
        if first.select(fails[name]).item():
            _refuse_cell(source, columns, name, first)


def _failures(source: Source, columns: Columns) -> dict[str, pl.Expr]:
    """Where columns hold what they cannot."""
    pl = import_polars()
    numbers = [name for name in columns.read if name not in columns.levels]
    if columns.text_labels:
        numbers.remove(str(columns.target))
    fails = {name: _text(name).is_not_null() & _parsed(source, name, strict=False).is_null() for name in numbers}
    if not columns.text_ids:
        id_ = pl.col(columns.node)
        fails[columns.node] = id_.is_not_null() & id_.cast(pl.Int64, strict=False).is_null()
    fails |= {name: ~levels_text(name).is_in(list(levels)) for name, levels in columns.levels.items()}
    return fails


def levels_text(name: str) -> pl.Expr:
    """Return a column whose values are levels; NA is one like any other."""
    pl = import_polars()
    return pl.col(name).cast(pl.String).str.strip_chars()


def _refuse_cell(source: Source, columns: Columns, name: str, first: pl.DataFrame) -> None:
    row, value = first[ROW][0], first[name][0]
    where = cell(source.file, name, row)
    if name == columns.node:
        raise BadValueError(f"{where}: {value!r} is not a whole number, as ids were asked for") from None
    if name in columns.levels:
        known = some_of(columns.levels[name])
        raise BadValueError(f"{where}: {value!r} is a level that the model was not fitted with; it knows {known}")
    if OTHER_DECIMAL[source.text.decimal].fullmatch(value.strip()):
        sign = "," if source.text.decimal == "." else "."
        raise BadValueError(f"{where}: {value!r} is not a number; if {sign} is the decimal sign, give --decimal {sign}")
    if source.kind == "CSV":
        text = [other for other in columns.read if other != name and other not in columns.levels]
        text = [other for other in text if other != columns.target and _is_mere_text(source, other)]
        too = f" (nor is what {', '.join(map(repr, text))} hold{'s' * (len(text) == 1)})" if text else ""
        raise BadValueError(f"{where}: {value!r} is not a number{too}; {_advice(columns, name)}") from None
    kind = source.schema[name]
    raise ColumnTypeError(
        f"{source.file}: column {name!r} is {kind}, not numbers ({value!r} in row {row}); {_advice(columns, name)}"
    ) from None


def _advice(columns: Columns, name: str) -> str:
    return {columns.target: NO_LABEL, columns.offset: NO_OFFSET}.get(name, NO_FEATURE)
