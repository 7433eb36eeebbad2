"""What weights cost by themselves: ℓ1 norms and bounds, their conjugates, and losses with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import coterie as ct
from coterie.problem.losses.ground import Ground
from problems import bound_rows, case_of, rows_of_node

GROUNDS = {
    "l1": {"l1": 0.3},
    "positive": {"positive": True},
    "positive and l1": {"positive": True, "l1": 0.2},
    "box": {"lower": -0.4, "upper": 0.6},
    "box and l1": {"lower": -0.4, "upper": 0.6, "l1": 0.2},
    "above": {"lower": 0.25},
    "by column": {"lower": [-np.inf, -0.5, 0.0], "upper": [0.3, np.inf, 0.2]},
}
LOSSES = [ct.SquaredError, ct.Logistic, ct.Poisson, ct.Huber, ct.SquaredHinge, ct.Quantile]
SIZES = (5, 2, 7)


def ground_of(name: str) -> Ground:
    return ct.SquaredError(**GROUNDS[name]).ground(3)


@pytest.mark.parametrize("name", GROUNDS)
def test_the_conjugate_is_the_supremum(name: str) -> None:
    """Of sw − h(w) over the weights that are allowed, on a fine grid; infinite outside the domain."""
    h, rng = ground_of(name), np.random.default_rng(0)
    low, high = h.domain
    s = np.clip(rng.uniform(-2, 2, (50, 3)), low, high)
    w = np.linspace(-300, 300, 60_001)
    for k in range(3):
        allowed = np.append(w, [b for b in (h.lower[k], h.upper[k]) if np.isfinite(b)])
        allowed = allowed[(h.lower[k] <= allowed) & (allowed <= h.upper[k])]
        best = (s[:, k, None] * allowed - h.alpha[k] * np.abs(allowed)).max(axis=1)
        np.testing.assert_allclose(h.conjugate(s)[:, k], best, atol=1e-9)


@pytest.mark.parametrize("name", GROUNDS)
def test_subgradients_make_fenchels_inequality_an_equality(name: str) -> None:
    h, rng = ground_of(name), np.random.default_rng(1)
    w = h.clip(np.concatenate([rng.uniform(-1, 1, (30, 3)), np.zeros((1, 3))]))
    low, high = h.slopes(w)
    for s in (np.clip(rng.uniform(-1, 1, w.shape), low, high), np.clip(0.0, low, high)):
        np.testing.assert_allclose(s * w - h.conjugate(s), h.alpha * np.abs(w), atol=1e-12)
        assert ((h.domain[0] <= s) & (s <= h.domain[1])).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("name", GROUNDS)
def test_prox_conjugate_and_pooled_models(kind: Any, name: str) -> None:
    loss = kind(**GROUNDS[name])
    bare = kind()
    rows = bound_rows(bare, SIZES)
    f, h = loss.bind(rows), ground_of(name)
    rng = np.random.default_rng(2)
    v, tau = rng.standard_normal((3, 3)), np.array([0.1, 1.0, 5.0])
    z = f.prox(v, tau, np.zeros_like(v))
    np.testing.assert_allclose(f.prox(v, tau, 5 * rng.standard_normal(v.shape)), z, rtol=1e-7, atol=1e-8)
    box = list(zip(np.maximum(h.lower, -50), np.minimum(h.upper, 50), strict=True))

    def objective(x: np.ndarray, k: int) -> float:
        return case_of(bare).naive(bare, *rows_of_node(rows, k), x) + h.alpha @ np.abs(x)

    for k in range(3):
        here = objective(z[k], k) + ((z[k] - v[k]) ** 2).sum() / (2 * tau[k])
        assert (h.lower <= z[k]).all()
        assert (z[k] <= h.upper).all()
        for start in (v[k], z[k] + 0.1):
            found = minimize(
                lambda x, k=k: objective(x, k) + ((x - v[k]) ** 2).sum() / (2 * tau[k]),
                np.clip(start, h.lower, h.upper),
                method="Powell",
                bounds=box,
                options={"xtol": 1e-8, "ftol": 1e-12},
            )
            assert here <= found.fun + 1e-9 * (1 + abs(here))
    near = h.clip(rng.standard_normal((3, 3)))
    q, conjugate = f.conjugate(0.3 * rng.standard_normal((3, 3)), near)
    for w in h.clip(3 * rng.standard_normal((40, 3))):
        for k in range(3):
            assert q[k] @ w - objective(w, k) <= conjugate[k] + 1e-10 * (1 + abs(conjugate[k]) + abs(q[k] @ w))
    p = (v - z) / tau[:, None]  # a subgradient at z, where the inequality is tight
    q, conjugate = f.conjugate(p, z)
    np.testing.assert_allclose(q, p, atol=1e-5)
    np.testing.assert_allclose(conjugate, (p * z).sum(axis=1) - f.value(z), rtol=1e-5, atol=1e-5)
    pooled, slopes = f.pooled(np.zeros(3, dtype=int), 2)
    together = sum(objective(pooled[0], k) for k in range(3))
    for w in h.clip(pooled[0] + np.array([0.01, 0.1, 1.0])[rng.integers(0, 3, (60, 1))] * rng.standard_normal((60, 3))):
        assert together <= sum(objective(w, k) for k in range(3)) + 1e-8
    np.testing.assert_allclose(slopes.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("name", GROUNDS)
def test_models_touch_losses_and_lie_above_them(kind: Any, name: str) -> None:
    """Around the weights that they are around; quantiles have none. A primal update of one is its least value."""
    loss = kind(**GROUNDS[name])
    f, h = loss.bind(bound_rows(kind(), SIZES)), ground_of(name)
    rng = np.random.default_rng(3)
    w, way = h.clip(rng.standard_normal((3, 3))), 0.01 * rng.standard_normal((3, 3))
    model = f.model(w, h.clip(w + 2 * way)) if f.quadratic is None else None
    if model is None:
        assert kind is ct.Quantile or (kind is ct.SquaredError and not h.has_bounds)
        return

    def above(z: np.ndarray) -> np.ndarray:
        d = z - w
        return f.value(w) - h.value(w) + ((model.slope + 0.5 * np.einsum("ikq,iq->ik", model.H, d)) * d).sum(axis=1)

    near = h.clip(w + way)
    assert (above(near) + h.value(near) >= f.value(near) - 1e-12).all()
    v, tau = rng.standard_normal((3, 3)), np.array([0.1, 1.0, 5.0])
    z = model.prox(w, v, tau, w)
    assert ((h.lower <= z) & (z <= h.upper)).all()

    def cost(x: np.ndarray) -> np.ndarray:
        return above(x) + h.value(x) + ((x - v) ** 2).sum(axis=1) / (2 * tau)

    for _ in range(100):
        assert (cost(h.clip(z + 0.1 * rng.standard_normal(z.shape))) >= cost(z) - 1e-9).all()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lower": 1.0, "upper": 0.0}, "column 0 has the lower bound 1 above its upper bound 0"),
        ({"lower": [0.0, 1.0]}, "lower is one number, or one for each of the 3 columns"),
        ({"upper": [0.0, np.nan, 1.0]}, "upper holds nan"),
        ({"lower": np.inf}, "column 0 has bounds inf and inf, between which no weight is finite"),
        ({"upper": -1.0, "positive": True}, "column 0 has the lower bound 0 above its upper bound -1"),
        ({"l1": -1.0}, "l1 must be a finite number ≥ 0"),
    ],
)
def test_bounds_that_make_no_sense(given: Any, told: str) -> None:
    rows = ct.LocalDatasets.from_rows(np.ones((2, 3)), [1.0, 2.0], [0, 0])
    with pytest.raises(ValueError, match=told):
        ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=1), rows, ct.SquaredError(**given))


def test_one_number_leaves_unpenalised_columns_alone() -> None:
    h = ct.Huber(l1=1.0, positive=True, upper=2.0, unpenalised=(-1,)).ground(3)
    assert h.lower.tolist() == [0.0, 0.0, -np.inf]
    assert h.upper.tolist() == [2.0, 2.0, np.inf]
    assert h.alpha.tolist() == [1.0, 1.0, 0.0]
