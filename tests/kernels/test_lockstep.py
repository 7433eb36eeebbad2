"""Processes in lockstep: one clock, which stands still between two agreements, and one end."""

from __future__ import annotations

import os
import signal

import pytest

from coterie.kernels import interruption
from coterie.kernels.interruption import TimeUp, agree, allow, check, in_lockstep, interruptible, time_is_up


def clock_of(*seconds_left: float):
    """What all agree on, one agreement after the other."""
    given = iter(seconds_left)
    return lambda left, worked, pressed: (next(given), 7.0, pressed)


@interruptible()
def test_the_clock_of_all_counts_and_stands_still() -> None:
    allow(0.0)  # the time of this process is over
    with in_lockstep(clock_of(5.0, 4.0)):
        assert interruption.seconds_left() == 5.0
        assert interruption.seconds_worked() == 7.0
        check()
        agree()
        assert not time_is_up()
        assert interruption.seconds_left() == 4.0
        allow(2.0)
        assert interruption.seconds_left() == 2.0
    assert interruption.seconds_left() <= 2.0
    allow(0.0)
    with pytest.raises(TimeUp):
        check()


@interruptible()
def test_only_an_agreement_raises() -> None:
    with in_lockstep(clock_of(1.0, -0.1, -0.1, -5.0)):
        with pytest.raises(TimeUp):
            agree()
        assert time_is_up()
        check()  # it is for all to end, at the same place
        agree(grace=0.2)
        with pytest.raises(TimeUp):
            agree(grace=0.2)


def test_ctrl_c_waits_for_the_agreement() -> None:
    def run() -> None:
        with interruptible(), in_lockstep(clock_of(1.0, 1.0)):
            os.kill(os.getpid(), signal.SIGINT)
            check()
            assert not time_is_up()
            agree()
            raise AssertionError("nobody noticed")

    with pytest.raises(KeyboardInterrupt):
        run()


@interruptible()
def test_alone_an_agreement_is_a_check() -> None:
    agree()
    allow(0.0)
    with pytest.raises(TimeUp):
        agree()
    agree(grace=60.0)
