"""Quadratic models in the place of losses whose primal update has no closed form."""

from __future__ import annotations

from math import isfinite
from typing import Any

FAR = 1.0  # logarithm of the factor by which curvature may have changed since the last model, in a calm block
PATIENCE = 25  # blocks that were not calm, after which primal updates are exact: at weights near infinity models swing


class Models:
    """The model of each block of iterations, around the weights that it begins with.

    `losses` are LocalLosses, or what an engine has in their place; weights are what they take. With `thin`, models are
    thin where losses have such.
    """

    def __init__(self, losses: Any, thin: bool = False) -> None:
        self.losses, self.thin = losses, thin
        self.centre: Any = None
        self.patience = PATIENCE

    def around(self, w: Any) -> Any:
        """Return quadratics around w (|M|, n); None: the losses have none here, or these do not come to rest."""
        if self.given_up:
            return None
        model = self.losses.thin_model(w, self.centre) if self.thin else None
        model = self.losses.model(w, self.centre) if model is None else model
        self.centre = w
        if model is None:
            self.patience = 0
        elif model.change > FAR:
            self.patience -= 1 if isfinite(model.change) else 2
            return model if model.everywhere else None
        return model

    @property
    def given_up(self) -> bool:
        """Whether primal updates are exact from now on."""
        return self.patience <= 0
