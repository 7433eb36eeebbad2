"""A column of times in files: whole numbers, other numbers, months, quarters, weeks, dates, or dates with the time of
day and perhaps a zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from coterie.io.errors import BadValueError
from coterie.io.sources import Source, cell, import_polars, sources
from coterie.problem.months import are_months_first

if TYPE_CHECKING:
    import polars as pl

ROW = " row"  # a column name of our own
DAYS = "%Y-%m-%d"
MOMENTS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
RULE = (
    "times are numbers, months, quarters or weeks (2025-07, 2025-Q3, 2025-W27), or dates: 2025-07-01, "
    "2025-07-01 12:00 or 2025-07-01 12:00+02:00"
)


class Month(str):
    """Stands for months such as 2025-07, which stay text: `ct.time_graph` reads them."""

    __slots__ = ()


class Quarter(str):
    """Stands for quarters such as 2025-Q3, which stay text, too."""

    __slots__ = ()


class Week(str):
    """Stands for weeks such as 2025-W27, which stay text, too."""

    __slots__ = ()


class Zoned(datetime):
    """Stands for moments with a time zone, which become those of UTC."""


WRITTEN: dict[type, str] = {
    Month: r"^\d{4}-(0[1-9]|1[0-2])$",
    Quarter: r"^\d{4}-Q[1-4]$",
    Week: r"^\d{4}-W(0[1-9]|[1-4]\d|5[0-3])$",
}
"""How times are written that stay text."""


def _as_written(kind: type, text: pl.Expr) -> pl.Expr:
    return import_polars().when(text.str.contains(WRITTEN[kind])).then(text)


def _as_date(text: pl.Expr) -> pl.Expr:
    """2025-07 is the first day of that month."""
    pl = import_polars()
    return pl.coalesce(text.str.to_date(DAYS, strict=False), (text + "-01").str.to_date(DAYS, strict=False))


def _as_moment(text: pl.Expr) -> pl.Expr:
    pl = import_polars()
    moments = [text.str.to_datetime(pattern, strict=False, time_unit="us") for pattern in MOMENTS]
    return pl.coalesce(*moments, _as_date(text).cast(pl.Datetime("us")))


def _as_zoned(text: pl.Expr) -> pl.Expr:
    pl = import_polars()
    signed = text.str.replace(r"[zZ]$", "+00:00")
    return pl.coalesce(
        signed.str.to_datetime(f"{pattern}%z", strict=False, time_unit="us").dt.convert_time_zone("UTC")
        for pattern in MOMENTS
    )


def _as_number(text: pl.Expr) -> pl.Expr:
    return text.cast(import_polars().Float64, strict=False)


def _as_whole(text: pl.Expr) -> pl.Expr:
    return text.cast(import_polars().Int64, strict=False)


KINDS: dict[type, Callable[[pl.Expr], pl.Expr]] = {
    int: _as_whole,
    float: _as_number,
    **{kind: partial(_as_written, kind) for kind in WRITTEN},
    date: _as_date,
    datetime: _as_moment,
    Zoned: _as_zoned,
}
"""What text is parsed as; a value that is none of it becomes null."""

IN_WORDS: dict[type, str] = {
    int: "whole number",
    float: "number",
    Month: "month",
    Quarter: "quarter",
    Week: "week",
    date: "date",
    datetime: "date with a time of day",
    Zoned: "date with a time and a zone",
}


@dataclass(frozen=True)
class Times:
    """The column of the times, and what its values are: one of KINDS."""

    name: str
    kind: type

    @classmethod
    def found(cls, path: str | PathLike[str], name: str) -> tuple[Self, list[Any]]:
        """Look through files; return what the times are, and the different ones in order."""
        pl, different = import_polars(), set()
        for source in sources(path):
            source.require([name])
            with source.reading():
                text = source.scan({name: pl.String}).select(_text(name)).unique().collect(engine="streaming")
            different |= set(text[name].drop_nulls())
        if are_months_first(different):
            raise BadValueError(f"{path}: column {name!r}: {min(different)!r} is a month before its year; {RULE}")
        text = pl.DataFrame({name: sorted(different)}, schema={name: pl.String})
        for kind, parse in KINDS.items():
            values = text.select(parse(pl.col(name)))[name]
            if len(text) and not values.null_count() and (kind is not float or values.is_finite().all()):
                return cls(name, kind), sorted(set(values.to_list()))
        _refuse(path, name)
        raise BadValueError(f"{path}: column {name!r} is empty; {RULE}")

    @classmethod
    def like(cls, name: str, times: Sequence[Any]) -> Self:
        """The column of times as a model knows them."""
        if isinstance(times[0], datetime) and times[0].tzinfo is not None:
            return cls(name, Zoned)
        for kind, pattern in WRITTEN.items():
            if all(isinstance(time, str) and re.match(pattern, time) for time in times):
                return cls(name, kind)
        for kind in (datetime, date, float, int, str):
            if isinstance(times[0], kind):
                return cls(name, kind)
        raise BadValueError(
            f"column {name!r}: the times of the model are {type(times[0]).__name__}, which files cannot hold; "
            "fit it to dates, or predict from Python"
        )

    @property
    def values(self) -> pl.Expr:
        """The column as what it is; null where it is something else."""
        parse = KINDS.get(self.kind)
        return _text(self.name) if parse is None else parse(_text(self.name)).alias(self.name)

    @property
    def type(self) -> Any:
        """The type of the column."""
        pl = import_polars()
        types = {int: pl.Int64, float: pl.Float64, date: pl.Date, datetime: pl.Datetime("us")}
        types[Zoned] = pl.Datetime("us", "UTC")
        return types.get(self.kind, pl.String)


def _text(name: str) -> pl.Expr:
    """A column of any type as text, null where it is empty."""
    pl = import_polars()
    return pl.col(name).cast(pl.String).str.strip_chars().str.replace(r"\.0+$", "").replace("", None)


def _refuse(path: str | PathLike[str], name: str) -> None:
    """Name the first value that is no time of the kind that most are."""
    kinds = [parse(_text(name)).is_not_null() for parse in KINDS.values()]
    for source in sources(path):
        table = _numbered(source, name)
        counts = table.select(mask.sum().alias(str(k)) for k, mask in enumerate(kinds)).row(0)
        fits = kinds[max(range(len(kinds)), key=lambda k: (counts[k], k))]
        wrong = table.filter(~fits).head(1)
        if len(wrong):
            row, value = wrong.row(0)
            what = "there is no time" if value is None else f"{value!r} is no time like the others"
            raise BadValueError(f"{cell(source.file, name, row)}: {what}; {RULE}")


def _numbered(source: Source, name: str) -> pl.DataFrame:
    pl = import_polars()
    with source.reading():
        rows = source.scan({name: pl.String}).select(_text(name)).with_row_index(ROW, offset=1)
        return rows.collect(engine="streaming")
