"""What coefficients cost by themselves, and between which bounds they stay: asked for in the units of the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.estimators.scaling import Scaling
from coterie.problem.arrays import Array, as_floats

ROUNDING = 1e-12  # relative: by so much coefficients can leave bounds when units change


class Coefficients:
    """Mixed into a networked model; the parameters and attributes are its own."""

    l1: float = 0.0
    lower: Any = None
    upper: Any = None
    positive: bool = False
    fit_intercept: bool
    n_features_in_: int
    scaling_: Scaling

    @property
    def _by_itself(self) -> dict[str, Any]:
        """The parameters of a loss that say it, in the units that are solved in."""
        return {"l1": self.l1, **self._bounds}

    @property
    def _bounds(self) -> dict[str, Any]:
        """Those of the bounds; intercepts have none."""
        if not self._has_bounds:
            return {}
        unit = self.scaling_.spread / self.scaling_.y_spread
        each = zip(("lower", "upper"), self._ends, (-np.inf, np.inf), strict=True)
        return {name: (*(ends * unit).tolist(), *[none] * self.fit_intercept) for name, ends, none in each}

    @property
    def _has_bounds(self) -> bool:
        return self.positive or self.lower is not None or self.upper is not None

    @property
    def _ends(self) -> tuple[Array, Array]:
        """Between which numbers coefficients are, one for each feature."""
        low, high = self._numbers("lower", -np.inf), self._numbers("upper", np.inf)
        low = np.maximum(low, 0.0) if self.positive else low
        if (crossed := np.flatnonzero(~(low <= high))).size:
            k = crossed[0]
            raise ValueError(f"feature {k} has the lower bound {low[k]:g} above its upper bound {high[k]:g}")
        return low, high

    def _numbers(self, name: str, none: float) -> Array:
        given, n = getattr(self, name), self.n_features_in_
        values = as_floats(none if given is None else given, name)
        if values.shape not in ((), (n,)):
            raise ValueError(f"{name} is one number, or one for each of the {n} features; got shape {values.shape}")
        return np.broadcast_to(values, (n,))

    def _inside(self, coef: Array) -> Array:
        """Coefficients at their bounds, which they can have left by rounding when units changed."""
        if not self._has_bounds:
            return coef
        at = np.clip(coef, *self._ends)
        return np.where(np.abs(coef - at) <= ROUNDING * np.abs(at), at, coef)
