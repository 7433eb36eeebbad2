"""--lower and --upper: between which numbers coefficients stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from coterie.cli.errors import BadInputError
from coterie.cli.strengths import named_number


@dataclass(frozen=True)
class Bounds:
    """What the options say: None, one number for all features, or one for some of them by name."""

    lower: float | dict[str, float] | None
    upper: float | dict[str, float] | None

    @classmethod
    def read(cls, lower: Sequence[str] | None, upper: Sequence[str] | None) -> Bounds:
        """From texts such as age=0, or -1."""
        return cls(_read(lower, "--lower"), _read(upper, "--upper"))

    @property
    def are_there(self) -> bool:
        return self.lower is not None or self.upper is not None

    def of(self, features: Sequence[str], one_hot: Sequence[str]) -> dict[str, Any]:
        """The parameters of an estimator with these features; names that are none are refused."""
        from coterie.estimators.column_strength import of_features

        given = {"lower": self.lower, "upper": self.upper}
        return {
            name: of_features(bound, features, one_hot, False, f"--{name}") if isinstance(bound, dict) else bound
            for name, bound in given.items()
        }


def _read(given: Sequence[str] | None, option: str) -> float | dict[str, float] | None:
    named: dict[str, float] = {}
    for text in given or ():
        name, equals, value = named_number(text)
        if isnan(value) or (equals and not name):
            raise BadInputError(f"{option} {text}: give column=number, as age=0, or one number for all features")
        if not name and len(given or ()) > 1:
            raise BadInputError(f"{option} {text}: one number is for all features; leave the other bounds out")
        if name in named:
            raise BadInputError(f"{option} {text}: {name} has a bound already")
        named[name] = value
    return None if not named else named.get("", named)
