"""What rows prove, in NumPy: every bound against fractions, and the compiled kernels to rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import rows as compiled
from coterie.kernels.reference import rows
from coterie.kernels.reference.exact import EPS
from coterie.problem.losses.psi import Psi
from exactly import LOGISTIC, SQUARED, at_most, exact_loss, fractions, inner
from ugly_rows import cancelling, check_values, design, ugly

SEEDS = st.integers(0, 2**32)
SHAPES = [(1, (1, 4)), (3, (1, 4)), (12, (2, 1)), (2, (7, 1, 3))]
both = pytest.mark.parametrize("kind", [SQUARED, LOGISTIC])
shapes = pytest.mark.parametrize(("n", "sizes"), SHAPES)


def duals(rng: np.random.Generator, kind: Psi, X: Any, y: Any, s: Any, starts: Any, ridge: Any, w: Any) -> Any:
    """Duals of the weights, or of others, or smaller ones: all prove something."""
    a, b = np.empty(len(X)), np.empty_like(w)
    rows.slopes(kind, X, y, s, starts, ridge, w + ugly(rng, w.shape, 4.0) * (rng.random() < 0.5), a, b)
    return a * (rng.random(len(a)) if rng.random() < 0.3 else 1.0), b


@both
@shapes
@settings(max_examples=60)
@given(seed=SEEDS)
def test_what_row_duals_prove_is_true(kind: Psi, n: int, sizes: tuple[int, ...], seed: int) -> None:
    rng, X, y, s, starts, ridge, w = design(seed, kind, n, sizes)
    a, b = duals(rng, kind, X, y, s, starts, ridge, w)
    out = np.empty(len(w))
    rows.lower_bounds(kind, X, y, s, starts, ridge, w, a, b, out)
    for i in range(len(w)):
        at = slice(starts[i], starts[i + 1])
        q = [inner(a[at], column) + Fraction(float(c)) for column, c in zip(X[at].T, b[i], strict=True)]
        for z in (w[i], w[i] + ugly(rng, w[i].shape), np.zeros_like(w[i])):
            line = Fraction(float(out[i])) + inner(
                q, [x - y for x, y in zip(fractions(z), fractions(w[i]), strict=True)]
            )
            assert at_most(line, exact_loss(kind, X[at], y[at], s[at], ridge, z))


@both
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


@both
@shapes
@settings(max_examples=40)
@given(seed=SEEDS)
def test_values_are_within_what_margins_may_be_off(kind: Psi, n: int, sizes: tuple[int, ...], seed: int) -> None:
    """√L moves by at most √(Σ s miss²), L of the logistic loss by Σ s miss, and 1e-13 for what else is rounded."""
    check_values(rows, kind, design(seed, kind, n, sizes))


@settings(max_examples=200)
@given(SEEDS, st.integers(1, 12))
def test_residuals_are_within_their_misses(seed: int, n: int) -> None:
    """hi + (error − lo), before its last rounding, is within `misses` of y − ⟨x, w⟩: half of that is left over."""
    rng = np.random.default_rng(seed)
    x, v = cancelling(rng, n)
    X, w, y, starts, miss = x[None], v[None], np.array([float(inner(x, v))]), np.array([0, 1]), np.empty(1)
    hi, lo = rows._margins(X, starts, w)
    hi, error = rows.two_sum(y, -hi)
    rows.misses(X, y, starts, w, miss)
    off = abs(Fraction(hi[0]) + Fraction(error[0] - lo[0]) - (Fraction(y[0]) - inner(x, v)))
    assert off <= Fraction(miss[0]) / 2 + Fraction(2) ** -900


@settings(max_examples=60)
@given(SEEDS, st.sampled_from([1.0, 1e-150, 1e-200, 1e60]))
def test_forces_and_their_doubt(seed: int, size: float) -> None:
    rng, X, _, _, starts, _, w = design(seed, SQUARED, sizes=(3, 25, 1))
    a, b = size * ugly(rng, (len(X),)), size * ugly(rng, w.shape)
    X *= size
    for k in range(3):  # sums that cancel
        a[0] = 1.0
        X[0, k] = -float(inner(a[1:3], X[1:3, k]) + Fraction(float(b[0, k])))
    q, low, sizes = (np.empty_like(w) for _ in range(3))
    rows.forces(X, starts, a, b, q, low, sizes)
    terms = (np.diff(starts) + 2)[:, None] * EPS
    for i in range(len(w)):
        at = slice(starts[i], starts[i + 1])
        for k in range(3):
            truth = inner(a[at], X[at, k]) + Fraction(float(b[i, k]))
            error = abs(Fraction(float(q[i, k])) + Fraction(float(low[i, k])) - truth)
            assert error <= Fraction(float((sizes * terms**2)[i, k]))


@both
@pytest.mark.parametrize("size", [1e160, 1e300, 1.7e308])
@settings(max_examples=20)
@given(seed=SEEDS)
def test_numbers_too_large_prove_nothing(kind: Psi, size: float, seed: int) -> None:
    """Bounds that are numbers are true; where products overflow, they are none."""
    rng, X, y, s, starts, ridge, w = design(seed, kind, 2)
    X[rng.integers(len(X)), rng.integers(2)] = size
    w[:, rng.integers(2)] = rng.choice([size, 1e8, 0.999, 1.0])
    a, b = duals(rng, kind, X, y, s, starts, ridge, w)
    out = np.empty(len(w))
    rows.lower_bounds(kind, X, y, s, starts, ridge, w, a, b, out)
    for i in np.flatnonzero(np.isfinite(a).all() & ~np.isnan(out)):
        at = slice(starts[i], starts[i + 1])
        assert np.isneginf(out[i]) or at_most(
            Fraction(float(out[i])), exact_loss(kind, X[at], y[at], s[at], ridge, w[i])
        )


@both
@shapes
@settings(max_examples=40)
@given(seed=SEEDS)
def test_the_compiled_kernels_say_the_same(kind: Psi, n: int, sizes: tuple[int, ...], seed: int) -> None:
    rng, X, y, s, starts, ridge, w = design(seed, kind, n, sizes)
    a, b = duals(rng, kind, X, y, s, starts, ridge, w)
    reach = np.abs(y) + np.abs(X * np.repeat(w, sizes, axis=0)).sum(axis=1)

    def all_of(module: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Each result, and the size that its rounding is relative to."""
        node, row, forces = np.empty(len(w)), np.empty(len(X)), np.empty((3, *w.shape))
        found = []
        module.values(kind, X, y, s, starts, ridge, w, node)
        margin = np.add.reduceat(s * reach * (EPS if kind == SQUARED else 1), starts[:-1])
        found.append((node.copy(), node + margin * (margin if kind == SQUARED else 1)))
        module.misses(X, y, starts, w, row)
        found.append((row.copy(), row.copy()))
        best, ridged = np.empty(len(X)), np.empty_like(w)
        module.slopes(kind, X, y, s, starts, ridge, w, best, ridged)
        found += [(best, s * (EPS * reach + 1e-300) + np.abs(best)), (ridged, np.abs(ridged))]
        if kind == SQUARED:
            moved, still = a.copy(), b.copy()
            module.move_slopes(X, s, starts, ridge, w, moved, still)
            found += [(moved, np.abs(a) + 2 * s * reach), (still, np.abs(b) + np.abs(ridged))]
        else:
            module.bends(kind, X, y, s, starts, w, row)
            found.append((row.copy(), row * (1 + reach)))
        module.forces(X, starts, a, b, *forces)
        found += [(forces[0] + forces[1], forces[0] + forces[1] + EPS * forces[2]), (forces[2], forces[2])]
        module.lower_bounds(kind, X, y, s, starts, ridge, w, a, b, node)
        terms = np.add.reduceat(np.abs(a) * (reach + np.abs(a) / s + 1), starts[:-1])
        found.append((node.copy(), terms + s.max() + (np.abs(b * w) + np.abs(b) ** 2).sum(axis=1)))
        return found

    for (x, size), (z, _) in zip(all_of(rows), all_of(compiled), strict=True):
        assert (np.abs(x - z) <= 1e-11 * np.abs(size)).all()
