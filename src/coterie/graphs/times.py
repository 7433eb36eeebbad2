"""Times as tables have them: when they are, which comes after which, and by how much."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from datetime import datetime
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from coterie.problem.arrays import Array
from coterie.problem.ids import as_ids, is_absent
from coterie.problem.months import are_months_first

COMPACT = re.compile(r"((?:1[89]|20)\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])?")
"""Months and days as numbers: 202312, 20231231."""
DATE = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2})([T ].+)?)?")
QUARTER, WEEK = re.compile(r"(\d{4})-?Q([1-4])"), re.compile(r"(\d{4})-?W(\d\d)")
DAY = re.compile(r"\s*\d{4}-\d{1,2}-\d{1,2}([T ].+)?\s*")
IN_ORDER = re.compile(r"\D*(0+\D*|0000.*|0+(:0+)+\D*)")
"""Text, each digit of which is written as 0, in which the first number counts most."""
YEARS = re.compile(r"\D*(\d{4})\D+((?:1[5-9]|2\d)\d\d)(?!\d)\D*")
"""Two numbers of four digits, of which the second is a year."""
RULE = "times are numbers, dates, or text such as 2025-07, 2025-07-01, 2025-07-01 12:00 or 2025-Q3"


class NoDateError(ValueError):
    """What looks like a day, and is none."""


def in_order(times: Any) -> tuple[list[Hashable], list[Any]]:
    """The different times in ascending order, and what each says."""
    different = list(dict.fromkeys(as_ids(times, "times")))
    if not different:
        raise ValueError("there are no times")
    if absent := [time for time in different if is_absent(time) or (isinstance(time, float) and not isfinite(time))]:
        raise ValueError(f"one of the times is {absent[0]!r}; leave out rows without a time")
    said = what_they_say(different)
    try:
        order = sorted(range(len(said)), key=said.__getitem__)
    except TypeError:
        other = next((time for time in different if type(time) is not type(different[0])), different[-1])
        raise ValueError(
            f"times must be all numbers, all dates (with a time zone or without) or all text, got {different[0]!r} "
            f"and {other!r}"
        ) from None
    ids, said = [different[k] for k in order], [said[k] for k in order]
    for k, (before, after) in enumerate(pairwise(said)):
        if not before < after:
            raise ValueError(f"the times {ids[k]!r} and {ids[k + 1]!r} are one; write them in one way")
    return ids, said


def what_they_say(times: Sequence[Any]) -> list[Any]:
    """Times that can be compared: text of numbers, months, quarters, weeks or dates as these, all others as they are.

    Whole numbers are months or days where all of them can be: 202312 comes one month before 202401.

    Other text is in alphabetical order, which is that of time where digits alone differ, and the first of them count
    most: there is one number (week 07), a year comes first (FY2023-2024), or it is a clock (09:15).
    """
    text = all(isinstance(time, str) for time in times)
    if not text and not all(isinstance(time, int) for time in times):
        return list(times)
    months_first = text and are_months_first(times)
    for read in () if months_first else READERS:
        try:
            return [read(str(time)) for time in times] if text or read is not _number else list(times)
        except NoDateError as error:
            if all(map(COMPACT.fullmatch, map(str, times))) or all(map(DAY.fullmatch, map(str, times))):
                raise ValueError(f"there is no date {error.args[0]!r}; {RULE}") from None
        except ValueError:
            pass
    shapes = {re.sub(r"\d", "0", time) for time in times}
    ordered = len(shapes) == 1 and IN_ORDER.fullmatch(shapes.pop()) is not None
    if months_first or not ordered or not all(map(_year_is_first, times)):
        raise ValueError(f"it cannot be told when {times[0]!r} is, beside {times[-1]!r}; {RULE}")
    return list(times)


def is_after(time: Any, last: Any) -> bool:
    """Whether one time comes after another; False where they cannot be compared."""
    try:
        before, after = what_they_say([last, time])
        return bool(after > before) and not (isinstance(after, float) and not isfinite(after))
    except (TypeError, ValueError):
        return False


def gaps(said: Sequence[Any]) -> Array:
    """How far each time is from the one before, in units of its own; of text that is neither number nor date: 1."""
    if isinstance(said[0], str):
        return np.ones(len(said) - 1)
    try:
        return np.array([_length(after - before) for before, after in pairwise(said)], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"it cannot be told how far times such as {said[0]!r} are apart; {RULE}") from None


def _length(step: Any) -> float:
    """A difference of times: of numbers, of dates, or of periods of pandas, which have so many units n."""
    if isinstance(step, np.timedelta64):
        return float(step.astype(np.int64))
    return step.total_seconds() if hasattr(step, "total_seconds") else float(getattr(step, "n", step))


def _year_is_first(text: str) -> bool:
    """Whether this is not a day or a month before its year: of two years, the second is the next one (2023/2024)."""
    two = YEARS.fullmatch(text)
    return two is None or int(two[2]) - int(two[1]) in (0, 1)


def _number(text: str) -> float:
    if not isfinite(value := float(text)):
        raise ValueError(text)
    return value


def _compact_month(text: str) -> np.datetime64:
    found = COMPACT.fullmatch(text.strip())
    if found is None or found[3] is not None:
        raise ValueError(text)
    return np.datetime64(f"{found[1]}-{found[2]}")


def _compact_day(text: str) -> datetime:
    found = COMPACT.fullmatch(text.strip())
    if found is None or found[3] is None:
        raise ValueError(text)
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        raise NoDateError(text) from None


def _quarter(text: str) -> np.datetime64:
    """The first month of it."""
    if (found := QUARTER.fullmatch(text.strip())) is None:
        raise ValueError(text)
    return np.datetime64(f"{found[1]}-{3 * int(found[2]) - 2:02}")


def _week(text: str) -> datetime:
    """The Monday of it, as ISO 8601 counts weeks."""
    if (found := WEEK.fullmatch(text.strip())) is None:
        raise ValueError(text)
    return datetime.fromisocalendar(int(found[1]), int(found[2]), 1)


def _month(text: str) -> np.datetime64:
    year, month, day, _ = _parts(text)
    if day is not None:
        raise ValueError(text)
    return np.datetime64(f"{year}-{month:>02}")


def _date(text: str) -> datetime:
    year, month, day, clock = _parts(text)
    try:
        return datetime.fromisoformat(f"{year}-{month:>02}-{day or 1:>02}{clock or ''}")
    except ValueError:
        raise NoDateError(text) from None


def _parts(text: str) -> tuple[Any, ...]:
    if (found := DATE.fullmatch(text.strip())) is None:
        raise ValueError(text)
    return found.groups()


READERS = _compact_month, _compact_day, _number, _month, _quarter, _week, _date
"""What text is tried as, one after the other."""
