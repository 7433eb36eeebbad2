"""What coefficients cost by themselves, and between which bounds they stay: asked for in the units of the user."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.estimators.scaling import Scaling
from coterie.problem.arrays import as_floats


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
        low, high = self._bound("lower", -np.inf), self._bound("upper", np.inf)
        return {"lower": low, "upper": high, "positive": self.positive}

    def _bound(self, name: str, none: float) -> tuple[float, ...] | None:
        if (given := getattr(self, name)) is None:
            return None
        n, values = self.n_features_in_, as_floats(given, name)
        if values.shape not in ((), (n,)):
            raise ValueError(f"{name} is one number, or one for each of the {n} features; got shape {values.shape}")
        in_units = np.broadcast_to(values, (n,)) * (self.scaling_.spread / self.scaling_.y_spread)
        return (*in_units.tolist(), *[none] * self.fit_intercept)
