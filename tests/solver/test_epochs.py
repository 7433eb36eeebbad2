"""When an epoch ends, and which mode comes next."""

from __future__ import annotations

import numpy as np

from coterie.engines.base import Mode
from coterie.solver.epochs import BLOCK, Epoch, Race


def passed(epoch: Epoch, *residuals: float) -> Epoch:
    for residual in residuals:
        epoch.note(BLOCK, residual)
    return epoch


def test_an_epoch_that_is_slower_than_its_rival_is_short() -> None:
    rate = np.log(2) / (2 * BLOCK)
    assert passed(Epoch(Mode.RELAXED, rival=1.01 * rate), 1.0, 0.5).is_over(done=1_000)
    assert not passed(Epoch(Mode.RELAXED, rival=0.99 * rate), 1.0, 0.5).is_over(done=1_000)
    assert not passed(Epoch(Mode.RELAXED, rival=1.01 * rate), 1.0).is_over(done=1_000)


def test_modes_that_were_tried_are_each_others_rivals() -> None:
    race = Race(Mode.RELAXED, Mode.HALPERN)
    first = race.next_epoch()
    assert (first.mode, first.rival) == (Mode.RELAXED, -np.inf)
    race.report(passed(first, 1.0, 0.5))
    second = race.next_epoch()
    assert (second.mode, second.rival) == (Mode.HALPERN, first.rate)
    race.report(passed(second, 1.0, 0.25))
    assert race.next_epoch().mode is Mode.HALPERN
