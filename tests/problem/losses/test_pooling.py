"""Pooled models: every bound on what rounding does to their coordinates, slopes, curvatures and values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.problem.losses import pooling
from coterie.problem.losses.design import Design
from coterie.problem.losses.pooling import Pool
from coterie.problem.losses.psi import Psi
from exactly import DIGITS, LOGISTIC, SQUARED, at_most, exact_loss, fractions, high, inner

SEEDS = st.integers(0, 2**32)
TABLES = ("plain", "scaled", "offset", "collinear", "zero", "duplicate", "few rows")


def table(rng: np.random.Generator, kind: str, n: int = 3, rows: int = 8) -> np.ndarray:
    """Columns as people have them."""
    X = rng.standard_normal((2 if kind == "few rows" else rows, n))
    if kind == "scaled":
        X *= 10.0 ** rng.uniform(-9, 9, n)
    if kind == "offset":
        X[:, 0] += 10.0 ** rng.uniform(1, 12)
        X[:, -1] = 1.0
    if kind == "collinear":
        X[:, -1] = X[:, 0] * 0.1 + 10.0 ** -rng.uniform(1, 17) * X[:, -1]
    if kind == "zero":
        X[:, rng.integers(n)] = 0.0
    if kind == "duplicate":
        X[:, -1] = X[:, 0]
    return X


def design(seed: int, loss: Psi, kind: str, ridged: bool = False) -> Design:
    """Two nodes; labels that fit well, or classes that cannot be told from each other."""
    rng = np.random.default_rng(seed)
    X = table(rng, kind)
    y = X @ rng.standard_normal(X.shape[1]) + 10.0 ** rng.uniform(-12, 0) * rng.standard_normal(len(X))
    if loss == LOGISTIC:
        X, y = np.tile(X, (2, 1)), np.repeat([0.0, 1.0], len(X))
    starts = np.array([0, len(X) // 2, len(X)])
    ridge = np.where(rng.random(X.shape[1]) < 0.5, 1e-3, 0.0) if ridged else np.zeros(X.shape[1])
    return Design(loss, X, y, 10.0 ** rng.uniform(-3, 0, len(X)), starts, ridge)


def pooled(d: Design) -> Pool:
    return Pool.of(d, np.zeros(2, dtype=np.int64), 1)


def in_coordinates(d: Design, C: np.ndarray) -> list[list[Fraction]]:
    """Cᵀx of every row, exactly."""
    return [[inner(column, x) for column in C.T] for x in d.X]


def gram_minus_unit(d: Design, C: np.ndarray, h: list[Any]) -> Any:
    """‖CᵀHC − I‖² over the directions that are there, exactly for fractions h."""
    rows, n = in_coordinates(d, C), d.X.shape[1]
    columns = [fractions(C[:, j]) for j in range(n)]
    total = Fraction(0)
    for j in range(n):
        for k in range(n):
            entry = sum((a * z[j] * z[k] for a, z in zip(h, rows, strict=True)), Fraction(0))
            for m, strength in enumerate(fractions(d.ridge)):
                entry += 2 * 2 * strength * columns[j][m] * columns[k][m]  # two nodes
            total += (entry - int(j == k and any(columns[j]))) ** 2
    return total


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("ridged", [False, True])
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_the_error_of_coordinates_is_no_smaller_than_it_is(kind: str, ridged: bool, seed: int) -> None:
    """Of the C that is returned, not of the one before; and no row is longer than is said."""
    d = design(seed, SQUARED, kind, ridged)
    at = pooled(d).coordinates(2 * d.s)
    assert gram_minus_unit(d, at.C[0], fractions(2 * d.s)) <= Fraction(float(at.error[0])) ** 2
    longest = max(sum(x * x for x in z) for z in in_coordinates(d, at.C[0]))
    assert longest <= Fraction(float(at.longest[0])) ** 2 * (1 + Fraction(1e-9))


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_also_when_passes_run_out(passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "PASSES", passes)
    for seed in range(20):
        d = design(seed, SQUARED, "collinear")
        at = pooled(d).coordinates(2 * d.s)
        assert gram_minus_unit(d, at.C[0], fractions(2 * d.s)) <= Fraction(float(at.error[0])) ** 2


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_resolved_means_that_every_direction_is_seen(kind: str, seed: int) -> None:
    """The determinant of the Gram matrix of all columns that are there is not zero, exactly."""
    d = design(seed, SQUARED, kind)
    at = pooled(d).coordinates(2 * d.s)
    there = np.flatnonzero(np.abs(at.C[0]).max(axis=0) > 0)
    G = [[inner(d.X[:, j], d.X[:, k]) for k in there] for j in there]
    assert determinant(G) > 0 or not at.resolved[0]


@pytest.mark.parametrize("kind", ["plain", "scaled", "offset"])
def test_ordinary_tables_are_resolved(kind: str) -> None:
    for seed in range(20):
        d = design(seed, SQUARED, kind)
        assert pooled(d).coordinates(2 * d.s).resolved[0]


def determinant(G: list[list[Fraction]]) -> Fraction:
    G, product = [list(row) for row in G], Fraction(1)
    for k in range(len(G)):
        pivot = G[k][k]
        product *= pivot
        if not pivot:
            return Fraction(0)
        for j in range(k + 1, len(G)):
            factor = G[j][k] / pivot
            G[j] = [a - factor * b for a, b in zip(G[j], G[k], strict=True)]
    return product


def slope_and_bend(d: Design, v: np.ndarray) -> tuple[list[Any], list[Any]]:
    """s ψ' and s ψ'' of every row at v, to 60 digits."""
    slopes, bends = [], []
    with mpmath.workdps(DIGITS):
        for x, y, s in zip(d.X, d.y, d.s, strict=True):
            z, share = high(inner(x, v)), mpmath.mpf(float(s))
            if d.psi is SQUARED:
                slopes.append(2 * share * (z - mpmath.mpf(float(y))))
                bends.append(2 * share)
            else:
                chance, other = 1 / (1 + mpmath.exp(-z)), 1 / (1 + mpmath.exp(z))
                slopes.append(share * (-other if y > 0.5 else chance))
                bends.append(share * chance * other)
    return slopes, bends


@pytest.mark.parametrize("loss", [SQUARED, LOGISTIC])
@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, far=st.sampled_from([0.0, 1e-9, 1.0, 40.0]))
def test_slopes_curvatures_and_values(loss: Psi, kind: str, seed: int, far: float) -> None:
    """At the minimiser and far from it, where chances are 0 and 1 to the last bit."""
    d = design(seed, loss, kind, ridged=True)
    pool, rng = pooled(d), np.random.default_rng(seed)
    v, at = pool.minimise()
    if far:
        v = v + far * rng.standard_normal(v.shape) / np.maximum(np.abs(d.X).max(axis=0), 1e-9)
    slopes, bends = slope_and_bend(d, v[0])
    out, rounding_bound = pool.slope(v, at.C)
    with mpmath.workdps(DIGITS):
        miss = []
        for column, value in zip(at.C[0].T, out[0], strict=True):
            total = mpmath.fsum(a * high(inner(column, x)) for a, x in zip(slopes, d.X, strict=True))
            total += high(
                sum(2 * 2 * r * w * c for r, w, c in zip(*map(fractions, (d.ridge, v[0], column)), strict=True))
            )
            miss.append((total - mpmath.mpf(float(value))) ** 2)
        assert mpmath.sqrt(mpmath.fsum(miss)) <= mpmath.mpf(float(rounding_bound[0])) * (1 + mpmath.mpf("1e-9"))
        for found, truth in zip(pool.bend(v), bends, strict=True):
            assert mpmath.mpf(float(found)) <= truth * (1 + mpmath.mpf("1e-10"))
    cuts = [slice(d.starts[i], d.starts[i + 1]) for i in range(2)]
    values = [exact_loss(loss, d.X[one], d.y[one], d.s[one], d.ridge, v[0]) for one in cuts]
    assert at_most(Fraction(float(pool.least(v)[0])), values[0] + values[1])


def test_the_model_of_all_nodes_is_found_once_and_kept_if_there_was_time(monkeypatch: pytest.MonkeyPatch) -> None:
    d = design(0, LOGISTIC, "plain")
    with monkeypatch.context() as hurried:
        hurried.setattr(Pool, "_time_is_up", lambda self: True)
        rough, _ = pooling.one_model(d)
    v, _ = pooling.one_model(d)
    assert (v != rough).any()
    monkeypatch.setattr(Pool, "minimise", lambda self: pytest.fail("a second time"))
    assert pooling.one_model(d)[0] is v
    found = pooling.pooled_minimiser(d, np.zeros(d.n_nodes, dtype=np.int64), 1)
    found[:] = 0.0  # a copy
    assert v.any()
