"""The numbers behind the paper's two figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie.experiments.measures import label_error, predictions, weight_mse
from coterie.experiments.settings import AUTHORS, PRINTED, Setting
from coterie.experiments.table import Step
from coterie.problem.arrays import Array
from coterie.solver import algorithm1


@dataclass(frozen=True, eq=False)
class Curve:
    """A labelled curve with one row of y for each draw."""

    label: str
    x: Array
    y: Array

    @property
    def median(self) -> Array:
        return np.asarray(np.median(self.y, axis=0))

    def at(self, x: float) -> float:
        """The median at a point of the grid."""
        return float(self.median[np.flatnonzero(self.x == x)[0]])


def weight_curves(lams: Sequence[float], seeds: int, step: Step) -> list[Curve]:
    """Figure 1: weight MSE a coordinate after k iterations, for several λ; last, the printed setting."""
    settings = [(f"λ = {lam:g}", replace(AUTHORS, lam=lam)) for lam in lams]
    settings.append((f"as printed, λ = {PRINTED.lam:g}", PRINTED))
    curves = []
    for label, setting in settings:
        step(f"figure 1, {label}")
        y = np.stack([_descent(setting, seed) for seed in range(seeds)])
        curves.append(Curve(label, np.arange(1, setting.n_iter + 1), y))
    return curves


def _descent(setting: Setting, seed: int) -> Array:
    network, errors = setting.network(seed), np.empty(setting.n_iter)

    def note(k: int, w: Array, u: Array) -> None:
        errors[k - 1] = weight_mse(network, w)

    algorithm1(setting.problem(network), setting.n_iter, sigma=setting.sigma, callback=note)
    return errors


def boundary_curve(p_outs: Sequence[float], lams: Sequence[float], seeds: int, step: Step) -> Curve:
    """Figure 2: test error of the labels, the best over λ of each draw, against p_out."""
    y = np.empty((seeds, len(p_outs)))
    for k, p_out in enumerate(p_outs):
        step(f"figure 2, p_out = {p_out:g}")
        for seed in range(seeds):
            y[seed, k] = min(_test_error(replace(AUTHORS, p_out=p_out, lam=lam), seed) for lam in lams)
    return Curve("Algorithm 1, authors' settings, best λ", np.asarray(p_outs), y)


def _test_error(setting: Setting, seed: int) -> float:
    network = setting.network(seed)
    w = algorithm1(setting.problem(network), setting.n_iter, sigma=setting.sigma).w
    return label_error(network, predictions(network, w)).test
