"""Penalties on the difference of neighbours' weights. To add one: write its file, add its line here."""

from coterie.problem.penalties.base import Penalty
from coterie.problem.penalties.squared import SquaredVariation
from coterie.problem.penalties.tv_l1 import TotalVariation
from coterie.problem.penalties.tv_l2 import GroupTotalVariation

__all__ = ["PENALTIES", "GroupTotalVariation", "Penalty", "SquaredVariation", "TotalVariation", "as_penalty"]

PENALTIES: dict[str, Penalty] = {
    "l1": TotalVariation(),
    "l2": GroupTotalVariation(),
    "squared": SquaredVariation(),
}
"""By the names that settings and options have for them."""


def as_penalty(penalty: str | Penalty) -> Penalty:
    """Return the penalty of that name."""
    if isinstance(penalty, str) and penalty not in PENALTIES:
        raise ValueError(f"there is no penalty {penalty!r}; choose one of {', '.join(PENALTIES)}")
    return PENALTIES[penalty] if isinstance(penalty, str) else penalty
