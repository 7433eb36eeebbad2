"""Labels of files: which there are, how often, and whether those that came as text are numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coterie.io.sources import import_polars

if TYPE_CHECKING:
    import polars as pl


def label_counts(y: pl.Series) -> dict[Any, int]:
    """How many rows have each label, a name or a number; those without one do not count."""
    known = y.drop_nulls()
    known = known.drop_nans() if known.dtype.is_float() else known
    table = known.alias("label").value_counts()
    return dict(zip(table["label"].to_list(), table["count"].to_list(), strict=True))


def as_numbers(labels: pl.Series) -> pl.Series | None:
    """Labels that came as text as numbers, null where there is none; None where some are names."""
    numbers = labels.cast(import_polars().Float64, strict=False)
    return numbers if numbers.null_count() == labels.null_count() else None


def counts_as_numbers(counts: dict[Any, int]) -> dict[Any, int]:
    """The same of labels that were counted."""
    pl = import_polars()
    numbers = as_numbers(pl.Series(list(counts), dtype=pl.String))
    if numbers is None:
        return counts
    found = dict.fromkeys(numbers.to_list(), 0)
    for number, count in zip(numbers.to_list(), counts.values(), strict=True):
        found[number] += count  # "1" and "1.0" are one
    return found
