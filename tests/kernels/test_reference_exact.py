"""Error-free sums and products of arrays, and sums in twice the precision, against fractions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coterie.kernels.reference.exact import EPS, quiet, two_product, two_sum
from coterie.kernels.reference.sums import grouped, sum_columns_exactly, sum_rows, sum_rows_exactly
from exactly import inner
from ugly_rows import cancelling, ugly

NUMBERS = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)
ANY = st.floats(allow_nan=False, allow_infinity=False)
SEEDS = st.integers(0, 2**32)


@given(ANY, ANY)
def test_two_sum_loses_nothing(a: float, b: float) -> None:
    s, error = quiet(two_sum)(np.array([a]), np.array([b]))
    if np.isfinite(a + b):
        assert Fraction(s[0]) + Fraction(error[0]) == Fraction(a) + Fraction(b)
    else:
        assert np.isnan(error[0])


@given(NUMBERS, NUMBERS)
@example(1 + EPS, 1 - EPS)
@example(2.0**27 - 1, 2.0**27 + 1)
@example(float(2**53 - 1), float(2**53 - 1))
@example(2.0**26 + 1, float((2**26 + 1) * 2**26 + 2**26))
def test_a_product_loses_nothing(a: float, b: float) -> None:
    product, error = two_product(np.array([a]), np.array([b]))
    assert product[0] == a * b
    assert Fraction(product[0]) + Fraction(error[0]) == Fraction(a) * Fraction(b)


@settings(max_examples=300)
@given(ANY, ANY)
@example(2.0**1000, 2.0**20)
@example(2.0**1000, 0.0)
@example(1.7976931348623157e308, 1.0)
@example(1.7976931348623157e308, 0.5)
@example(1.3407807929942596e154, 1.3407807929942596e154)
@example(5e-324, 0.5)
def test_products_of_any_size_are_right_or_no_number(a: float, b: float) -> None:
    product, error = quiet(two_product)(np.array([a]), np.array([b]))
    if np.isnan(product[0]):
        assert abs(Fraction(a) * Fraction(b)) > Fraction(2) ** 1023 or max(abs(a), abs(b)) > 1.79e308
    else:
        lost = abs(Fraction(product[0]) + Fraction(error[0]) - Fraction(a) * Fraction(b))
        assert lost <= Fraction(2) ** -1072


@given(SEEDS, st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_sums_over_rows_are_good_to_twice_the_precision(seed: int, sizes: list[int]) -> None:
    """Within half of what is charged, as the text says."""
    rng = np.random.default_rng(seed)
    parts = [cancelling(rng, m) if m else (np.zeros(0), np.zeros(0)) for m in sizes]
    a, b = (np.concatenate(x) for x in zip(*parts, strict=True))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    hi, lo = sum_rows_exactly(starts, *two_product(a, b))
    for i, (x, y) in enumerate(parts):
        error = abs(Fraction(hi[i]) + Fraction(lo[i]) - inner(x, y))
        assert error <= (len(x) * Fraction(EPS)) ** 2 * inner(np.abs(x), np.abs(y)) / 2
    np.testing.assert_allclose(sum_rows(starts, np.abs(a * b)), [np.abs(x * y).sum() for x, y in parts], rtol=1e-13)


@given(SEEDS, st.integers(1, 40))
def test_sums_over_columns_too(seed: int, count: int) -> None:
    a, b = cancelling(np.random.default_rng(seed), count)
    hi, lo = sum_columns_exactly(*two_product(a[None], b[None]))
    error = abs(Fraction(hi[0]) + Fraction(lo[0]) - inner(a, b))
    assert error <= (count * Fraction(EPS)) ** 2 * inner(np.abs(a), np.abs(b)) / 2


def test_vectors_are_added_entry_by_entry() -> None:
    values = ugly(np.random.default_rng(0), (9, 3))
    starts = np.array([0, 4, 4, 9])
    hi, lo = sum_rows_exactly(starts, values.copy(), np.zeros((9, 3)))
    for i in range(3):
        for k in range(3):
            truth = sum(map(Fraction, values[starts[i] : starts[i + 1], k]), Fraction(0))
            assert Fraction(hi[i, k] + lo[i, k]) == pytest.approx(float(truth), rel=1e-15, abs=0)


def test_members_of_groups() -> None:
    order, starts = grouped(np.array([2, -1, 0, 2, -1, 0]), 4)
    np.testing.assert_array_equal(order, [2, 5, 0, 3])
    np.testing.assert_array_equal(starts, [0, 2, 2, 4, 4])


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_logarithms_are_within_four_units_in_the_last_place(name: str) -> None:
    rng = np.random.default_rng(0)
    x = {
        "exp": -(10.0 ** rng.uniform(-17, 2.8, 3000)),
        "log": np.concatenate([10.0 ** rng.uniform(-300, 0, 1500), 1 - 10.0 ** rng.uniform(-16, 0, 1500)]),
        "log1p": -np.concatenate([10.0 ** rng.uniform(-300, 0, 1500), 1 - 10.0 ** rng.uniform(-16, 0, 1500)]),
    }[name]
    x = x[(x != 0) & (x != -1)]
    found = getattr(np, name)(x)
    with mpmath.workdps(40):
        for a, b in zip(x, found, strict=True):
            truth = getattr(mpmath, name)(mpmath.mpf(float(a)))
            assert abs(mpmath.mpf(float(b)) - truth) <= 4 * mpmath.mpf(float(np.spacing(abs(b))))
