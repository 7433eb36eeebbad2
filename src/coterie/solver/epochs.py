"""Epochs: iterations in one mode, from one restart to the next, and which mode comes next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.engines.base import Mode

BLOCK = 20  # iterations between two looks at the residual
SHRINK = 0.2  # an epoch ends when the residual has shrunk by this factor
LONGEST = 0.25  # … or when it has lasted this part of all iterations
TRY_OTHER = 4  # every so many epochs, the slower mode gets a chance
GREW = {Mode.RELAXED: 1.01, Mode.PAIRS: 2.0}  # times its first residual, at the end of an epoch: too much


@dataclass
class Epoch:
    """How long it has lasted, and its residuals: the first, the one before the last, and the last."""

    mode: Mode
    length: int = 0
    first: float = np.inf
    before: float = np.inf
    last: float = np.inf

    def note(self, block: int, residual: float) -> None:
        """Take the residual after another block of iterations."""
        self.first = residual if self.length == 0 else self.first
        self.length += block
        self.before, self.last = self.last, residual

    def is_over(self, done: int) -> bool:
        """Whether to restart, after `done` iterations altogether."""
        r, rises = self.last, self.last > self.before
        if self.mode in (Mode.DUAL, Mode.PAIRS):
            return rises
        shrunk = r <= SHRINK * self.first or (self.mode is Mode.HALPERN and r <= 0.5 * self.first and rises)
        return shrunk or self.length >= max(2 * BLOCK, LONGEST * done)

    @property
    def went_wrong(self) -> bool:
        """Whether the residual has grown: of relaxed steps it cannot, and momentum in pairs has run away."""
        return self.last > GREW.get(self.mode, np.inf) * self.first


class Race:
    """Chooses between modes by the rate at which each has shrunk the residual."""

    def __init__(self, *modes: Mode) -> None:
        self.modes = modes
        self.rates: dict[Mode, float] = {}
        self.epochs = 0

    def choose(self) -> Mode:
        """The mode of the next epoch."""
        untried = [mode for mode in self.modes if mode not in self.rates]
        if untried:
            return untried[0]
        faster, *others = sorted(self.modes, key=lambda mode: -self.rates[mode])
        return others[0] if others and self.epochs % TRY_OTHER == 0 else faster

    def report(self, epoch: Epoch) -> None:
        """Take the rate of an epoch that is over."""
        shrunk = min(epoch.first, epoch.last) > 0
        self.rates[epoch.mode] = float(np.log(epoch.first / epoch.last)) / epoch.length if shrunk else np.inf
        self.epochs += 1
