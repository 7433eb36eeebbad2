"""Quadratic models in the place of losses whose primal update has no closed form."""

from __future__ import annotations

from math import isfinite
from typing import Any

FAR = 1.0  # logarithm of the factor by which curvature may have changed since the last model, in a calm block
CALM, SERVES = 0.1, 4  # where it has changed by so little in logarithms, the model serves so many blocks
PATIENCE = 25  # blocks that were not calm, after which primal updates are exact: at weights near infinity models swing


class Models:
    """The model of each block of iterations, around the weights that it begins with; or, where these hardly move, that
    of a block before, which is around `centre` all the same.

    `losses` are LocalLosses, or what an engine has in their place; weights are what they take. With `thin`, models are
    thin where losses have such.
    """

    def __init__(self, losses: Any, thin: bool = False) -> None:
        self.losses, self.thin = losses, thin
        self.centre: Any = None
        self.last: Any = None
        self.patience, self.serves = PATIENCE, 0

    def around(self, w: Any) -> Any:
        """Return quadratics around w (|M|, n), or near it; None: the losses have none here, or these do not come to
        rest."""
        if self.given_up:
            return None
        if self.serves > 0:
            self.serves -= 1
            return self.last
        model = self.losses.thin_model(w, self.centre) if self.thin else None
        model = self.losses.model(w, self.centre) if model is None else model
        self.centre, self.last = w, model
        if model is None:
            self.patience = 0
        elif model.change > FAR:
            self.patience -= 1 if isfinite(model.change) else 2
            return model if model.everywhere else None
        elif 0 < model.change <= CALM:  # no change at all is what losses say that do not know
            self.serves = SERVES - 1
        return model

    @property
    def given_up(self) -> bool:
        """Whether primal updates are exact from now on."""
        return self.patience <= 0
