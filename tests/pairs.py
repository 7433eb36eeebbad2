"""Parameters of a test: every two of them together, but not every three."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any


def in_pairs(longest: Sequence[Any], *others: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows with one value of each list, in which every two values of two lists meet; few rows, not all combinations.

    Rows are taken greedily: the one that brings most new pairs comes next.
    """
    lists = [longest, *others]
    rows = list(product(*(range(len(values)) for values in lists)))
    pairs = {row: {(a, row[a], b, row[b]) for b in range(len(row)) for a in range(b)} for row in rows}
    missing, chosen = set().union(*pairs.values()), []
    while missing:
        row = max(rows, key=lambda row: len(pairs[row] & missing))
        chosen.append(row)
        missing -= pairs[row]
    return [tuple(values[k] for values, k in zip(lists, row, strict=True)) for row in chosen]
