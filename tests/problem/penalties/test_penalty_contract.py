"""What every penalty must keep, checked on every penalty that the package exports."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import minimize

import coterie as ct
import coterie.problem.penalties as exported
from problems import EVERY_PENALTY, PENALTIES, case_of

C = np.array([0.0, 0.3, 1.0, 2.5])
SIGMA = np.array([0.5, 2.0, 0.1, 1.0])


@pytest.fixture(params=EVERY_PENALTY, ids=repr)
def penalty(request: pytest.FixtureRequest) -> ct.Penalty:
    return request.param


def random(seed: int, size: float = 1.0, n: int = 3) -> np.ndarray:
    return size * np.random.default_rng(seed).standard_normal((len(C), n))


def domain_points(penalty: ct.Penalty) -> Iterator[np.ndarray]:
    """Points where g* is finite, by an independent test of each edge."""
    outside = case_of(penalty).outside
    for seed in range(60):
        x = random(seed, size=10.0 ** (seed % 4 - 2))
        yield np.array([x_e if outside(x_e, c_e) <= 0 else 0 * x_e for x_e, c_e in zip(x, C, strict=True)])


def one(value: float) -> np.ndarray:
    return np.array([value])


def test_every_exported_penalty_has_an_example() -> None:
    kinds = [kind for kind in map(exported.__dict__.get, exported.__all__) if inspect.isclass(kind)]
    missing = [kind.__name__ for kind in kinds if not inspect.isabstract(kind) and kind not in PENALTIES]
    assert not missing, f"{missing} have no entry in PENALTIES of tests/problems.py; add one, and all tests below run"


def test_value_is_the_formula(penalty: ct.Penalty) -> None:
    z = random(0)
    expected = sum(c * case_of(penalty).naive(z_e) for c, z_e in zip(C, z, strict=True))
    assert penalty.value(z, C) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_dual_step_by_moreau(penalty: ct.Penalty, size: float) -> None:
    """prox_{σg*}(u) = u − σ prox_{g/σ}(u/σ), the latter by search."""
    u = random(1, size, n=2)
    step = penalty.dual_step(u, C, SIGMA)
    options = {"xatol": 1e-12, "fatol": 1e-15, "maxiter": 4000}
    for e, sigma in enumerate(SIGMA):

        def objective(z: np.ndarray, e: int = e, sigma: float = sigma) -> float:
            return C[e] * case_of(penalty).naive(z) + sigma / 2 * sum((z - u[e] / sigma) ** 2)

        z = (u[e] - step[e]) / sigma  # what the dual step says the minimiser is
        found = minimize(objective, u[e] / sigma, method="Nelder-Mead", options=options)
        assert objective(z) <= found.fun + 1e-12 * (1 + found.fun)


def test_dual_step_by_brute_force(penalty: ct.Penalty) -> None:
    """No point of the domain has a smaller g*(x) + ‖x − u‖²/2σ."""
    u = random(2, 2.0)
    step = penalty.dual_step(u, C, SIGMA)
    for e in range(len(C)):

        def objective(x: np.ndarray, e: int = e) -> float:
            return penalty.conjugate(x[None], one(C[e])) + sum((x - u[e]) ** 2) / (2 * SIGMA[e])

        assert case_of(penalty).outside(step[e], C[e]) <= 1e-15
        assert objective(step[e]) <= min(objective(x[e]) for x in domain_points(penalty)) + 1e-12


def test_into_domain_is_the_projection(penalty: ct.Penalty) -> None:
    u = random(3, 3.0)
    nearest = penalty.into_domain(u, C)
    for e in range(len(C)):
        assert case_of(penalty).outside(nearest[e], C[e]) <= 1e-15
        distance = np.linalg.norm(nearest[e] - u[e])
        assert distance <= min(np.linalg.norm(x[e] - u[e]) for x in domain_points(penalty)) + 1e-12


def test_into_domain_leaves_the_domain_alone(penalty: ct.Penalty) -> None:
    for x in domain_points(penalty):
        np.testing.assert_array_equal(penalty.into_domain(x, C), x)


def test_fenchel_young(penalty: ct.Penalty) -> None:
    """⟨u, z⟩ ≤ g(z) + g*(u), with equality somewhere near for the best z."""
    for u in domain_points(penalty):
        conjugate = penalty.conjugate(u, C)
        for seed in range(20):
            z = random(seed, 10.0 ** (seed % 5 - 3))
            assert np.vdot(u, z) <= penalty.value(z, C) + conjugate + 1e-12


def test_conjugate_is_attained(penalty: ct.Penalty) -> None:
    """The dual step ends at u with z = (moved − u)/σ ∈ ∂g*(u): equality in Fenchel–Young."""
    moved = random(5, 4.0)
    u = penalty.dual_step(moved, C, SIGMA)
    z = (moved - u) / SIGMA[:, None]
    assert np.vdot(u, z) == pytest.approx(penalty.value(z, C) + penalty.conjugate(u, C), rel=1e-12)


def test_strength_needed_is_the_smallest(penalty: ct.Penalty) -> None:
    u, A = random(6), np.array([0.5, 1.0, 2.0, 3.0])
    needed = penalty.strength_needed(u, A)
    assert penalty.strength_needed(np.zeros_like(u), A) == 0.0
    if needed == np.inf:  # the conjugate is finite for every λ > 0, and zero for none
        assert penalty.conjugate(u, 1e6 * A) > 0
        return
    np.testing.assert_allclose(penalty.into_domain(u, needed * A), u, rtol=1e-12)
    assert not np.allclose(penalty.into_domain(u, 0.99 * needed * A), u, rtol=1e-6)


@pytest.mark.parametrize("length", [1, 4, 9])
def test_spread_bounds_the_distance_along_a_path(penalty: ct.Penalty, length: int) -> None:
    rng = np.random.default_rng(length)
    for _ in range(50):
        c = rng.uniform(0.1, 2.0, length)
        z = np.abs(rng.standard_normal((length, 2))) if rng.random() < 0.5 else np.ones((length, 2))
        apart = np.abs(z.sum(axis=0)).max()
        spread = penalty.spread(penalty.value(z, c), one(c.min()), one(float(length)))
        assert apart <= spread[0] * (1 + 1e-12)


@pytest.mark.parametrize("n", [1, 3])
def test_no_edges(penalty: ct.Penalty, n: int) -> None:
    u, c = np.empty((0, n)), np.empty(0)
    assert penalty.value(u, c) == penalty.conjugate(u, c) == penalty.strength_needed(u, c) == 0.0
    assert penalty.dual_step(u, c, c).shape == penalty.into_domain(u, c).shape == (0, n)
