"""What weights cost by themselves, whatever the rows say: Σ_k alpha_k |w_k|, and bounds lower_k ≤ w_k ≤ upper_k.

Each is an edge from a node to a *ground* of weight zero, with a dual s_k of its own (decisions 8 and 31).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.kernels.choice import Either
from coterie.problem.arrays import LARGEST, Array, as_floats, too_large
from coterie.problem.losses.base import check_strength, penalised_columns

descent, boxed = Either("descent"), Either("boxed")

ACCURACY, SWEEPS = 1e-13, 500  # of coordinate descent on a quadratic model


@dataclass(frozen=True, eq=False)
class Ground:
    """h(w) = Σ_k alpha_k |w_k| where lower ≤ w ≤ upper, else ∞. Arrays have the shape (n,)."""

    alpha: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, n: int, unpenalised: tuple[int, ...], l1: float, lower: Any, upper: Any, positive: bool) -> Ground:
        """What a loss asks for; one number as a bound, and l1, leave the columns alone that are not penalised."""
        free = penalised_columns(n, unpenalised)
        low = _bounds(lower, -np.inf, "lower", free)
        high = _bounds(upper, np.inf, "upper", free)
        if positive:
            low = np.where(free, np.maximum(low, 0.0), low)
        if (crossed := np.flatnonzero(~(low <= high))).size:
            k = crossed[0]
            raise ValueError(f"column {k} has the lower bound {low[k]:g} above its upper bound {high[k]:g}")
        if (nowhere := np.flatnonzero((low == np.inf) | (high == -np.inf))).size:
            k = nowhere[0]
            raise ValueError(f"column {k} has bounds {low[k]:g} and {high[k]:g}, between which no weight is finite")
        return cls(float(l1) * free, low, high)

    def times(self, copies: int) -> Ground:
        """The same for each of so many classes."""
        return Ground(*(np.tile(part, copies) for part in (self.alpha, self.lower, self.upper)))

    @property
    def is_nothing(self) -> bool:
        return not self.alpha.any() and not self.has_bounds

    @property
    def has_bounds(self) -> bool:
        return bool((self.bounded_below | self.bounded_above).any())

    @property
    def bounded_below(self) -> Any:
        return self.lower > -np.inf

    @property
    def bounded_above(self) -> Any:
        return self.upper < np.inf

    @property
    def domain(self) -> tuple[Array, Array]:
        """Between which duals s the conjugate is finite."""
        return (
            np.where(self.bounded_below, -np.inf, -self.alpha),
            np.where(self.bounded_above, np.inf, self.alpha),
        )

    def value(self, w: Array) -> Array:
        """h(w_i) of each node."""
        outside = ((w < self.lower) | (w > self.upper)).any(axis=1)
        return np.where(outside, np.inf, np.abs(w) @ self.alpha)

    def conjugate(self, s: Array) -> Array:
        """h*(s) = sup {sw − alpha|w| : lower ≤ w ≤ upper} of each weight: at a bound or, where allowed, at 0."""
        found = np.where((self.lower <= 0) & (self.upper >= 0), 0.0, -np.inf) + np.zeros_like(s)
        for bound, there in ((self.lower, self.bounded_below), (self.upper, self.bounded_above)):
            at = np.where(there, bound, 0.0)
            found = np.where(there, np.maximum(found, s * at - self.alpha * np.abs(at)), found)
        return found

    def slopes(self, w: Array) -> tuple[Array, Array]:
        """Between which slopes h has its subgradients at w, which is inside the bounds."""
        left, right = np.where(w > 0, self.alpha, -self.alpha), np.where(w < 0, -self.alpha, self.alpha)
        return np.where(w <= self.lower, -np.inf, left), np.where(w >= self.upper, np.inf, right)

    def clip(self, w: Array) -> Array:
        """The weights that lie inside the bounds and are next to these."""
        return np.clip(w, self.lower, self.upper)

    def caps(self, level: float) -> Array:
        """|w_k| at most, (n,), where h is at most `level`."""
        by_alpha = np.divide(level, self.alpha, out=np.full_like(self.alpha, np.inf), where=self.alpha > 0)
        return np.minimum(by_alpha, np.maximum(np.abs(self.lower), np.abs(self.upper)))

    def minimiser(self, H: Array, target: Array, curvature: Array, start: Array, sweeps: int = SWEEPS) -> Array:
        """argmin ½ xᵀ(H_i + curvature_i)x − ⟨target_i, x⟩ + h(x), from `start`."""
        alpha = np.broadcast_to(self.alpha, start.shape)
        if not self.has_bounds:
            return np.asarray(descent.coordinate_descent(H, target, curvature, alpha, start, ACCURACY, sweeps, None))
        given = H, target, curvature, alpha, self.lower, self.upper, start
        return np.asarray(boxed.boxed_descent(*given, ACCURACY, sweeps))

    def in_units(self, weight: float, value: float) -> Ground:
        """The same of weights that are divided by `weight`, with values divided by `value`."""
        return Ground(self.alpha * (weight / value), self.lower / weight, self.upper / weight)

    def in_columns(self, t: Array) -> Ground:
        """The same of weights t_k w_k."""
        return Ground(self.alpha / t, self.lower * t, self.upper * t)


@dataclass(frozen=True)
class Grounded:
    """The parameters of a loss whose weights cost something by themselves."""

    l1: float = field(default=0.0, kw_only=True)
    lower: Any = field(default=None, kw_only=True)
    upper: Any = field(default=None, kw_only=True)
    positive: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_strength(self.l1, "l1")
        for name in ("lower", "upper"):  # tuples, so that a loss can be compared and looked up
            given = getattr(self, name)
            if given is not None and np.ndim(given):
                object.__setattr__(self, name, tuple(as_floats(given, name).tolist()))

    def ground(self, n: int) -> Ground:
        """What n weights cost by themselves."""
        return Ground.of(n, self.unpenalised, self.l1, self.lower, self.upper, self.positive)  # type: ignore[attr-defined]


def _bounds(given: Any, none: float, name: str, free: Any) -> Array:
    """One bound for each column."""
    if given is None:
        return np.full(len(free), none)
    bounds = as_floats(given, name)
    if np.isnan(bounds).any():
        raise ValueError(f"{name} holds nan; leave a bound out with {none}")
    if too_large(bounds).any():
        raise ValueError(
            f"{name} holds {bounds[too_large(bounds)].flat[0]:g}; give numbers up to {LARGEST:g}, or {none}"
        )
    if bounds.ndim == 0:
        return np.where(free, bounds, none)
    if bounds.shape != (len(free),):
        raise ValueError(f"{name} is one number, or one for each of the {len(free)} columns; got {bounds.shape}")
    return bounds
