"""Squared variation: smooth differences, no clusters (Laplacian regularisation)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coterie.problem.arrays import Array
from coterie.problem.penalties.base import Penalty


@dataclass(frozen=True)
class SquaredVariation(Penalty):
    """φ(z) = ‖z‖₂²: weights vary gradually; no two are exactly equal at any finite λ.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> ct.SquaredVariation().value(np.array([[3.0, -4.0]]), c=np.array([2.0]))
    50.0
    """

    kernel: ClassVar[int] = 2
    degree: ClassVar[int] = 2
    couples: ClassVar[bool] = False

    def value(self, z: Array, c: Array) -> float:
        return float(c @ (z**2).sum(axis=1))

    def conjugate(self, u: Array, c: Array) -> float:
        u, c = np.abs(u[c > 0]), c[c > 0, None]
        return float((u * (u / (4 * c))).sum())  # u² alone could vanish beside a small c

    def dual_step(self, u: Array, c: Array, sigma: Array) -> Array:
        return u * (2 * c / (2 * c + sigma))[:, None]

    def into_domain(self, u: Array, c: Array) -> Array:
        return u * (c > 0)[:, None]

    def strength_needed(self, u: Array, A: Array) -> float:
        return float(np.inf) if u.any() else 0.0

    def spread(self, budget: float, weakest: Array, longest: Array) -> Array:
        return np.sqrt(longest * budget / weakest)
