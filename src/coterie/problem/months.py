"""Months that are written before their years, as 12.2024: as numbers they would be in another order."""

from __future__ import annotations

import re
from collections.abc import Collection

MONTH_FIRST = re.compile(r"(0?[1-9]|1[0-2])\.(1[89]|20)\d\d")


def are_months_first(times: Collection[str]) -> bool:
    """Whether all of these texts are such months."""
    return bool(times) and all(MONTH_FIRST.fullmatch(time.strip()) for time in times)
