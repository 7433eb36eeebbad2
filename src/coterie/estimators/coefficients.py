"""What coefficients cost by themselves, and between which bounds they stay: asked for in the units of the user."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from coterie.estimators.column_strength import column_of
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
    def _regularisation(self) -> dict[str, Any]:
        """The parameters of a loss that say it, in the units that are solved in."""
        return {"l1": self.l1, **self._bounds}

    @property
    def _bounds(self) -> dict[str, Any]:
        """Those of the bounds; intercepts have none."""
        if not self._has_bounds:
            return {}
        unit = self.scaling_.spread / self.scaling_.y_spread
        each = zip(("lower", "upper"), self._limits, (-np.inf, np.inf), strict=True)
        return {name: (*(ends * unit).tolist(), *[none] * self.fit_intercept) for name, ends, none in each}

    @property
    def _has_bounds(self) -> bool:
        return self.positive or self.lower is not None or self.upper is not None

    @property
    def bounds_by_feature(self) -> dict[str, dict[str, float]]:
        """Those with an end, by the names of features, or their numbers."""
        ends = zip(("lower", "upper"), self._limits, strict=True) if self._has_bounds else ()
        named = {name: {str(self._feature(k)): float(v) for k, v in enumerate(values)} for name, values in ends}
        return {name: {k: v for k, v in given.items() if np.isfinite(v)} for name, given in named.items()}

    @property
    def _limits(self) -> tuple[Array, Array]:
        """Between which numbers coefficients are, one for each feature."""
        low, high = self._per_feature("lower", -np.inf), self._per_feature("upper", np.inf)
        low = np.maximum(low, 0.0) if self.positive else low
        if (crossed := np.flatnonzero(low > high)).size:
            k = crossed[0]
            below = "positive=True asks for 0 at least" if low[k] == 0 and self.positive else f"lower is {low[k]:g}"
            raise ValueError(f"{below}, but upper is {high[k]:g} for feature {self._feature(k)}: no number is left")
        for name, ends, nowhere in (("lower", low, np.inf), ("upper", high, -np.inf)):
            if (at := np.flatnonzero(ends == nowhere)).size:
                none = f"{-nowhere:g} is no bound"
                raise ValueError(f"{name} of feature {self._feature(at[0])} is {nowhere:g}: no number is left; {none}")
        return low, high

    def _per_feature(self, name: str, none: float) -> Array:
        """One bound for each feature."""
        given, n = getattr(self, name), self.n_features_in_
        if isinstance(given, Mapping):
            names, values = getattr(self, "feature_names_in_", None), np.full(n, none)
            for key, value in given.items():
                if isinstance(value, bool) or not isinstance(value, Real):
                    raise TypeError(f"{name} of {key!r} is {value!r}; give a number")
                values[column_of(key, names, n, False, name)] = value
        else:
            values = as_floats(none if given is None else given, name)
        if values.shape not in ((), (n,)):
            raise ValueError(f"{name} is one number, or one for each of the {n} features; got shape {values.shape}")
        values = np.broadcast_to(values, (n,))
        if (gap := np.flatnonzero(np.isnan(values))).size:
            raise ValueError(f"{name} of feature {self._feature(gap[0])} is nan; give a number, or {none} for no bound")
        return values

    def _feature(self, k: int) -> Any:
        """The name of a feature, or its number."""
        return getattr(self, "feature_names_in_", range(self.n_features_in_))[k]

    def _clipped(self, coef: Array) -> Array:
        """Coefficients at their bounds, which they can have left by rounding when units changed."""
        if not self._has_bounds:
            return coef
        at = np.clip(coef, *self._limits)
        return np.where(np.abs(coef - at) <= ROUNDING * np.abs(at), at, coef)
