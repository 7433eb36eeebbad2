"""Conjugate gradients on node vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.kernels.choice import Either
from coterie.kernels.interruption import time_is_up

steps = Either("conjugate")

LEAST = float(np.finfo(float).tiny)  # of a diagonal: what is smaller has no inverse that a float can hold


class ConjugateGradients:
    """Jacobi-preconditioned steps on a (projected) Laplacian, all coordinates at once; rest and diagonal are used up.

    ``apply(x, out)`` writes the product, ``keep(x)`` projects in place. Vectors are what `kernels` works on.
    """

    kernels: Any = steps

    def __init__(
        self, apply: Callable[[Any, Any], None], rest: Any, diagonal: Any, keep: Callable[[Any], None]
    ) -> None:
        self.apply, self.keep = apply, keep
        self.inverse = np.divide(1.0, diagonal, out=diagonal, where=diagonal > LEAST)
        self._begin(rest, np.zeros_like(rest), np.empty_like(rest), np.empty_like(rest))

    def _begin(self, rest: Any, x: Any, Ap: Any, p: Any) -> None:
        """Take the residual, zeros for x, and room for two more vectors."""
        self.x, self.r, self.Ap, self.p = x, rest, Ap, p
        self.z = self.inverse * rest
        self.keep(self.z)
        self.p[:] = self.z
        self.rz = self.kernels.inner(rest, self.z)
        self.first, self.steps = self.rz, 0

    def run(self, most: int, accuracy: float) -> Any:
        """Take up to so many more steps, until the residual is `accuracy` of the first; return x."""
        inner, descend, turn = self.kernels.inner, self.kernels.descend, self.kernels.turn
        for _ in range(most):
            if self.rz <= accuracy**2 * self.first or time_is_up():
                break
            self.apply(self.p, self.Ap)
            self.steps += 1
            curvature = inner(self.p, self.Ap)
            if curvature <= 0:
                break
            descend(self.rz / curvature, self.p, self.Ap, self.inverse, self.x, self.r, self.z)
            self.keep(self.z)
            self.rz, before = inner(self.r, self.z), self.rz
            turn(self.rz / before, self.z, self.p)
        return self.x

    def steps_to(self, accuracy: float) -> float:
        """How many steps that accuracy will take, from the beginning, at the pace so far."""
        left = self.rz / self.first if self.first > 0 else 0.0
        if left <= accuracy**2:
            return self.steps
        if not (accuracy > 0 and 0 < left < 1):
            return math.inf
        return 2 * self.steps * math.log(accuracy) / math.log(left)
