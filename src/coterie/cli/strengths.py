"""--strength: how much differences in each coefficient count."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

from coterie.cli.errors import BadInputError


def named_number(text: str) -> tuple[str, bool, float]:
    """The name and the number of a text such as age=2, and whether there is a "="; nan for what is no number.

    The number comes after the last "=".
    """
    name, equals, number = text.rpartition("=")
    try:
        return name, bool(equals), float(number)
    except ValueError:
        return name, bool(equals), nan


def read_strengths(given: Sequence[str] | None) -> dict[str, float]:
    """What options such as age=inf say, by column."""
    from coterie.problem.strengths import RULE, is_strength

    found: dict[str, float] = {}
    for text in given or ():
        name, _, value = named_number(text)
        if not name or not is_strength(value):
            raise BadInputError(f"--strength {text}: give column=strength, as age=2 or age=inf; {RULE}")
        if name in found:
            raise BadInputError(f"--strength {text}: {name} has a strength already")
        found[name] = value
    return found


def check_engine(given: dict[str, float], engine: str) -> None:
    """Refuse strengths that an engine cannot have."""
    ends = [name for name, value in given.items() if value in (0.0, inf)]
    if ends and engine == "gpu":
        raise BadInputError(
            f"--strength {ends[0]}={given[ends[0]]:g}: strengths of 0 and inf are not known to the GPU; leave "
            "--engine gpu out"
        )
