"""Total variation: the paper's penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coterie.problem.arrays import Array
from coterie.problem.penalties.base import Penalty


@dataclass(frozen=True)
class TotalVariation(Penalty):
    """φ(z) = ‖z‖₁: each coordinate is piecewise constant over the graph, with cuts of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> ct.TotalVariation().value(np.array([[3.0, -4.0]]), c=np.array([2.0]))
    14.0
    """

    kernel: ClassVar[int] = 0
    is_norm: ClassVar[bool] = True
    couples: ClassVar[bool] = False
    exact_clusters: ClassVar[bool] = True

    def value(self, z: Array, c: Array) -> float:
        return float(c @ np.abs(z).sum(axis=1))

    def conjugate(self, u: Array, c: Array) -> float:
        return 0.0

    def dual_step(self, u: Array, c: Array, sigma: Array) -> Array:
        """The paper's clipping T^{(λA_e)}."""
        return self.into_domain(u, c)

    def into_domain(self, u: Array, c: Array) -> Array:
        return np.clip(u, -c[:, None], c[:, None])

    def strength_needed(self, u: Array, A: Array) -> float:
        return float((np.abs(u) / A[:, None]).max(initial=0.0))

    def spread(self, budget: float, weakest: Array, longest: Array) -> Array:
        return budget / weakest
