"""A lower bound on the optimum: what it rests on, when weights refute it, and when another one is better."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

REFUTED = 1e-12  # of the unit of gaps: a bound above the objective of known weights by more than that is false
STALE = 0.5  # of the weights that a new condition allows: a condition that allows only these asks for more


@dataclass(frozen=True)
class Bound:
    """No weights reach less than `value`; unless it is unconditional, only if `condition` holds.

    Attributes
    ----------
    value : float
    unconditional : bool
    weight_bound : float
        The largest weight that it allows a minimiser to have.
    residual_l1 : float
        What it is charged for each unit of that.
    """

    value: float
    unconditional: bool
    weight_bound: float = inf
    residual_l1: float = 0.0

    @property
    def condition(self) -> str:
        """What it rests on, in words; nothing where it is unconditional."""
        return "" if self.unconditional else condition(self.weight_bound)

    def is_refuted_by(self, objective: float, unit: float) -> bool:
        """Whether weights with this objective are below it: then its condition is false.

        An unconditional bound that is refuted is an error of this program, and must not pass for a gap of 0.
        """
        refuted = self.value > objective + REFUTED * unit
        if refuted and self.unconditional:
            raise ArithmeticError(
                f"the proven bound {self.value!r} is above the objective {objective!r}: please report this"
            )
        return refuted

    def gap(self, objective: float, unit: float) -> float:
        """(objective − value) / unit, and zero when they meet; ∞ for weights that the problem forbids."""
        if objective == inf or self.is_refuted_by(objective, unit):
            return inf
        return max(objective - self.value, 0.0) / unit

    def is_better_than(self, other: Bound, objective: float, unit: float) -> bool:
        """Which of two to keep: what is proven before what is not, what asks for less, what is higher."""
        if self.is_refuted_by(objective, unit) or other.is_refuted_by(objective, unit):
            return not self.is_refuted_by(objective, unit)
        asks_less = not other.unconditional and (self.unconditional or other.weight_bound < STALE * self.weight_bound)
        return asks_less or self.value > other.value


def condition(weight_bound: float) -> str:
    """What a bound rests on that holds only for minimisers with weights up to `weight_bound`."""
    return f"some minimiser has no weight above {weight_bound:.3g} in absolute value"
