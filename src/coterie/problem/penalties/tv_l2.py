"""Group total variation: the network Lasso of Hallac, Leskovec and Boyd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coterie.problem.arrays import Array
from coterie.problem.penalties.base import Penalty


@dataclass(frozen=True)
class GroupTotalVariation(Penalty):
    """φ(z) = ‖z‖₂: neighbours agree in all coordinates or differ in all, with the same cuts.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> ct.GroupTotalVariation().value(np.array([[3.0, -4.0]]), c=np.array([2.0]))
    10.0
    """

    kernel: ClassVar[int] = 1
    is_norm: ClassVar[bool] = True

    def value(self, z: Array, c: Array) -> float:
        return float(c @ np.linalg.norm(z, axis=1))

    def conjugate(self, u: Array, c: Array) -> float:
        return 0.0

    def dual_step(self, u: Array, c: Array, sigma: Array) -> Array:
        return self.into_domain(u, c)

    def into_domain(self, u: Array, c: Array) -> Array:
        length = np.linalg.norm(u, axis=1)
        factor = np.divide(c, length, out=np.ones_like(c), where=length > c)
        return u * factor[:, None]

    def strength_needed(self, u: Array, A: Array) -> float:
        return float((np.linalg.norm(u, axis=1) / A).max(initial=0.0))

    def spread(self, budget: float, weakest: Array, longest: Array) -> Array:
        return budget / weakest
