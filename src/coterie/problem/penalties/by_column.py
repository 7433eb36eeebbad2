"""Penalties with a strength s_k for each column, relative to λ: 0 (nodes alone) to ∞ (nodes equal).

A column of strength 0 is *free*: no edge counts it, and its duals are 0. A column of strength ∞ is *tied*: neighbours
that differ in it are not allowed, and its duals can be anything. What is neither is *held*. Iterations are compiled
(`kernels/any_n.py`), all the rest is NumPy's work.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.problem.penalties.base import Penalty
from coterie.problem.penalties.squared import SquaredVariation
from coterie.problem.penalties.tv_l1 import TotalVariation
from coterie.problem.penalties.tv_l2 import GroupTotalVariation

LEAST_ROOM = 0.1  # of an edge without slack, against 1 for one with all of it, in corrections of duals
SECULAR_STEPS, ACCURACY = 50, 1e-12  # of Newton's method at most; mostly six are enough


@dataclass(frozen=True)
class ByColumn(Penalty):
    """What the three of them have in common."""

    plain: ClassVar[Penalty]
    """The penalty with strengths of one."""

    strength: tuple[float, ...]

    @cached_property
    def s(self) -> Array:
        """s_k of held columns, and 0 of the others."""
        return np.where(self.held, self.strength, 0.0)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        return np.asarray(self.strength) == 0

    @cached_property
    def tied(self) -> NDArray[np.bool_]:
        return np.asarray(self.strength) == np.inf

    @cached_property
    def held(self) -> NDArray[np.bool_]:
        return ~self.free & ~self.tied

    @cached_property
    def unit(self) -> Array:
        """t_k, so that φ_s(z) is φ of t_k z_k in held columns; 1 in others."""
        return np.where(self.held, self.s, 1.0)

    @property
    def edge_kernel(self) -> int | None:
        return self.plain.kernel

    @property
    def of_one(self) -> Penalty:
        """The penalty in those units: held columns have a strength of one."""
        if self.held.all():
            return self.plain
        return replace(self, strength=tuple(np.where(self.held, 1.0, self.strength).tolist()))

    @property
    def apart(self) -> Array:
        """How far apart two nodes can be in each column, where `spread` is 1: 1/t_k, and 0 in tied columns."""
        return np.where(self.tied, 0.0, np.divide(1.0, self.unit, out=np.full_like(self.s, np.inf), where=self.held))

    def value(self, z: Array, c: Array) -> float:
        return float(np.inf) if z[:, self.tied].any() else self._held_value(z, c)

    @abstractmethod
    def _held_value(self, z: Array, c: Array) -> float:
        """g of held columns."""

    def conjugate(self, u: Array, c: Array) -> float:
        return 0.0

    def dual_step(self, u: Array, c: Array, sigma: Array) -> Array:
        return self.into_domain(u, c)

    def strength_needed(self, u: Array, A: Array) -> float:
        if u[:, self.free].any():
            return float(np.inf)
        size = np.divide(u, self.s, out=np.zeros_like(u), where=self.held)
        return float((self._length(size) / A[:, None]).max(initial=0.0))

    def _length(self, size: Array) -> Array:
        """What of |u_k|/s_k (E, n) is compared with c_e: each by itself, or (E, 1) all together."""
        return np.abs(size)

    def spread(self, budget: float, weakest: Array, longest: Array) -> Array:
        return budget / weakest

    def joins(self, u: Array, c: Array, margin: float) -> NDArray[np.bool_]:
        """Where (E, n) duals have slack: these edges join equal weights. In tied columns all do, in free ones none."""
        size = np.divide(u, self.s, out=np.zeros_like(u), where=self.held)
        slack = self._length(size) < (c * (1 - margin))[:, None]
        return np.asarray(self.tied | (slack & self.held))

    def room(self, u: Array, c: Array) -> Array:
        """The share that each edge and column takes of a correction of duals: its slack, but never nothing."""
        size = np.divide(u, self.s, out=np.zeros_like(u), where=self.held)
        slack = np.maximum(c[:, None] - self._length(size), LEAST_ROOM * c[:, None])
        return np.where(self.tied, c[:, None] * (self.s.max(initial=0.0) or 1.0), slack * self.s)


@dataclass(frozen=True)
class TotalVariationByColumn(ByColumn):
    """φ(z) = Σ s_k |z_k|."""

    plain: ClassVar[Penalty] = TotalVariation()
    is_norm: ClassVar[bool] = True
    couples: ClassVar[bool] = False

    def _held_value(self, z: Array, c: Array) -> float:
        return float(c @ (np.abs(z) @ self.s))

    def into_domain(self, u: Array, c: Array) -> Array:
        most = np.where(self.tied, np.inf, c[:, None] * self.s)
        return np.clip(u, -most, most)


@dataclass(frozen=True)
class GroupTotalVariationByColumn(ByColumn):
    """φ(z) = √Σ s_k² z_k²: held columns are cut together."""

    plain: ClassVar[Penalty] = GroupTotalVariation()
    is_norm: ClassVar[bool] = True

    @property
    def edge_kernel(self) -> int | None:
        """Compiled passes know balls, and no ellipsoids."""
        return super().edge_kernel if (self.s[self.held] == 1).all() else None

    def _held_value(self, z: Array, c: Array) -> float:
        return float(c @ np.linalg.norm(z * self.s, axis=1))

    def _length(self, size: Array) -> Array:
        return np.linalg.norm(size, axis=1, keepdims=True)

    def dual_step(self, u: Array, c: Array, sigma: Array) -> Array:
        """The nearest point of the ellipsoid Σ (u_k/s_k)² ≤ c²: x_k = u_k s_k²/(s_k² + μ), with μ ≥ 0 where it touches.

        1/length(x) is concave in μ, so that Newton's method for length(x) = c, from μ = 0, comes from one side.
        """
        out, s = u.copy(), self.s[self.held]
        given = u[:, self.held]
        far = np.flatnonzero((np.linalg.norm(given / s, axis=1) > c) & (c > 0))
        given, most, mu = given[far], c[far], np.zeros(len(far))
        for _ in range(SECULAR_STEPS):
            x = given * s / (s**2 + mu[:, None])  # x_k/s_k of above
            length = np.linalg.norm(x, axis=1)
            bent = (x**2 / (s**2 + mu[:, None])).sum(axis=1) / length**2
            step = (length / most - 1) / bent
            mu += np.maximum(step, 0.0)
            if (step <= ACCURACY * (mu + s.min(initial=1.0) ** 2)).all():
                break
        out[np.ix_(far, self.held)] = given * s**2 / (s**2 + mu[:, None])
        return self.into_domain(out, c)

    def into_domain(self, u: Array, c: Array) -> Array:
        """Towards zero: inside, if not nearest."""
        length = self._length(np.divide(u, self.s, out=np.zeros_like(u), where=self.held))
        factor = np.divide(c[:, None], length, out=np.ones_like(length), where=length > c[:, None])
        return np.where(self.tied, u, np.where(self.held, u * factor, 0.0))


@dataclass(frozen=True)
class SquaredVariationByColumn(ByColumn):
    """φ(z) = Σ s_k z_k²."""

    plain: ClassVar[Penalty] = SquaredVariation()
    degree: ClassVar[int] = 2
    couples: ClassVar[bool] = False

    @cached_property
    def unit(self) -> Array:
        return np.where(self.held, np.sqrt(self.s), 1.0)

    def _held_value(self, z: Array, c: Array) -> float:
        return float(c @ (z**2 @ self.s))

    def conjugate(self, u: Array, c: Array) -> float:
        held, there = self.held, c > 0
        size = np.abs(u[np.ix_(there, held)])
        return float((size * (size / (4 * c[there, None] * self.s[held]))).sum())

    def dual_step(self, u: Array, c: Array, sigma: Array) -> Array:
        twice = 2 * c[:, None] * self.s
        return np.where(self.tied, u, u * (twice / (twice + sigma[:, None])))

    def into_domain(self, u: Array, c: Array) -> Array:
        return np.where(self.tied, u, u * (self.held & (c > 0)[:, None]))

    def strength_needed(self, u: Array, A: Array) -> float:
        return float(np.inf) if u[:, ~self.tied].any() else 0.0

    def spread(self, budget: float, weakest: Array, longest: Array) -> Array:
        return np.sqrt(longest * budget / weakest)

    def joins(self, u: Array, c: Array, margin: float) -> NDArray[np.bool_]:
        return np.broadcast_to(self.tied, u.shape)

    def room(self, u: Array, c: Array) -> Array:
        return np.where(self.tied, c[:, None] * (self.s.max(initial=0.0) or 1.0), c[:, None] * self.s)


KINDS: dict[type[Penalty], type[ByColumn]] = {
    type(kind.plain): kind for kind in (TotalVariationByColumn, GroupTotalVariationByColumn, SquaredVariationByColumn)
}


def without_strengths(penalty: Penalty, n: int) -> tuple[Penalty, Array]:
    """The penalty without strengths of its n columns, and these."""
    return (penalty.plain, np.array(penalty.strength)) if isinstance(penalty, ByColumn) else (penalty, np.ones(n))


def by_column(penalty: Penalty, strength: Array) -> ByColumn:
    """The penalty with these strengths."""
    if type(penalty) not in KINDS:
        raise TypeError(f"{type(penalty).__name__} has no strengths by column; l1, l2 and squared variation have")
    return KINDS[type(penalty)](tuple(strength.tolist()))
