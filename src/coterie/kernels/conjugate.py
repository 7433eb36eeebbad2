"""Conjugate gradients on node vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.kernels import jit, reordered
from coterie.kernels.interruption import time_is_up


@reordered
def inner(a, b):
    """⟨a, b⟩. (A threaded BLAS would wake its threads for each of these short sums, at many times the cost.)"""
    total = 0.0
    x, y = a.ravel(), b.ravel()
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@jit
def descend(alpha, p, Ap, inverse, x, r, z):
    """One step of preconditioned conjugate gradients: x ← x + αp, r ← r − αAp, z ← r · inverse."""
    X, R, Z, P, AP, J = x.ravel(), r.ravel(), z.ravel(), p.ravel(), Ap.ravel(), inverse.ravel()
    for i in range(len(X)):
        X[i] += alpha * P[i]
        R[i] -= alpha * AP[i]
        Z[i] = J[i] * R[i]


@jit
def turn(beta, z, p):
    """The next direction: p ← z + βp."""
    P, Z = p.ravel(), z.ravel()
    for i in range(len(P)):
        P[i] = Z[i] + beta * P[i]


class ConjugateGradients:
    """Jacobi-preconditioned steps on a (projected) Laplacian, all coordinates at once; rest and diagonal are used up.

    ``apply(x, out)`` writes the product, ``keep(x)`` projects in place.
    """

    def __init__(
        self, apply: Callable[[Any, Any], None], rest: Any, diagonal: Any, keep: Callable[[Any], None]
    ) -> None:
        self.apply, self.keep = apply, keep
        self.inverse = np.divide(1.0, diagonal, out=diagonal, where=diagonal > 0)
        self.x, self.r, self.Ap = np.zeros_like(rest), rest, np.empty_like(rest)
        self.z = self.inverse * rest
        keep(self.z)
        self.p, self.rz = self.z.copy(), inner(rest, self.z)
        self.first, self.steps = self.rz, 0

    def run(self, steps: int, accuracy: float) -> Any:
        """Take up to so many more steps, until the residual is `accuracy` of the first; return x."""
        for _ in range(steps):
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
