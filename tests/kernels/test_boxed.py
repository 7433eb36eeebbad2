"""Coordinate descent with bounds: stationary inside them, and compiled and in NumPy in the same place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import boxed, interruption
from coterie.kernels.reference import boxed as plain

BOUNDS = {"none": (-np.inf, np.inf), "positive": (0.0, np.inf), "box": (-0.3, 0.4), "above": (0.2, np.inf)}


def problems(seed: int, n: int, kind: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((6, n, max(1, n - 1)))
    alpha = rng.uniform(0.0, 0.5, (6, n)) * rng.integers(0, 2, (6, n))
    lower, upper = (np.full(n, bound) for bound in BOUNDS[kind])
    upper[0], lower[-1] = np.inf, -np.inf
    return B @ B.transpose(0, 2, 1), 2 * rng.standard_normal((6, n)), rng.uniform(0.3, 3.0, 6), alpha, lower, upper


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from([1, 2, 5, 12]),
    kind=st.sampled_from(sorted(BOUNDS)),
    far=st.booleans(),
)
def test_stationary_and_both_forms_agree(seed: int, n: int, kind: str, far: bool) -> None:
    H, target, curvature, alpha, lower, upper = given = problems(seed, n, kind)
    start = far * 3 * np.random.default_rng(seed + 1).standard_normal((6, n))
    z, other = (module.boxed_descent(*given, start, 1e-13, 2000) for module in (boxed, plain))
    np.testing.assert_allclose(z, other, rtol=1e-8, atol=1e-9)
    assert ((lower <= z) & (z <= upper)).all()
    slope = target - np.einsum("ikq,iq->ik", H, z) - curvature[:, None] * z
    least = np.where(z <= lower, -np.inf, np.where(z > 0, alpha, -alpha))
    most = np.where(z >= upper, np.inf, np.where(z >= 0, alpha, -alpha))
    assert ((least - 1e-8 <= slope) & (slope <= most + 1e-8)).all()


def test_goes_on_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problems(3, 5, "box")
    start = np.zeros((6, 5))
    whole = boxed.boxed_descent(*given, start, 1e-13, 2000)
    monkeypatch.setattr("coterie.kernels.descent.WORK", 1)
    np.testing.assert_array_equal(boxed.boxed_descent(*given, start, 1e-13, 2000), whole)
    assert interruption.WORK > 1


@pytest.mark.parametrize("seed", range(4))
def test_far_from_the_start_where_columns_are_nearly_collinear(seed: int) -> None:
    """Sweeps alone would take for ever: each step is short, and weights that are to be zero come back from it."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((20, 4, 3))
    H, target, curvature = B @ B.transpose(0, 2, 1), 3 * rng.standard_normal((20, 4)), np.full(20, 1e-5)
    alpha, lower, upper = rng.uniform(0, 2, (20, 4)), np.array([-np.inf, 0.0, -np.inf, -1.0]), np.full(4, np.inf)
    given = H, target, curvature, alpha, lower, upper
    for module in (boxed, plain):
        z = module.boxed_descent(*given, np.zeros((20, 4)), 1e-13, 40)
        slope = target - np.einsum("ikq,iq->ik", H, z) - curvature[:, None] * z
        least = np.where(z <= lower, -np.inf, np.where(z > 0, alpha, -alpha))
        most = np.where(z >= 0, alpha, -alpha)
        assert ((least - 1e-6 <= slope) & (slope <= most + 1e-6)).all()
