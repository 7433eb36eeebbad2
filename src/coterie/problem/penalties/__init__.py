"""Penalties on the difference of neighbours' weights. To add one: write its file, add its line here."""

from coterie.problem.penalties.base import Penalty
from coterie.problem.penalties.squared import SquaredVariation
from coterie.problem.penalties.tv_l1 import TotalVariation
from coterie.problem.penalties.tv_l2 import GroupTotalVariation

__all__ = ["GroupTotalVariation", "Penalty", "SquaredVariation", "TotalVariation"]
