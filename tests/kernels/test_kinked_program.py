"""Programs with kinks on clusters, in both forms, and the elimination that the compiled one is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.kernels import elimination, kinked_program
from coterie.kernels.interruption import TimeUp, allow, interruptible
from coterie.kernels.reference import kinked_program as plain


def program(seed: int, ridge: float) -> tuple[tuple[Any, ...], int]:
    """Rows of five nodes whose coordinates have a value each, or share one, and the borders between some of these."""
    rng = np.random.default_rng(seed)
    m = rng.integers(0, 5, 5)
    starts, R = np.concatenate([[0], np.cumsum(m)]), int(m.sum())
    at = np.stack([rng.integers(0, 3, 5), rng.integers(3, 6, 5)], axis=1)
    pairs = np.array([(0, 1), (1, 2), (3, 4), (4, 5), (3, 5)])
    c = rng.uniform(0.1, 1.0, len(pairs))
    high = np.concatenate([rng.uniform(0.1, 1.0, R), c])
    low = np.concatenate([-rng.uniform(0.1, 1.0, R), -c])
    X, y = rng.standard_normal((R, 2)), rng.standard_normal(R)
    return (X, y, starts, at, pairs, low, high, np.full(6, ridge), 1e-11), R


def cost(parts: tuple[Any, ...], z: np.ndarray) -> float:
    X, y, starts, at, pairs, low, high, D, _ = parts
    node = np.repeat(np.arange(5), np.diff(starts))
    e = np.concatenate([y - (X * z[at[node]]).sum(axis=1), z[pairs[:, 1]] - z[pairs[:, 0]]])
    return float(np.maximum(low * e, high * e).sum() + 0.5 * D @ z**2)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_both_forms_find_the_same_optimum_wherever_they_begin(seed: int, ridge: float) -> None:
    parts, _ = program(seed, ridge)
    low, high, rng = parts[5], parts[6], np.random.default_rng(seed)
    costs = []
    for begin in (np.zeros(6), 100 * rng.standard_normal(6)):
        found = []
        for module in (kinked_program, plain):
            z, b = begin.copy(), rng.uniform(low, high)
            module.minimise(*parts, z, b)
            assert (low <= b).all()
            assert (b <= high).all()
            found.append(cost(parts, z))
        costs += found
    np.testing.assert_allclose(costs, costs[0], rtol=1e-8, atol=1e-10)


def test_both_forms_take_the_same_steps() -> None:
    for seed in range(6):
        parts, R = program(seed, 0.1)
        found = []
        for module in (kinked_program, plain):
            z, b = np.ones(6), np.zeros(R + 5)
            module.minimise(*parts, z, b)
            found.append(np.concatenate([z, b]))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-8)


@given(st.integers(1, 12), st.integers(0, 999))
def test_elimination_solves_sparse_systems(K: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((K, K)) * (rng.random((K, K)) < 0.3)
    H, g = A @ A.T + np.eye(K), rng.standard_normal(K)
    place, first, row = elimination.order((H != 0).astype(np.uint8))
    assert sorted(place) == list(range(K))
    L = np.zeros(first[-1])
    for i, j in zip(*np.nonzero(H), strict=True):
        L[elimination.find(first, row, place[i], place[j])] = H[i, j]
    elimination.factorise(first, row, L, np.empty(K))
    x = np.empty(K)
    x[place] = g
    elimination.substitute(first, row, L, x)
    np.testing.assert_allclose(x[place], np.linalg.solve(H, g), rtol=1e-9, atol=1e-12)


def test_an_unknown_whose_pivot_is_only_rounding_stays_where_it_is() -> None:
    _, first, row = elimination.order(np.ones((2, 2), dtype=np.uint8))
    L, x = np.ones(3), np.array([2.0, 2.0])
    elimination.factorise(first, row, L, np.empty(2))
    elimination.substitute(first, row, L, x)
    np.testing.assert_array_equal(x, [2.0, 0.0])


def test_the_order_and_factors_are_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    near = (rng.random((20, 20)) < 0.2).astype(np.uint8)
    near |= near.T
    found = []
    for work in (elimination.WORK, 1):
        monkeypatch.setattr(elimination, "WORK", work)
        place, first, row = elimination.order(near.copy())
        L = np.where(np.isin(np.arange(len(row)), first[:-1]), 30.0, 1.0)
        elimination.factorise(first, row, L, np.empty(20))
        found.append((place, first, row, L))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("module", [kinked_program, plain])
def test_no_step_is_taken_when_the_time_is_over(module: Any) -> None:
    parts, R = program(0, 0.1)
    with interruptible():
        allow(0.0)
        with pytest.raises(TimeUp):
            module.minimise(*parts, np.ones(6), np.zeros(R + 5))
