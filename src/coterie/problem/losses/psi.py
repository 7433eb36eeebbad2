"""The scalar function ψ of a row, which losses that are sums over rows have in common.

A row with features x and label y costs ψ(e), where e = direction·⟨x, w⟩ + shift is the one number that its loss depends
on: the residual y − ⟨x, w⟩ unless a family says otherwise. ψ is convex and never negative. All functions take arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import ClassVar

import numpy as np

from coterie.kernels import kinds
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array

INSIDE = 1 - 16 * EPS  # of the way to where ψ* ends: what rounding cannot leave


class Psi(ABC):
    """ψ, ψ′, ψ″ and ψ*, and what is known of them.

    What is not declared is not used: without a lemma about ψ, bounds are conditional, unless a ridge holds weights and
    it is known how steep or how bent ψ can be.
    """

    kernel: ClassVar[int | None] = None
    """The number of its compiled form (`kernels/kinds.py`); None: NumPy does the work."""
    self_concordant: ClassVar[bool] = False
    """Whether |ψ‴| ≤ ψ″."""
    second_floats: ClassVar[bool] = False
    """Whether it is known what a dual in twice the precision costs (`solver/whole/twofold.py`)."""
    bounded: ClassVar[bool] = False
    """Whether slopes are often as steep as they can be, or as flat: few rows then cannot have any slope they see."""
    straight: ClassVar[bool] = False
    """Whether ψ is a straight line where it is not flat: quadratics then describe it too short a way."""
    clipped: ClassVar[bool] = False
    """Whether ψ* is a parabola between the ends of its domain, of a ψ whose curvature is `curvature` or none."""
    scales: ClassVar[bool] = False
    """Whether labels have a unit, in which `in_units` divides them."""
    no_minimiser: ClassVar[str] = ""
    """Why a sum of ψ may have no minimiser, and what to do, if it can."""
    curvature: float = inf
    """ψ″ at most."""
    lipschitz: float = inf
    """|ψ′| at most."""

    @abstractmethod
    def psi(self, e: Array, y: Array) -> Array:
        """ψ(e) ≥ 0."""

    @abstractmethod
    def slope(self, e: Array, y: Array) -> Array:
        """ψ′(e)."""

    @abstractmethod
    def bend(self, e: Array, y: Array) -> Array:
        """ψ″(e)."""

    @abstractmethod
    def conjugate(self, t: Array, y: Array) -> Array:
        """ψ*(t) = sup_e te − ψ(e), for t inside `domain`."""

    def domain(self, y: Array) -> tuple[Array | float, Array | float]:
        """The slopes that ψ has: from where to where ψ* is finite."""
        return -self.lipschitz, self.lipschitz

    def direction(self, y: Array) -> Array:
        """±1, by which e changes with the margin ⟨x, w⟩."""
        return np.full_like(y, -1.0)

    def shift(self, y: Array) -> Array:
        """e of a margin of zero."""
        return y

    @property
    def parameter(self) -> float:
        """What the compiled form is told besides its number."""
        return 0.0

    def absorb(self, y: Array, s: Array, offset: Array) -> tuple[Array, Array]:
        """Labels and factors of rows that say the same of ⟨x, w⟩ as these say of ⟨x, w⟩ + offset."""
        return y - offset, s

    steady: ClassVar[float] = 0.0
    """How far e can move without ψ″ becoming less than `steady_bend`; used where that is all that is known."""

    def steady_bend(self, t: Array, y: Array, way: Array | float) -> Array:
        """ψ″ at least, as far as `way` from where the slope is t."""
        return np.zeros_like(t)

    @property
    def rise(self) -> tuple[float, float] | None:
        """(c, d) with ψ(e) ≥ c|e| − d for a residual e, c > 0, which encloses minimisers; None: nothing is known."""
        return None

    @property
    def encloses(self) -> bool:
        """Whether anything is known that encloses minimisers."""
        return self is SQUARED or self.self_concordant or self.steady > 0 or self.rise is not None

    def in_units(self, y: float) -> tuple[Psi, float]:
        """ψ of labels y/y, and what its values are to be multiplied with."""
        return self, 1.0

    def constant(self, y: Array, s: Array) -> float:
        """The margin of the best constant model, or of one close to it."""
        return 0.0

    def constant_loss(self, y: Array, s: Array) -> float:
        """Σ s ψ of that model."""
        return float(s @ self.psi(self.direction(y) * self.constant(y, s) + self.shift(y), y))

    def working_bend(self, e: Array, y: Array) -> Array:
        """What Newton's method takes for ψ″: another number only where that makes steps far too short."""
        return self.bend(e, y)

    def most_bend(self, e: Array, y: Array, way: Array | float) -> Array:
        """ψ″ at most, as far as `way` from e; where nothing else is known, away from e, as much as anywhere."""
        bend = self.bend(e, y)
        if self.self_concordant:
            return np.minimum(bend * np.exp(way), self.curvature)
        return bend if self.curvature == inf else np.where(np.asarray(way) > 0, self.curvature, bend)

    def steepest(self, t: Array, y: Array, way: Array | float) -> Array:
        """|ψ′| at most, as far as `way` from where it is t."""
        return np.minimum(np.abs(t) + self.curvature * way, self.lipschitz)

    def value_rounding(self, t: Array, y: Array) -> Array:
        """How far ψ, as computed where its slope is t, may be off, beyond 1e-10 of it."""
        return np.zeros_like(t)

    def slope_rounding(self, t: Array, y: Array, miss: Array) -> Array:
        """How far a slope that was computed to be t may be off, where e may be off by `miss` before it is rounded."""
        return self.curvature * miss + 4 * EPS * np.abs(t)

    def conjugate_rounding(self, t: Array, y: Array) -> Array:
        """How far ψ*(t) may be off, beyond 8 EPS of it, because t is rounded, or by what cancels in it."""
        return np.zeros_like(t)


class SquaredResidual(Psi):
    """ψ(e) = e²."""

    kernel = kinds.SQUARED
    second_floats = True
    scales = True
    curvature = 2.0

    def psi(self, e: Array, y: Array) -> Array:
        return e * e

    def slope(self, e: Array, y: Array) -> Array:
        return 2 * e

    def bend(self, e: Array, y: Array) -> Array:
        return np.full_like(e, 2.0)

    def conjugate(self, t: Array, y: Array) -> Array:
        return t * (t / 4)

    def in_units(self, y: float) -> tuple[Psi, float]:
        return self, y**2

    def constant_loss(self, y: Array, s: Array) -> float:
        total = float(s.sum())
        mean = float(s @ y) / total if total > 0 else 0.0
        return float(s @ (y - mean) ** 2)


SQUARED = SquaredResidual()


def quantile_of(y: Array, s: Array, level: float) -> float:
    """The quantile of labels that count s each; 0 where there are none."""
    if not len(y):
        return 0.0
    order = np.argsort(y)
    share = np.cumsum(s[order])
    return float(y[order][np.searchsorted(share, level * share[-1]).clip(max=len(y) - 1)])
