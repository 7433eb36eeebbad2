"""What does not depend on λ is computed once for a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from coterie.kernels.interruption import allow, interruptible
from coterie.problem.reuse import FEW, reused, reusing, same


@dataclass(frozen=True, eq=False)
class Rows:
    X: Any
    kind: int = 0


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    def total(self, rows: Rows, more: float) -> float:
        self.calls += 1
        return float(rows.X.sum()) + more


def test_equal_arguments_are_computed_once() -> None:
    counted = Counted()
    with reusing():
        assert [reused(counted.total, Rows(np.ones(3)), 1.0) for _ in range(3)] == [4.0] * 3
        assert counted.calls == 1
        assert reused(counted.total, Rows(np.ones(3)), 2.0) == 5.0
        assert reused(counted.total, Rows(2 * np.ones(3)), 1.0) == 7.0
        assert reused(Counted().total, Rows(np.ones(3)), 1.0) == 4.0  # of another object
        assert counted.calls == 3
    reused(counted.total, Rows(np.ones(3)), 1.0)  # outside, nothing is kept
    reused(counted.total, Rows(np.ones(3)), 1.0)
    assert counted.calls == 5


def test_few_results_are_kept_and_no_failures() -> None:
    counted = Counted()
    with reusing():
        for k in [*range(FEW + 1), FEW, 0]:
            reused(counted.total, Rows(np.ones(1)), float(k))
        assert counted.calls == FEW + 2
        for _ in range(2):
            with pytest.raises(AttributeError):
                reused(counted.total, Rows(None), 1.0)
    assert counted.calls == FEW + 4


def test_what_is_found_when_time_is_up_is_not_kept() -> None:
    counted = Counted()
    with reusing():
        with interruptible():
            allow(0.0)
            reused(counted.total, Rows(np.ones(1)), 1.0)
        for _ in range(2):
            reused(counted.total, Rows(np.ones(1)), 1.0)
    assert counted.calls == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.ones(2), np.ones(3)),
        (np.ones(2), [1.0, 1.0]),
        (np.ones(2), np.array([1.0, np.nan])),
        (Rows(np.ones(2)), Rows(np.ones(2), 1)),
        ((1, 2), (1, 2, 3)),
        (True, 1),
    ],
)
def test_what_is_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert same(one, one)
