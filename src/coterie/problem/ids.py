"""What callers call their nodes, and the numbers 0 … |V| − 1 that stand for them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_ids(ids: Any, what: str = "ids") -> list[Hashable]:
    """Return a sequence, array or column of ids as a list of plain Python values."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise TypeError(f"{what} must be a sequence of node ids, got {ids!r}")
    if hasattr(ids, "columns"):
        raise ValueError(f"{what} must be one column, got a frame with the columns {list(ids.columns)}")
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise ValueError(f"{what} must be one-dimensional, got shape {ids.shape}")
        return list(ids) if ids.dtype.kind in "mM" else ids.tolist()  # tolist makes bare integers of times
    if hasattr(ids, "to_list"):  # a column of pandas, polars or narwhals
        return ids.to_list()
    return [name.item() if isinstance(name, np.number | np.bool_ | np.str_) else name for name in ids]


def is_absent(name: Any) -> bool:
    """Whether a cell of a table holds nothing: None, nan, or what libraries have for it."""
    try:
        return name is None or bool(name != name)
    except TypeError:  # pandas' NA
        return True


def are_text(ids: Iterable[Hashable]) -> bool:
    """Whether all ids are text."""
    return all(isinstance(name, str) for name in ids)


class Pairs(Sequence[Hashable]):
    """All pairs (first, second), the first running faster; none is made before it is asked for."""

    def __init__(self, first: Sequence[Hashable], second: Sequence[Hashable]) -> None:
        self.first, self.second = first, second

    def __len__(self) -> int:
        return len(self.first) * len(self.second)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return tuple(self[number] for number in range(len(self))[k])
        later, number = divmod(range(len(self))[k], len(self.first))
        return self.first[number], self.second[later]


class PairNumbers(Mapping[Hashable, int]):
    """The number of each pair."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.first, self.second = numbering(pairs.first), numbering(pairs.second)

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.pairs)

    def __getitem__(self, pair: Any) -> int:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise KeyError(pair)
        return self.second[pair[1]] * len(self.first) + self.first[pair[0]]


def numbering(ids: Sequence[Hashable]) -> Mapping[Hashable, int]:
    """Return the number of each id, or say which id is listed twice."""
    if isinstance(ids, Pairs):
        return PairNumbers(ids)
    number = dict(zip(ids, range(len(ids)), strict=True))
    if len(number) < len(ids):
        again = next(name for k, name in enumerate(ids) if number[name] != k)
        raise ValueError(f"the node id {again!r} is listed twice; a list of nodes has each once")
    return number


def look_up(ids: Sequence[Hashable], number: Mapping[Hashable, int]) -> NDArray[np.int64]:
    """Return the numbers of ids, −1 for an unknown one."""
    return np.fromiter(map(number.get, ids, repeat(-1)), np.int64, count=len(ids))


def written(name: Any) -> str:
    """An id in a message: as Python writes it, but dates in figures."""
    if isinstance(name, tuple):
        return f"({', '.join(map(written, name))})"
    return str(name) if isinstance(name, date | np.datetime64) else repr(name)


def some_of(ids: Iterable[Hashable], most: int = 5) -> str:
    """List the first few different ids, for messages."""
    different = list(islice(dict.fromkeys(ids), most + 1))
    return ", ".join(map(written, different[:most])) + (", …" if len(different) > most else "")
