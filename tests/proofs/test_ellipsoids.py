"""Ellipsoids hold every point of a level set, floors lie below every loss: compared in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coterie.problem.losses.design import Design
from coterie.problem.losses.psi import Psi
from coterie.proofs.ellipsoids import Ellipsoids
from coterie.proofs.null_directions import null_columns
from exactly import (
    DIGITS,
    HINGE,
    HUBER,
    LOGISTIC,
    POISSON,
    QUANTILE,
    SQUARED,
    at_most,
    exact_loss,
    fractions,
    high,
    inner,
    solve,
)

pytestmark = pytest.mark.usefixtures("compiled_kernels")

SEEDS = st.integers(0, 2**32)


enclosing = pytest.mark.parametrize("kind", [SQUARED, LOGISTIC, POISSON, HUBER, QUANTILE, HINGE])


def design(seed: int, kind: Psi) -> Design:
    """Two nodes with columns that are scaled, moved away from zero, or nearly dependent."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rng.integers(3, 7), 2))
    match rng.integers(4):
        case 0:
            X *= 10.0 ** rng.uniform(-6, 6, 2)
        case 1:
            X[:, 0], X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(1, 9), 1.0
        case 2:
            X[:, 1] = X[:, 0] + 10.0 ** -rng.uniform(1, 12) * X[:, 1]
    y = X @ rng.standard_normal(2) + 10.0 ** rng.uniform(-9, 0) * rng.standard_normal(len(X))
    if kind in (LOGISTIC, HINGE):
        y = (y > np.median(y)).astype(float)
        X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
        X, y = (np.vstack([X, X]), np.append(y, 1 - y)) if rng.random() < 0.5 else (X, y)
    if kind == POISSON:
        y = rng.poisson(np.exp(np.clip(y, -2, 4))).astype(float)
    ridge = np.array([0.0, 10.0 ** rng.uniform(-6, 0)]) * (rng.random() < 0.3)
    cut = int(rng.integers(1, len(X)))
    return Design(kind, X, y, 10.0 ** rng.uniform(-2, 0, len(X)), np.array([0, cut, len(X)]), ridge)


def total(d: Design, v: Any) -> Any:
    """F(v), exactly."""
    cuts = [slice(d.starts[i], d.starts[i + 1]) for i in range(2)]
    parts = [exact_loss(d.psi, d.X[one], d.y[one], d.s[one], d.ridge, v) for one in cuts]
    return parts[0] + parts[1]


def above(value: Any) -> float:
    """A float that is no less."""
    if value > 10**300:
        return float("inf")
    found = float(value)
    return found if at_most(value, Fraction(found)) else float(np.nextafter(found, np.inf))


def pooled(d: Design) -> Ellipsoids:
    return Ellipsoids.of(d, np.zeros(2, dtype=np.int64), 1, np.zeros(2, dtype=bool), True)


def places(sets: Ellipsoids, rng: np.random.Generator) -> list[np.ndarray]:
    """Points around v₀ along the axes of its ellipsoid and across them, near and far, and the origin."""
    steps = 10.0 ** rng.uniform(-9, 3, (8, 1)) * rng.standard_normal((8, 2))
    return [np.zeros(2), sets.v0[0], *(sets.v0[0] + step @ sets.C[0].T for step in steps)]


@enclosing
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_an_ellipsoid_holds_its_level_set(kind: Psi, seed: int) -> None:
    """Every point lies in the ellipsoid of its own level."""
    d, rng = design(seed, kind), np.random.default_rng(seed)
    sets = pooled(d)
    assume(sets.resolved[0])
    C = [fractions(row) for row in sets.C[0]]
    for v in places(sets, rng):
        radius = float(sets.radius(np.array([above(total(d, v))]), np.zeros(1), np.full(2, np.inf))[0])
        t = solve(C, [a - b for a, b in zip(fractions(v), fractions(sets.v0[0]), strict=True)])
        assert t is not None
        if np.isfinite(radius):
            assert sum(x * x for x in t) <= Fraction(radius) ** 2


@enclosing
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_floors_lie_below(kind: Psi, seed: int) -> None:
    d, rng = design(seed, kind), np.random.default_rng(seed)
    sets = pooled(d)
    floor = Fraction(float(sets.floors[0]))
    assert floor >= 0
    for v in places(sets, rng):
        assert at_most(floor, total(d, v))


@enclosing
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, apart=st.sampled_from([1e-6, 0.1, 10.0]))
def test_nodes_that_are_apart(kind: Psi, seed: int, apart: float) -> None:
    """Weights of the nodes within R of v, and their own losses as the level: v is still inside."""
    d, rng = design(seed, kind), np.random.default_rng(seed)
    sets = pooled(d)
    assume(sets.resolved[0])
    C = [fractions(row) for row in sets.C[0]]
    for v in places(sets, rng):
        other = v + apart * rng.uniform(-1, 1, 2)
        R = max(abs(float(Fraction(float(a)) - Fraction(float(b)))) for a, b in zip(v, other, strict=True)) * (
            1 + 1e-15
        )
        cuts, w = [slice(d.starts[i], d.starts[i + 1]) for i in range(2)], (v, other)
        losses = [exact_loss(kind, d.X[c], d.y[c], d.s[c], d.ridge, z) for c, z in zip(cuts, w, strict=True)]
        radius = float(sets.radius(np.array([above(losses[0] + losses[1])]), np.array([R]), np.full(2, np.inf))[0])
        t = solve(C, [a - b for a, b in zip(fractions(v), fractions(sets.v0[0]), strict=True)])
        assert t is not None
        if np.isfinite(radius):
            assert sum(x * x for x in t) <= Fraction(radius) ** 2


@pytest.mark.parametrize("seed", range(10))
def test_capped_columns(seed: int) -> None:
    """Two equal columns under alpha: each is capped, the third is enclosed whatever they are inside their caps."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 3))
    X[:, 1] = X[:, 0]
    d = Design(SQUARED, X, rng.standard_normal(6), np.full(6, 0.3), np.array([0, 3, 6]), np.zeros(3))
    sets = Ellipsoids.of(d, np.zeros(2, dtype=np.int64), 1, np.array([True, True, False]), True)
    assert sets.capped[0].tolist() == [True, True, False]
    assert sets.resolved[0]
    for _ in range(5):
        v = 3 * rng.standard_normal(3)
        caps = np.array([*(np.abs(v[:2]) * (1 + rng.random(2))), np.inf])
        width = sets.half_widths(sets.radius(np.array([above(total(d, v))]), np.zeros(1), caps), caps)[0]
        assert all(
            abs(a - b) <= Fraction(float(c)) for a, b, c in zip(*map(fractions, (v, sets.v0[0])), width, strict=True)
        )


@settings(max_examples=60)
@given(seed=SEEDS)
def test_the_growth_of_a_logistic_loss(seed: int) -> None:
    """φ(θ) ≥ φ(0) + φ'(0)θ + φ''(0)(e^−κθ + κθ − 1)/κ² along any line whose rows are no longer than κ."""
    rng = np.random.default_rng(seed)
    x, z, s = (rng.standard_normal(6) * 10.0 ** rng.uniform(-2, 1) for _ in range(3))
    s = np.abs(s)
    with mpmath.workdps(DIGITS):
        kappa, theta = mpmath.mpf(float(np.abs(x).max())), mpmath.mpf(float(10.0 ** rng.uniform(-3, 3)))

        def value(at: Any) -> Any:
            return mpmath.fsum(
                mpmath.mpf(c) * mpmath.log1p(mpmath.exp(mpmath.mpf(b) + at * mpmath.mpf(a))) for a, b, c in rows
            )

        rows = [tuple(map(float, row)) for row in zip(x, z, s, strict=True)]
        chances = [1 / (1 + mpmath.exp(-mpmath.mpf(b))) for _, b, _ in rows]
        slope = mpmath.fsum(c * p * a for (a, _, c), p in zip(rows, chances, strict=True))
        bend = mpmath.fsum(c * p * (1 - p) * a * a for (a, _, c), p in zip(rows, chances, strict=True))
        grown = bend * (mpmath.exp(-kappa * theta) + kappa * theta - 1) / kappa**2
        assert value(theta) >= (value(0) + slope * theta + grown) * (1 - mpmath.mpf("1e-50"))


# --- directions that no row sees ----------------------------------------------------------------------------


def found(X: np.ndarray) -> list[int]:
    """Columns that are fixed at zero."""
    n = X.shape[1]
    d = Design(SQUARED, X, np.ones(len(X)), np.ones(len(X)), np.array([0, len(X)]), np.zeros(n))
    sets = Ellipsoids.of(d, np.zeros(1, dtype=np.int64), 1, np.zeros(n, dtype=bool), True)
    left_out = np.flatnonzero(np.abs(sets.C[0]).max(axis=1) == 0)
    return left_out.tolist() if sets.resolved[0] else [-1]


def dummies(rng: np.random.Generator, rows: int = 20) -> np.ndarray:
    return np.column_stack([np.eye(3)[rng.integers(0, 3, rows)], np.ones(rows)])


x = np.random.default_rng(0).standard_normal(20)
EXACT = {
    "a column of zeros": (np.column_stack([x, 0 * x]), 1),
    "equal columns": (np.column_stack([x, x**2, x]), 1),
    "twice a column": (np.column_stack([x, 2 * x]), 1),
    "minus a column": (np.column_stack([x, -x]), 1),
    "dummies and an intercept": (dummies(np.random.default_rng(1)), 1),
    "two sets of dummies": (
        np.hstack([dummies(np.random.default_rng(2)), dummies(np.random.default_rng(3))[:, :3]]),
        2,
    ),
    "two columns of zeros": (np.column_stack([0 * x, x, 0 * x]), 2),
    "few rows": (np.random.default_rng(4).standard_normal((2, 5)), 3),
    "the same row many times": (np.tile(np.random.default_rng(5).standard_normal((2, 4)), (9, 1)), 2),
}


@pytest.mark.parametrize("name", EXACT)
def test_directions_that_no_row_sees_are_found(name: str) -> None:
    X, count = EXACT[name]
    left_out = found(X)
    assert len(left_out) == count
    others = np.setdiff1d(np.arange(X.shape[1]), left_out)
    rows = [fractions(row) for row in X]
    for j in left_out:  # the others make up for each of them, exactly
        assert solve([[row[k] for k in others] for row in rows], [row[j] for row in rows]) is not None


@pytest.mark.parametrize("factor", [0.1, 1 / 3, 1e-3, 0.7, np.pi])
def test_columns_that_only_rounding_tells_apart_are_never_left_out(factor: float) -> None:
    """fl(0.1 x) is no multiple of x: what rounding left is data, which weights of 1e16 make use of."""
    X = np.column_stack([x, factor * x])
    rows = [fractions(row) for row in X]
    assert solve([[row[0]] for row in rows], [row[1] for row in rows]) is None
    assert found(X) in ([], [-1])


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_whatever_is_left_out_is_made_up_for(seed: int) -> None:
    """Of tables with whole numbers, tenths and halves, in which some columns depend on others and some nearly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (int(rng.integers(1, 9)), 3)) * rng.choice([1.0, 0.5, 0.1, 1 / 3])
    X = np.column_stack([X, X @ rng.choice([0.0, 1.0, -1.0, 2.0, 0.1, 1e-8], (3, 2))])
    left_out = found(X)
    assume(left_out != [-1])
    others = np.setdiff1d(np.arange(5), left_out)
    rows = [fractions(row) for row in X]
    for j in left_out:
        assert solve([[row[k] for k in others] for row in rows], [row[j] for row in rows]) is not None


def one_hot(rng: np.random.Generator, levels: int, rows: int) -> np.ndarray:
    """All levels of a category, each seen, less their means and over their spread, as estimators make them."""
    of = rng.permutation(np.concatenate([np.arange(levels), rng.integers(0, levels, rows - levels)]))
    hot = np.eye(levels)[of]
    return (hot - hot.mean(axis=0)) / hot.std(axis=0)


def made_up_for(X: np.ndarray, left_out: list[int]) -> bool:
    """Whether the other columns make up for these, exactly."""
    rows = [fractions(row) for row in X]
    others = np.setdiff1d(np.arange(X.shape[1]), left_out)
    return all(
        solve([[row[k] for k in others] for row in rows], [row[j] for row in rows]) is not None for j in left_out
    )


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS)
def test_all_levels_of_categories_beside_an_intercept(seed: int) -> None:
    """In other units they add up to it but for rounding; yet rows have so few values that they are dependent."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, int(rng.integers(1, 3)))
    X = np.column_stack([*(one_hot(rng, int(k), 60) for k in sizes), rng.standard_normal(60), np.ones(60)])
    left_out = found(X)
    assert len(left_out) == len(sizes)
    assert made_up_for(X, left_out)


def test_columns_that_add_up_but_for_rounding_are_never_left_out() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 40)) * 0.1
    X = np.column_stack([one_hot(rng, 3, 40), a, b, a + b, np.ones(40)])
    left_out = [j for j in found(X) if j >= 0]
    assert made_up_for(X, left_out)
    assert not set(left_out) & {3, 4, 5}


def test_a_level_that_has_a_ridge_is_kept() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([one_hot(rng, 3, 40), np.ones(40)])
    for ridge in np.eye(4):
        d = Design(SQUARED, X, X[:, 0], np.ones(40), np.array([0, 40]), ridge)
        C = np.eye(4)
        C[:3, 2] = X[:, :3].std(axis=0) ** -1
        weak, nodes, columns = np.arange(4) == 2, np.ones(1, dtype=bool), np.ones(4, dtype=bool)
        assert null_columns(d, nodes, columns, C, weak) == []


@pytest.mark.parametrize("size", [np.inf, np.nan, 1e300])
def test_directions_without_numbers_prove_nothing(size: float) -> None:
    """Weights of rows from 1e-12 to 1 leave such coordinates."""
    d = Design(SQUARED, np.column_stack([x, x, x**2]), x, np.ones(20), np.array([0, 20]), np.zeros(3))
    C, weak = np.array([[1.0, size, 0.0], [0.0, 1e-300, 0.0], [0.0, 0.0, 1.0]]), np.array([False, True, False])
    with np.errstate(all="ignore"):
        assert null_columns(d, np.ones(1, dtype=bool), np.ones(3, dtype=bool), C, weak) == []


def test_no_columns_leave_none_out() -> None:
    d = Design(SQUARED, np.column_stack([x, x]), x, np.ones(20), np.array([0, 20]), np.zeros(2))
    nothing = np.zeros(2, dtype=bool)
    assert null_columns(d, np.ones(1, dtype=bool), nothing, np.eye(2), nothing) == []


def test_a_ridge_keeps_a_direction() -> None:
    X = np.column_stack([x, x])
    d = Design(SQUARED, X, x, np.ones(20), np.array([0, 20]), np.array([0.1, 0.0]))
    C, weak = np.array([[1.0, -1.0], [0.0, 1.0]]), np.array([False, True])
    assert null_columns(d, np.ones(1, dtype=bool), np.ones(2, dtype=bool), C, weak) == []


def test_sixty_digits_are_enough() -> None:
    """1 + e^−100 differs from 1 in the 44th digit."""
    with mpmath.workdps(DIGITS):
        assert high(Fraction(1)) + mpmath.exp(-100) > 1
    assert inner([0.1], [10]) != 1


def test_tied_columns_do_not_differ_however_far_apart_nodes_can_be() -> None:
    sets = pooled(design(0, SQUARED))._at(np.array([1.0, 0.0]))
    with np.errstate(all="raise"):
        apart = sets.distances(np.full(len(sets.v0), np.inf))
    assert np.isinf(apart[:, 0]).all()
    assert not apart[:, 1:].any()
