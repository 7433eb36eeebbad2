"""Charges in NumPy: never less than the worst case, and those of the compiled kernels to rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import charge as compiled
from coterie.kernels.reference import charge
from exactly import fractions, inner
from ugly_rows import ugly

SEEDS = st.integers(0, 2**32)
DOUBTS = st.sampled_from([0.0, 1e-12, 1e-3])
SCALES = st.sampled_from([1.0, 1e-150, 1e-300, 1e100])


def forces(seed: int, n: int, rounding_bound: float, scale: float) -> tuple[Any, ...]:
    """Forces of 13 nodes in three groups, one of them empty; some nodes are left out, and sums cancel."""
    rng, V = np.random.default_rng(seed), 13
    group, rho, w = rng.choice([-1, 0, 2], V), scale * ugly(rng, (V, n), 4.0), 1e6 + ugly(rng, (V, n), 4.0)
    rho[7:] = -rho[:6]
    return rng, group, rho, rounding_bound * np.abs(rho), w


def within(rng: np.random.Generator, rho: Any, d: Any) -> list[list[Fraction]]:
    """Any other forces that the rounding_bound allows."""
    return [
        [a + Fraction(float(rng.uniform(-1, 1))) * b for a, b in zip(fractions(x), fractions(y), strict=True)]
        for x, y in zip(rho, d, strict=True)
    ]


def gathered(module: Any, *given: Any) -> list[Any]:
    n = given[-1].shape[1]
    out = [*np.zeros((2, 3)), *np.zeros((3, 3, n))]
    module.gather(*given, *out)
    return out


@settings(max_examples=100)
@given(SEEDS, st.sampled_from([1, 2, 12]), DOUBTS, SCALES)
def test_sums_around_a_centre(seed: int, n: int, rounding_bound: float, scale: float) -> None:
    """Any ρ' within the rounding bound of ρ: first − lost ≤ Σ⟨ρ', centre − w⟩, and Σρ' is within slack of total."""
    rng, group, rho, d, w = forces(seed, n, rounding_bound, scale)
    centre = 1e6 + rng.standard_normal((3, n))
    first, lost, total, slack, size = gathered(charge, rho, d, w, group, centre)
    other = within(rng, rho, d)
    for g in range(3):
        of, at = np.flatnonzero(group == g), fractions(centre[g])
        truth = sum(
            (inner(other[i], [a - b for a, b in zip(at, fractions(w[i]), strict=True)]) for i in of), Fraction(0)
        )
        assert Fraction(float(first[g])) - Fraction(float(lost[g])) <= truth
        for k in range(n):
            sum_k = sum((other[i][k] for i in of), Fraction(0))
            assert abs(Fraction(float(total[g, k])) - sum_k) <= Fraction(float(slack[g, k]))
            sizes = sum((abs(other[i][k]) for i in of), Fraction(0))
            assert sizes <= Fraction(float(size[g, k])) * (1 + Fraction(1e-9)) + Fraction(2) ** -1070


@settings(max_examples=100)
@given(SEEDS, st.sampled_from([1, 2, 12]), DOUBTS, SCALES)
def test_the_least_of_a_box(seed: int, n: int, rounding_bound: float, scale: float) -> None:
    rng, group, rho, d, w = forces(seed, n, rounding_bound, scale)
    low = 1e6 - ugly(rng, (3, n), 3.0) ** 2
    high = low + ugly(rng, (3, n), 3.0) ** 2
    out, other = np.zeros(3), within(rng, rho, d)
    charge.least(rho, d, w, group, low, high, out)
    for g in range(3):
        truth = Fraction(0)
        for i in np.flatnonzero(group == g):
            for k in range(n):
                ends = (Fraction(x) - Fraction(w[i, k]) for x in (low[g, k], high[g, k]))
                truth += min(other[i][k] * end for end in ends)
        assert Fraction(float(out[g])) <= truth


def test_where_weights_can_be_anywhere() -> None:
    """Nothing is charged for no force; anything for some."""
    rho, zero, w = np.array([[0.0, 1.0], [0.0, 0.0]]), np.zeros((2, 2)), np.ones((2, 2))
    out, ends = np.zeros(2), np.full((2, 2), np.inf)
    charge.least(rho, zero, w, np.array([0, 1]), -ends, ends, out)
    assert out[0] == -np.inf
    assert -1e-200 <= out[1] <= 0


@settings(max_examples=60)
@given(SEEDS, st.sampled_from([1, 2, 12]), DOUBTS)
def test_the_compiled_kernels_say_the_same(seed: int, n: int, rounding_bound: float) -> None:
    rng, group, rho, d, w = forces(seed, n, rounding_bound, 1.0)
    centre = 1e6 + rng.standard_normal((3, n))
    given = rho, d, w, group, centre
    mine, theirs = gathered(charge, *given), gathered(compiled, *given)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13 * np.abs(rho).sum())
    one, other = np.zeros((2, 3))
    charge.least(rho, d, w, group, centre - 1, centre + 1, one)
    compiled.least(rho, d, w, group, centre - 1, centre + 1, other)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-13 * np.abs(rho).sum())
