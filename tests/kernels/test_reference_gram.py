"""Gram matrices in NumPy: their bounds against fractions, and the compiled kernels to rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.kernels import gram as compiled
from coterie.kernels.reference import gram
from coterie.kernels.reference.exact import EPS
from exactly import fractions, inner
from ugly_rows import ugly

SEEDS = st.integers(0, 2**32)
SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=4)


def problem(seed: int, n: int, sizes: list[int], n_groups: int, size: float = 1.0) -> tuple[Any, ...]:
    """Rows, factors, starts, ridge, groups and coordinates; a group, a column and factors may be empty."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X, h = size * ugly(rng, (starts[-1], n), 4.0), rng.random(starts[-1]) * (rng.random(starts[-1]) < 0.9)
    ridge = np.where(rng.random(n) < 0.5, 0.0, 10.0 ** rng.uniform(-8, 2, n))
    C = ugly(rng, (n_groups, n, n), 4.0) / size
    C[:, :, 0] *= rng.random((n_groups, 1)) < 0.8
    return X, h, starts, ridge, rng.integers(0, n_groups, len(sizes)), C


def exact_rows(X: Any, C: Any) -> list[list[Fraction]]:
    return [[inner(x, column) for column in C.T] for x in X]


@settings(max_examples=100)
@given(SEEDS, st.integers(1, 4), SIZES, st.integers(1, 3), st.sampled_from([1.0, 1e-60, 1e60]))
def test_gram_matrices_are_within_their_doubt(seed: int, n: int, sizes: list[int], n_groups: int, size: float) -> None:
    X, h, starts, ridge, group, C = problem(seed, n, sizes, n_groups, size)
    G, spoilt = np.empty_like(C), np.empty((n_groups, n))
    rounding_bound, longest = np.empty((2, n_groups))
    gram.gram(X, h, starts, ridge, group, C, G, rounding_bound, spoilt, longest)
    of = np.repeat(group, sizes)
    for g in range(n_groups):
        Z, factor = exact_rows(X[of == g], C[g]), fractions(h[of == g])
        members, squares = int((group == g).sum()), Fraction(0)
        for j in range(n):
            for k in range(n):
                truth = sum((a * z[j] * z[k] for a, z in zip(factor, Z, strict=True)), Fraction(0))
                truth += members * inner(
                    [Fraction(r) * Fraction(c) for r, c in zip(ridge, C[g, :, j], strict=True)], C[g, :, k]
                )
                squares += (truth - Fraction(G[g, j, k])) ** 2
                assert G[g, j, k] == G[g, k, j]
        assert squares <= Fraction(rounding_bound[g]) ** 2
        for z in Z:
            assert sum(x * x for x in z) <= Fraction(longest[g]) ** 2 * (1 + Fraction(1e-12))


@settings(max_examples=100)
@given(SEEDS, st.integers(1, 4), SIZES, st.integers(1, 3))
def test_projections_are_within_their_doubt(seed: int, n: int, sizes: list[int], n_groups: int) -> None:
    X, _, starts, _, group, C = problem(seed, n, sizes, n_groups)
    rng = np.random.default_rng(seed)
    a, b = ugly(rng, (len(X),), 4.0), ugly(rng, (len(sizes), n), 4.0)
    da = np.abs(a) * rng.choice([0.0, 1e-12, 1e-3])
    out, rounding_bound = np.empty((n_groups, n)), np.empty(n_groups)
    gram.project(X, starts, group, C, a, da, b, out, rounding_bound)
    moved = [x + Fraction(rng.uniform(-1, 1)) * d for x, d in zip(fractions(a), fractions(da), strict=True)]
    of = np.repeat(group, sizes)
    for g in range(n_groups):
        Z, duals = exact_rows(X[of == g], C[g]), [moved[r] for r in np.flatnonzero(of == g)]
        squares = Fraction(0)
        for j in range(n):
            truth = sum((x * z[j] for x, z in zip(duals, Z, strict=True)), Fraction(0))
            truth += sum((inner(b[i], C[g, :, j]) for i in np.flatnonzero(group == g)), Fraction(0))
            squares += (truth - Fraction(out[g, j])) ** 2
        assert squares <= Fraction(rounding_bound[g]) ** 2


def passes(module: Any, seed: int, n: int, sizes: list[int], n_groups: int) -> list[Any]:
    """All that the passes compute, and the sizes that rounding is relative to."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X, h, group = rng.standard_normal((starts[-1], n)), rng.random(starts[-1]), rng.integers(0, n_groups, len(sizes))
    ridge = np.where(np.arange(n) % 2 == 0, 0.0, 0.3)
    if n == 3:
        X[:, -1] = 0.0
    C, unit = rng.standard_normal((n_groups, n, n)), np.empty((n_groups, n))
    module.lengths(X, h, starts, ridge, group, unit)
    C *= (unit[:, None, :] > 0) + 0.0
    G, spoilt = np.empty_like(C), np.empty((n_groups, n))
    rounding_bound, longest, size, squares, sums = np.empty((5, n_groups))
    module.gram(X, h, starts, ridge, group, C, G, rounding_bound, spoilt, longest)
    found = [unit, G.copy(), rounding_bound.copy(), longest, spoilt]
    out, a, b = np.empty((n_groups, n)), rng.standard_normal(starts[-1]), rng.standard_normal((len(sizes), n))
    module.project(X, starts, group, C, a, np.abs(a), b, out, size)
    module.stretch(X, h, starts, group, unit, squares, sums)
    return [*found, out, size, squares, sums]


@settings(max_examples=60)
@given(SEEDS, st.sampled_from([1, 2, 3, 12]), SIZES, st.integers(1, 3))
def test_the_compiled_kernels_say_the_same(seed: int, n: int, sizes: list[int], n_groups: int) -> None:
    mine, theirs = (passes(module, seed, n, sizes, n_groups) for module in (gram, compiled))
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12 * np.abs(other).max())


@settings(max_examples=60)
@given(SEEDS, st.integers(1, 12), st.integers(1, 4))
def test_both_orthonormalise_alike(seed: int, n: int, n_groups: int) -> None:
    """To the last bit: one subtraction after the other, as the compiled loop takes them."""
    rng = np.random.default_rng(seed)
    B = ugly(rng, (n_groups, n + 1, n), 1.0)
    B[:, :, rng.random(n) < 0.2] = 0.0
    if n > 1:
        B[0, :, -1] = B[0, :, 0] * (1 + 4 * EPS)  # columns that are nearly the same
    G, spoilt = B.transpose(0, 2, 1) @ B, 1e-20 * rng.random((n_groups, n))
    C = rng.standard_normal((n_groups, n, n))
    results = []
    for module in (gram, compiled):
        mine, weak = C.copy(), np.zeros((n_groups, n), dtype=bool)
        module.orthonormalise(G.copy(), spoilt, mine, weak)
        results.append((mine, weak))
    np.testing.assert_array_equal(results[0][1], results[1][1])
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)


def test_two_passes_make_coordinates_orthonormal() -> None:
    X, h, starts, _, group, _ = problem(0, 4, [6, 6, 6], 2)
    rng, group = np.random.default_rng(0), np.array([0, 1, 1])
    X, h = rng.standard_normal(X.shape), h + 0.1
    C = np.tile(np.eye(4), (2, 1, 1))
    G, spoilt, weak = np.empty_like(C), np.empty((2, 4)), np.zeros((2, 4), dtype=bool)
    rounding_bound, longest = np.empty((2, 2))
    for _ in range(3):
        gram.gram(X, h, starts, np.zeros(4), group, C, G, rounding_bound, spoilt, longest)
        error = np.linalg.norm(G - np.eye(4), axis=(1, 2)) + rounding_bound
        gram.orthonormalise(G, spoilt, C, weak)
    assert (error < 1e-13).all()
    assert not weak.any()


@pytest.mark.parametrize("size", [1e160, 1e308])
def test_rows_too_large_prove_nothing(size: float) -> None:
    X, h, starts, ridge, group, C = problem(1, 2, [3, 2], 1)
    X[0] = size
    G, spoilt, rounding_bound, longest = np.empty_like(C), np.empty((1, 2)), np.empty(1), np.empty(1)
    gram.gram(X, h + 1, starts, ridge, group, C, G, rounding_bound, spoilt, longest)
    assert not np.isfinite(rounding_bound[0])
