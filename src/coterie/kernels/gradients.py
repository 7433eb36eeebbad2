"""Conjugate gradients on node vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.interruption import time_is_up

steps, unseen = Either("conjugate"), Either("unseen")

LEAST = float(np.finfo(float).tiny)  # of a diagonal: what is smaller has no inverse that a float can hold


class ConjugateGradients:
    """Preconditioned steps on a Laplacian, all coordinates at once; rest and diagonal are used up.

    ``apply(x, out)`` writes the product. With `seen`, nodes in ascending order and what their rows see (None:
    everything), x keeps to the directions that they do not see, and what `rest` has in others does not count: the
    preconditioner is the inverse of the diagonal *on* these directions, so that nothing else has to keep vectors
    there, and no rounding leads away.
    """

    def __init__(self, apply: Callable[[Any, Any], None], rest: Any, diagonal: Any, seen: Any = None) -> None:
        self.apply = apply
        self.inverse = np.divide(1.0, diagonal, out=diagonal, where=diagonal > LEAST)
        self.leave = self._leaving(seen)
        self._begin(rest, np.zeros_like(rest), np.empty_like(rest), np.empty_like(rest))

    def _leaving(self, seen: Any) -> Callable[..., None]:
        """What takes z out of the directions that are seen."""
        if seen is None:
            return as_it_is
        nodes, rows = seen
        if rows is None:
            self.inverse[nodes] = 0.0
            return as_it_is
        room, F = vector_buffer(rows.shape[2]), np.empty_like(rows)
        unseen.factorise(room, nodes, rows, self.inverse, F)
        return partial(unseen.leave, room, nodes, F)

    def _begin(self, rest: Any, x: Any, Ap: Any, p: Any) -> None:
        """Take the residual, zeros for x, and room for two more vectors."""
        self.x, self.r, self.Ap, self.p = x, rest, Ap, p
        self.z = self.inverse * rest
        self.leave(rest, self.z)
        self.p[:] = self.z
        self.rz = self._inner(rest, self.z)
        self.first, self.steps = self.rz, 0

    def run(self, most: int, accuracy: float) -> Any:
        """Take up to so many more steps, until the residual is `accuracy` of the first; return x."""
        inner, descend, turn = self._inner, steps.descend, steps.turn
        for _ in range(most):
            if self.rz <= accuracy**2 * self.first or time_is_up():
                break
            self.apply(self.p, self.Ap)
            self.steps += 1
            curvature = inner(self.p, self.Ap)
            if curvature <= 0:
                break
            descend(self.rz / curvature, self.p, self.Ap, self.inverse, self.x, self.r, self.z)
            self.leave(self.r, self.z)
            self.rz, before = inner(self.r, self.z), self.rz
            turn(self.rz / before, self.z, self.p)
        return self.x

    def _inner(self, a: Any, b: Any) -> float:
        """⟨a, b⟩."""
        return steps.inner(a, b)

    def steps_to(self, accuracy: float) -> float:
        """How many steps that accuracy will take, from the beginning, at the pace so far."""
        left = self.rz / self.first if self.first > 0 else 0.0
        if left <= accuracy**2:
            return self.steps
        if not (accuracy > 0 and 0 < left < 1):
            return math.inf
        return 2 * self.steps * math.log(accuracy) / math.log(left)


def as_it_is(r: Any, z: Any) -> None:
    """Leave z alone."""
