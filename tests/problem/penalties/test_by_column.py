"""Penalties with a strength for each column: free (0), held and tied (∞) ones."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.problem.penalties.by_column import (
    ByColumn,
    GroupTotalVariationByColumn,
    SquaredVariationByColumn,
    TotalVariationByColumn,
)
from problems import case_of

C, SIGMA = np.array([0.0, 0.3, 1.0, 2.5]), np.array([0.5, 2.0, 0.1, 1.0])
STRENGTHS = [(0.3, 2.0, 1.0), (0.0, np.inf, 2.0), (0.0, 0.0, 0.5), (np.inf, np.inf, np.inf), (0.0, 0.0, 0.0)]
KINDS = [TotalVariationByColumn, GroupTotalVariationByColumn, SquaredVariationByColumn]


@pytest.fixture(params=[kind(s) for kind in KINDS for s in STRENGTHS], ids=repr)
def penalty(request: pytest.FixtureRequest) -> ByColumn:
    return request.param


def random(seed: int, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(seed).standard_normal((len(C), 3))


def allowed(penalty: ByColumn, z: np.ndarray) -> np.ndarray:
    return np.where(penalty.tied, 0.0, z)


def test_value_is_the_formula(penalty: ByColumn) -> None:
    z = allowed(penalty, random(0))
    t = np.where(penalty.tied, 0.0, penalty.strength)
    t = np.sqrt(t) if penalty.degree == 2 else t
    expected = sum(c * case_of(penalty.plain).naive(t * z_e) for c, z_e in zip(C, z, strict=True))
    assert penalty.value(z, C) == pytest.approx(expected, rel=1e-13)
    if penalty.tied.any():
        assert penalty.value(random(0), C) == np.inf


def test_duals_of_free_columns_are_zero_and_those_of_tied_ones_anything(penalty: ByColumn) -> None:
    u = random(1, 100.0)
    for inside in (penalty.into_domain(u, C), penalty.dual_step(u, C, SIGMA)):
        assert not inside[:, penalty.free].any()
        np.testing.assert_array_equal(inside[:, penalty.tied], u[:, penalty.tied])
        np.testing.assert_array_equal(inside[0, ~penalty.tied], 0.0)  # of an edge without strength


def test_fenchel_young(penalty: ByColumn) -> None:
    for seed in range(40):
        u = penalty.into_domain(random(seed, 10.0 ** (seed % 4 - 2)), C)
        z = allowed(penalty, random(seed + 100, 10.0 ** (seed % 5 - 3)))
        assert np.vdot(u, z) <= penalty.value(z, C) + penalty.conjugate(u, C) + 1e-12


@pytest.mark.parametrize("size", [0.01, 1.0, 4.0, 1e6])
def test_the_dual_step_is_the_proximal_map(penalty: ByColumn, size: float) -> None:
    """It ends at u with z = (moved − u)/σ ∈ ∂g*(u): equality in Fenchel–Young, where tied columns do not differ."""
    moved = random(5, size)
    u = penalty.dual_step(moved, C, SIGMA)
    z = (moved - u) / SIGMA[:, None]
    both = penalty.value(z, C) + penalty.conjugate(u, C)
    assert np.vdot(u, z) == pytest.approx(both, rel=1e-9, abs=1e-12)


def test_strength_needed_is_the_smallest(penalty: ByColumn) -> None:
    A = np.array([0.5, 1.0, 2.0, 3.0])
    u = np.where(penalty.free, 0.0, random(6))
    needed = penalty.strength_needed(u, A)
    assert penalty.strength_needed(0 * u, A) == 0.0
    if penalty.degree == 2 and penalty.held.any():
        assert needed == np.inf
        return
    np.testing.assert_allclose(penalty.into_domain(u, needed * A), u, rtol=1e-12)
    if penalty.held.any():
        assert not np.allclose(penalty.into_domain(u, 0.99 * needed * A), u, rtol=1e-6)


@pytest.mark.parametrize("length", [1, 4, 9])
def test_spread_bounds_the_distance_along_a_path(penalty: ByColumn, length: int) -> None:
    rng = np.random.default_rng(length)
    for _ in range(20):
        c = rng.uniform(0.1, 2.0, length)
        z = allowed(penalty, np.abs(rng.standard_normal((length, 3))))
        spread = penalty.spread(penalty.value(z, c), np.array([c.min()]), np.array([float(length)]))[0]
        far = penalty.apart < np.inf
        assert (z.sum(axis=0)[far] <= spread * penalty.apart[far] * (1 + 1e-12)).all()


def test_edges_with_slack_join_nodes(penalty: ByColumn) -> None:
    c, none = C + 0.1, np.zeros((len(C), 3))
    expected = penalty.tied | (penalty.held & penalty.is_norm)
    np.testing.assert_array_equal(penalty.joins(none, c, 1e-6), np.broadcast_to(expected, none.shape))
    pushed = penalty.into_domain(random(2, 1e6), c)
    if not penalty.couples:
        np.testing.assert_array_equal(penalty.joins(pushed, c, 1e-6), np.broadcast_to(penalty.tied, none.shape))


def test_corrections_move_no_duals_of_free_columns(penalty: ByColumn) -> None:
    room = penalty.room(penalty.into_domain(random(3), C + 0.1), C + 0.1)
    assert not room[:, penalty.free].any()
    assert (room[:, ~penalty.free] > 0).all()
