"""The paper's table, over many draws of the network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coterie.experiments.methods import Outcome, certified_optimum, decision_tree, linear_regression, paper_iteration
from coterie.experiments.settings import AUTHORS, PRINTED, Setting

Step = Callable[[str], None]  # called with a few words whenever a piece of work begins


class Spread(NamedTuple):
    """Median and range over the draws."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        v = np.fromiter(values, dtype=np.float64)
        return cls(float(np.median(v)), float(v.min()), float(v.max()))

    def __str__(self) -> str:
        if np.isnan(self.median):
            return "–"
        if self.low == self.high:
            return f"{self.median:.3g}"
        return f"{self.median:.3g} ({self.low:.3g} … {self.high:.3g})"


@dataclass(frozen=True)
class Line:
    """One line of the table: one method under one setting."""

    setting: Setting
    method: str
    train: Spread
    test: Spread
    weight_error: Spread
    gap: Spread


def run_table(seeds: int, step: Step) -> list[Line]:
    """Run every method under both settings on the draws 0 … seeds − 1."""
    return [line for setting in (PRINTED, AUTHORS) for line in _lines(setting, seeds, step)]


def _lines(setting: Setting, seeds: int, step: Step) -> list[Line]:
    draws = []
    for seed in range(seeds):
        step(f"table, {setting.name}, draw {seed + 1} of {seeds}")
        draws.append(_one_draw(setting, seed))
    return [_line(setting, outcomes) for outcomes in zip(*draws, strict=True)]


def _one_draw(setting: Setting, seed: int) -> list[Outcome]:
    network = setting.network(seed)
    return [
        paper_iteration(setting, network),
        certified_optimum(setting, network),
        linear_regression(network),
        decision_tree(network),
    ]


def _line(setting: Setting, outcomes: tuple[Outcome, ...]) -> Line:
    def spread(name: str) -> Spread:
        return Spread.of(getattr(outcome, name) for outcome in outcomes)

    return Line(setting, outcomes[0].method, spread("train"), spread("test"), spread("weight_error"), spread("gap"))
