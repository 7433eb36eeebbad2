"""Error-free sums, and what is proven of rows: every rounding lemma against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import charge, flow, rows
from coterie.kernels.exact import EPS, FAINT, add_product, strict, two_sum
from coterie.problem.losses.psi import Psi
from exactly import HINGE, HUBER, LOGISTIC, POISSON, QUANTILE, SQUARED, at_most, exact_loss, fractions, inner
from ugly_rows import cancelling, check_values, design, ugly

# Numbers whose products and sums neither overflow nor vanish: there the transformations are exact.
NUMBERS = st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-100)
SEEDS = st.integers(0, 2**32)


@strict
def _sum_of_two(a, b):
    return two_sum(a, b)


@strict
def _dot(a, b):
    hi, lo = 0.0, 0.0
    for k in range(len(a)):
        hi, lo = add_product(hi, lo, a[k], b[k])
    return hi, lo


@given(NUMBERS, NUMBERS)
def test_two_sum_loses_nothing(a: float, b: float) -> None:
    s, error = _sum_of_two(a, b)
    assert Fraction(s) + Fraction(error) == Fraction(a) + Fraction(b)
    assert s == a + b


@given(NUMBERS, NUMBERS)
def test_a_product_loses_nothing(a: float, b: float) -> None:
    hi, lo = _dot(np.array([a]), np.array([b]))
    assert Fraction(hi) + Fraction(lo) == Fraction(a) * Fraction(b)


@given(SEEDS, st.integers(1, 40))
def test_a_compensated_dot_product_is_good_to_twice_the_precision(seed: int, count: int) -> None:
    a, b = cancelling(np.random.default_rng(seed), count)
    hi, lo = _dot(a, b)
    error = abs(Fraction(hi) + Fraction(lo) - inner(a, b))
    assert error <= (count * Fraction(EPS)) ** 2 * inner(np.abs(a), np.abs(b))


@pytest.mark.parametrize("kind", [SQUARED, LOGISTIC, POISSON, HUBER, HINGE, QUANTILE])
@settings(max_examples=100)
@given(seed=SEEDS)
def test_what_row_duals_prove_is_true(kind: Psi, seed: int) -> None:
    """For any duals, best or not: out + ⟨q, z − w⟩ ≤ L(z) at every z, with q = Σ a_r x_r + b without any rounding."""
    rng, X, y, s, starts, ridge, w = design(seed, kind)
    a, b, out = np.empty(len(X)), np.empty_like(w), np.empty(len(w))
    rows.slopes(kind, X, y, s, starts, ridge, w + ugly(rng, w.shape, 4.0) * (rng.random() < 0.5), a, b)
    if rng.random() < 0.3:
        a *= rng.random(len(a))  # still duals: of logistic rows, those between 0 and the share
    rows.lower_bounds(kind, X, y, s, starts, ridge, w, a, b, out)
    for i in range(len(w)):
        at = slice(starts[i], starts[i + 1])
        q = [inner(a[at], column) + Fraction(float(c)) for column, c in zip(X[at].T, b[i], strict=True)]
        for z in (w[i], w[i] + ugly(rng, w[i].shape), np.zeros_like(w[i])):
            line = Fraction(float(out[i])) + inner(
                q, [x - y for x, y in zip(fractions(z), fractions(w[i]), strict=True)]
            )
            assert at_most(line, exact_loss(kind, X[at], y[at], s[at], ridge, z))


@pytest.mark.parametrize("kind", [SQUARED, LOGISTIC])
@settings(max_examples=60)
@given(seed=SEEDS)
def test_and_hardly_less_than_the_truth_where_duals_are_best(kind: Psi, seed: int) -> None:
    _, X, y, s, starts, ridge, w = design(seed, kind)
    a, b, out = np.empty(len(X)), np.empty_like(w), np.empty(len(w))
    rows.slopes(kind, X, y, s, starts, ridge, w, a, b)
    rows.lower_bounds(kind, X, y, s, starts, ridge, w, a, b, out)
    for i in range(len(w)):
        at = slice(starts[i], starts[i + 1])
        truth = float(exact_loss(kind, X[at], y[at], s[at], ridge, w[i]))
        size = truth + float(np.abs(a[at]) @ (np.abs(X[at]) @ np.abs(w[i]))) * 1e-15
        assert out[i] >= truth - 1e-10 * size


@pytest.mark.parametrize("kind", [SQUARED, LOGISTIC])
@settings(max_examples=60)
@given(seed=SEEDS)
def test_values_are_within_what_margins_may_be_off(kind: Psi, seed: int) -> None:
    """√L moves by at most √(Σ s miss²), L of the logistic loss by Σ s miss, and 1e-13 for what else is rounded."""
    check_values(rows, kind, design(seed, kind))


@settings(max_examples=100)
@given(SEEDS)
def test_forces_and_their_doubt(seed: int) -> None:
    rng, X, _, _, starts, _, w = design(seed, SQUARED, sizes=(3, 25))
    a, b = ugly(rng, (len(X),)), ugly(rng, w.shape)
    for k in range(3):  # sums that cancel
        a[0] = 1.0
        X[0, k] = -float(inner(a[1:3], X[1:3, k]) + Fraction(float(b[0, k])))
    q, low, size = (np.empty_like(w) for _ in range(3))
    rows.forces(X, starts, a, b, q, low, size)
    terms = (np.diff(starts) + 2)[:, None] * EPS
    for i in range(len(w)):
        at = slice(starts[i], starts[i + 1])
        for k in range(3):
            truth = inner(a[at], X[at, k]) + Fraction(float(b[i, k]))
            error = abs(Fraction(float(q[i, k])) + Fraction(float(low[i, k])) - truth)
            assert error <= Fraction(float((size * terms**2)[i, k]))


def test_products_that_underflow_are_paid_for() -> None:
    """1e-200 · 1e-200 is nothing in double precision, and is not nothing."""
    X, a, b = np.array([[1e-200]]), np.array([1e-200]), np.zeros((1, 1))
    q, low, size = (np.empty((1, 1)) for _ in range(3))
    rows.forces(X, np.array([0, 1]), a, b, q, low, size)
    assert q[0, 0] == 0.0
    assert Fraction(1e-200) ** 2 <= Fraction(float(size[0, 0])) * (3 * Fraction(EPS)) ** 2
    out = np.empty(1)
    rows.lower_bounds(
        SQUARED, X, np.array([1e-160]), np.ones(1), np.array([0, 1]), np.zeros(1), b, np.array([1e-190]), b, out
    )
    truth = exact_loss(SQUARED, X, np.array([1e-160]), np.ones(1), np.zeros(1), [0.0])
    assert Fraction(float(out[0])) <= truth
    assert FAINT * EPS**2 > 5e-324


@settings(max_examples=100)
@given(SEEDS, st.booleans())
def test_the_divergence_of_a_flow_and_its_doubt(seed: int, with_box: bool) -> None:
    rng = np.random.default_rng(seed)
    V, E = 5, 30
    ends = rng.integers(0, V, (E, 2))
    u, s = 10.0 ** rng.integers(-14, 1) * ugly(rng, (E, 2), 2.0), 10.0 ** rng.integers(0, 12) * ugly(rng, (V, 2), 2.0)
    if rng.random() < 0.5:  # sums that cancel
        u[E // 2 :] = -u[: E // 2] * (1 + rng.integers(-2, 3, (E // 2, 1)) * EPS)
        ends[E // 2 :] = ends[: E // 2]
    hi, lo, rounding_bound = (np.empty((V, 2)) for _ in range(3))
    flow.exact_divergence(ends, u, hi, lo, rounding_bound)
    if with_box:
        flow.add_exactly(s, hi, lo, rounding_bound)
    for i in range(V):
        for k in range(2):
            truth = Fraction(float(s[i, k])) if with_box else Fraction(0)
            for (a, b), value in zip(ends, u[:, k], strict=True):
                truth += Fraction(float(value)) * (int(a == i) - int(b == i))
            assert abs(Fraction(float(hi[i, k])) + Fraction(float(lo[i, k])) - truth) <= Fraction(
                float(rounding_bound[i, k])
            )


@settings(max_examples=100)
@given(SEEDS)
def test_the_work_of_a_flow_is_not_overstated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends, u, w = rng.integers(0, 6, (20, 2)), ugly(rng, (20, 3)), ugly(rng, (6, 3)) + 1e6
    truth = sum(
        inner(u[e], [a - b for a, b in zip(fractions(w[i]), fractions(w[j]), strict=True)])
        for e, (i, j) in enumerate(ends)
    )
    assert Fraction(flow.across(ends, u, w)) <= truth


@settings(max_examples=100)
@given(SEEDS, st.sampled_from([0.0, 1e-12, 1e-3]))
def test_sums_around_a_centre(seed: int, rounding_bound: float) -> None:
    """Any ρ' within the rounding bound of ρ: first − lost ≤ Σ⟨ρ', centre − w⟩, and Σρ' is within slack of total."""
    rng = np.random.default_rng(seed)
    V, n = 12, 2
    group, rho, w = rng.integers(-1, 2, V), ugly(rng, (V, n), 4.0), 1e6 + ugly(rng, (V, n), 4.0)
    rho[V // 2 :] = -rho[: V // 2]
    d, centre = rounding_bound * np.abs(rho), 1e6 + rng.standard_normal((2, n))
    first, lost = np.zeros((2, 2))
    total, slack, size = np.zeros((3, 2, n))
    charge.gather(rho, d, w, group, centre, first, lost, total, slack, size)
    other = [
        [a + Fraction(float(rng.uniform(-1, 1))) * b for a, b in zip(fractions(x), fractions(y), strict=True)]
        for x, y in zip(rho, d, strict=True)
    ]
    for g in range(2):
        of = np.flatnonzero(group == g)
        truth = sum(
            (inner(other[i], [a - b for a, b in zip(fractions(centre[g]), fractions(w[i]), strict=True)]) for i in of),
            Fraction(0),
        )
        assert Fraction(float(first[g])) - Fraction(float(lost[g])) <= truth
        for k in range(n):
            sum_k = sum((other[i][k] for i in of), Fraction(0))
            assert abs(Fraction(float(total[g, k])) - sum_k) <= Fraction(float(slack[g, k]))
            assert sum((abs(other[i][k]) for i in of), Fraction(0)) <= Fraction(float(size[g, k])) * (
                1 + Fraction(1e-9)
            )
