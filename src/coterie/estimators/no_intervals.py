"""What stands where a model has no prediction intervals, and says why."""

from __future__ import annotations

from typing import NoReturn


class NoIntervals:
    """In place of a method that there is not: `hasattr` is False, and the error says why and what to do instead."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self.name}: {self.instead}")
