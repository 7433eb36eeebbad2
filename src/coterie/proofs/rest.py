"""What a dual point leaves at the nodes: ρ = q + Dᵀu, which a certificate is charged for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

kernels = Either("charge")


class Rest(NamedTuple):
    """ρ = q + Dᵀu (V, n) of a dual point, how far it may be from the truth, and the weights that it was computed at.

    An engine that keeps these elsewhere has a class of its own with the same methods.
    """

    rho: Array
    rounding_bound: Array
    w: Array

    @property
    def here(self) -> Rest:
        """The same as arrays of this process."""
        return self

    def is_nothing(self) -> bool:
        return not self.rho.any() and not self.rounding_bound.any()

    def ceiling(self, problem: BoundProblem, level: float) -> float:
        """What the objective at w can be at most, where `level` was computed."""
        return problem.f.ceiling(level, self.w[problem.labelled])

    def within(self, caps: Array) -> float:
        """Σ |ρ| · |z − w| for weights |z| up to caps (n,), at most."""
        return float(((np.abs(self.rho) + self.rounding_bound) * (caps + np.abs(self.w))).sum())

    def gathered(self, group: NDArray[np.int64], centre: Array) -> tuple[Array, ...]:
        """Sums over the nodes of each group, and how far they may be off: see `kernels.charge.gather`."""
        G, n = centre.shape
        first, lost = np.zeros((2, G))
        total, slack, size = np.zeros((3, G, n))
        kernels.gather(self.rho, self.rounding_bound, self.w, group, centre, first, lost, total, slack, size)
        return first, lost, total, slack, size
