"""One rule for bounds: which is better, which is refuted, and what the gap is."""

from __future__ import annotations

from math import inf

import pytest

from coterie.solver.bound import Bound

PROVEN, GUESSED = Bound(1.0, unconditional=True), Bound(2.0, unconditional=False, weight_bound=10.0)


@pytest.mark.parametrize(
    ("new", "old", "better"),
    [
        (Bound(1.5, True), PROVEN, True),
        (Bound(0.5, True), PROVEN, False),
        (PROVEN, GUESSED, True),  # though it is lower
        (GUESSED, PROVEN, True),
        (Bound(0.5, False, 10.0), PROVEN, False),
        (Bound(1.0, False, 30.0), GUESSED, True),  # it asks for less
        (Bound(1.0, False, 15.0), GUESSED, False),
        (Bound(4.0, False, inf), GUESSED, False),  # weights of objective 3 refute it
        (GUESSED, Bound(4.0, False, 1e6), True),
    ],
)
def test_which_to_keep(new: Bound, old: Bound, better: bool) -> None:
    assert new.is_better_than(old, objective=3.0, unit=3.0) == better


def test_gaps() -> None:
    assert GUESSED.gap(3.0, 4.0) == 0.25
    assert GUESSED.gap(2.0 * (1 - 1e-15), 2.0) == 0.0
    assert GUESSED.gap(1.9, 2.0) == inf


def test_what_it_rests_on() -> None:
    assert PROVEN.condition == ""
    assert GUESSED.condition == "some minimiser has no weight above 10 in absolute value"


def test_a_proven_bound_above_the_objective_is_an_error() -> None:
    with pytest.raises(ArithmeticError, match="please report this"):
        PROVEN.gap(0.9, 1.0)
