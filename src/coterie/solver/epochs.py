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
    """How long it has lasted, and its residuals: the first, the one before the last, and the last.

    `rival` is the rate of the other mode, the last time: an epoch that is slower than that ends early.
    """

    mode: Mode
    rival: float = -np.inf
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
        return shrunk or self.length >= (2 * BLOCK if self.rate < self.rival else max(2 * BLOCK, LONGEST * done))

    @property
    def rate(self) -> float:
        """By how much the residual has shrunk, in logarithms, with every iteration."""
        shrunk = min(self.first, self.last) > 0
        return float(np.log(self.first / self.last)) / self.length if shrunk else np.inf

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

    def next_epoch(self) -> Epoch:
        """The next epoch, and the rate that it has to keep up with."""
        mode = self._choose()
        return Epoch(mode, max((rate for other, rate in self.rates.items() if other is not mode), default=-np.inf))

    def _choose(self) -> Mode:
        untried = [mode for mode in self.modes if mode not in self.rates]
        if untried:
            return untried[0]
        faster, *others = sorted(self.modes, key=lambda mode: -self.rates[mode])
        return others[0] if others and self.epochs % TRY_OTHER == 0 else faster

    def report(self, epoch: Epoch) -> None:
        """Take the rate of an epoch that is over."""
        self.rates[epoch.mode] = epoch.rate
        self.epochs += 1
