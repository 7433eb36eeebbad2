"""What every loss must keep, checked on every loss that the package exports."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import coterie as ct
import coterie.problem.losses as exported
from exactly import at_most, exact_loss
from problems import EVERY_LOSS, LOSSES, bound_rows, case_of, rows_of_node

SIZES = {"many points": (5, 7, 5), "few points": (2, 1, 2), "mixed": (1, 5, 2, 8)}
N = 3
SEVERAL_WEIGHTS = (ct.Multinomial,)  # for each column: test_multinomial.py asks the same of them


@pytest.fixture(params=SIZES, ids=str)
def sizes(request: pytest.FixtureRequest) -> tuple[int, ...]:
    return SIZES[request.param]


@pytest.fixture(params=EVERY_LOSS, ids=repr)
def loss(request: pytest.FixtureRequest) -> ct.Loss:
    return request.param


@pytest.fixture
def rows(loss: ct.Loss, sizes: tuple[int, ...]) -> Any:
    return bound_rows(loss, sizes)


@pytest.fixture
def f(loss: ct.Loss, rows: Any) -> Any:
    return loss.bind(rows)


@pytest.fixture
def naive(loss: ct.Loss, rows: Any) -> Callable[[int, np.ndarray], float]:
    """L_k(w) of one node, by a loop."""
    return lambda k, w: case_of(loss).naive(loss, *rows_of_node(rows, k), w)


def points(rows: Any, seed: int = 1, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(seed).standard_normal((len(rows.M), N))


def cloud(around: np.ndarray, seed: int = 2) -> Iterator[np.ndarray]:
    """Points near and far from the given one."""
    rng = np.random.default_rng(seed)
    for size in np.repeat([1e-4, 1e-2, 0.3, 3.0, 30.0], 8):
        yield around + size * rng.standard_normal(around.shape)


def best_by_search(objective: Callable[[np.ndarray], float], start: np.ndarray) -> float:
    """Derivative-free: it needs to know nothing of the loss."""
    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000, "maxfev": 4000}
    found = minimize(objective, start, method="Nelder-Mead", options=options)
    return float(minimize(objective, found.x, method="Nelder-Mead", options=options).fun)


def test_every_exported_loss_has_an_example() -> None:
    kinds = [getattr(exported, name) for name in exported.__all__]
    kinds = [kind for kind in kinds if issubclass(kind, ct.Loss) and not inspect.isabstract(kind)]
    missing = [kind.__name__ for kind in kinds if kind not in LOSSES and kind not in SEVERAL_WEIGHTS]
    assert not missing, f"{missing} have no entry in LOSSES of tests/problems.py; add one, and all tests below run"


def test_value_is_the_formula(f: Any, rows: Any, naive: Callable) -> None:
    w = points(rows)
    np.testing.assert_allclose(f.value(w), [naive(k, w[k]) for k in range(len(w))], rtol=1e-12)


@pytest.mark.slow
def test_prox_is_the_minimiser(f: Any, rows: Any, naive: Callable) -> None:
    v = points(rows, size=2.0)
    tau = np.geomspace(0.05, 20, len(v))
    z = f.prox(v, tau, np.zeros_like(v))
    for k in range(len(v)):

        def objective(x: np.ndarray, k: int = k) -> float:
            return naive(k, x) + sum((v[k] - x) ** 2) / (2 * tau[k])

        here = objective(z[k])
        assert here <= best_by_search(objective, v[k]) + 1e-11 * (1 + abs(here))
        assert here <= min(map(objective, cloud(z[k]))) + 1e-11 * (1 + abs(here))


def test_prox_does_not_depend_on_the_guess(f: Any, rows: Any) -> None:
    v, tau = points(rows), np.full(len(rows.M), 0.7)
    far = f.prox(v, tau, points(rows, seed=9, size=20.0))
    np.testing.assert_allclose(f.prox(v, tau, v), far, rtol=1e-8, atol=1e-9)


def test_moreau(f: Any, rows: Any) -> None:
    """v = z + τq with z the prox of L and q that of L*, and the two envelopes add up to ‖v‖²/2τ."""
    v = points(rows, size=2.0)
    tau = np.geomspace(0.1, 10, len(v))
    z = f.prox(v, tau, np.zeros_like(v))
    p = (v - z) / tau[:, None]
    q, conjugate = f.conjugate(p, z)
    np.testing.assert_allclose(q, p, atol=1e-6)
    primal = f.value(z) + ((v - z) ** 2).sum(axis=1) / (2 * tau)
    dual = conjugate + ((v - tau[:, None] * p) ** 2).sum(axis=1) / (2 * tau)
    np.testing.assert_allclose(primal + dual, (v**2).sum(axis=1) / (2 * tau), rtol=1e-6, atol=1e-6)


def test_a_box_can_be_split_off(f: Any, rows: Any) -> None:
    """L = core + the support function of the box, and at a subgradient p of L a split finds the part of each."""
    w = points(rows)
    if f.l1_box is None:
        assert f.smooth_part is f
        with pytest.raises(TypeError, match="has no box"):
            f.split_dual(w, w)
        return
    np.testing.assert_allclose(
        f.value(w), f.smooth_part.value(w) + np.maximum(w * f.l1_box[0], w * f.l1_box[1]).sum(axis=1), rtol=1e-12
    )
    v, tau = points(rows, size=2.0), np.geomspace(0.1, 10, len(w))
    z = f.prox(v, tau, np.zeros_like(v))
    p = (v - z) / tau[:, None]
    s = f.split_dual(p, z)
    assert ((f.l1_box[0] <= s) & (s <= f.l1_box[1])).all()
    q, conjugate = f.smooth_part.conjugate(p - s, z)
    np.testing.assert_allclose(q + s, p, atol=1e-9)
    np.testing.assert_allclose(conjugate, (p * z).sum(axis=1) - f.value(z), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_fenchel_young_inequality(f: Any, rows: Any, naive: Callable, size: float) -> None:
    """The value returned is never below ⟨q, w⟩ − L(w): a conjugate too small would make false certificates."""
    near = points(rows, seed=5)
    q, conjugate = f.conjugate(points(rows, seed=4, size=size), near)
    for k in range(len(q)):
        for w in (*cloud(near[k]), *cloud(np.zeros(N), seed=6)):
            pairing, value = q[k] @ w, naive(k, w)
            assert pairing - value <= conjugate[k] + 1e-12 * (abs(conjugate[k]) + abs(pairing) + abs(value))


def test_fenchel_young_equality_at_gradients(f: Any, rows: Any) -> None:
    if not f.smooth:
        pytest.skip("Moreau's identity above covers losses without gradients")
    w = points(rows)
    p = f.gradient(w)
    q, conjugate = f.conjugate(p, w)
    np.testing.assert_allclose(q, p, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(conjugate + f.value(w), (q * w).sum(axis=1), rtol=1e-7, atol=1e-9)


def test_gradient_by_differences(f: Any, rows: Any, naive: Callable) -> None:
    w, h = points(rows), 1e-5
    if not f.smooth:
        with pytest.raises(TypeError, match="has no gradient"):
            f.gradient(w)
        return
    for k, gradient in enumerate(f.gradient(w)):
        slopes = [(naive(k, w[k] + h * e) - naive(k, w[k] - h * e)) / (2 * h) for e in np.eye(N)]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)


def test_hessian_by_differences(f: Any, rows: Any) -> None:
    w, h = points(rows), 1e-5
    if not f.smooth:
        with pytest.raises(TypeError, match="has no Hessian"):
            f.hessian(w)
        return
    columns = [(f.gradient(w + h * e) - f.gradient(w - h * e)) / (2 * h) for e in np.eye(N)]
    np.testing.assert_allclose(f.hessian(w), np.stack(columns, axis=2), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_pooled_minimises_the_sum_over_a_group(f: Any, rows: Any, naive: Callable) -> None:
    groups = np.arange(len(rows.M)) % 2
    v, p = f.pooled(groups, 3)
    for g in (0, 1):
        members = np.flatnonzero(groups == g)

        def objective(x: np.ndarray, members: np.ndarray = members) -> float:
            return sum(naive(k, x) for k in members)

        here = objective(v[g])
        assert here <= best_by_search(objective, np.zeros(N)) + 1e-9 * (1 + here)
        np.testing.assert_allclose(p[members].sum(axis=0), 0.0, atol=1e-9)
    assert not v[2].any(), "a group without members has the weight 0"


def test_pooled_returns_subgradients(f: Any, rows: Any, naive: Callable) -> None:
    groups = np.zeros(len(rows.M), dtype=int)
    v, p = f.pooled(groups, 1)
    for k in range(len(p)):
        here = naive(k, v[0])
        for w in cloud(v[0]):
            assert naive(k, w) >= here + p[k] @ (w - v[0]) - 1e-8 * (1 + here)


def test_seen_spans_what_the_data_see(loss: ct.Loss, f: Any, rows: Any) -> None:
    """Orthonormal rows, zero rows among them; across them the loss is constant, but for alpha‖w‖₁."""
    ridge = case_of(loss).rank_rows(loss, N)
    stacked = [np.vstack([rows_of_node(rows, k)[0], ridge]) for k in range(len(rows.M))]
    ranks = [np.linalg.matrix_rank(S) for S in stacked]
    if f.row_space is None:
        assert ranks == [N] * len(ranks)
        return
    assert min(ranks) < N
    gram = f.row_space @ f.row_space.transpose(0, 2, 1)
    for G, S, B, rank in zip(gram, stacked, f.row_space, ranks, strict=True):
        there = np.diag(G) > 0.5
        assert there.sum() == rank
        np.testing.assert_allclose(G, np.diag(there.astype(float)), atol=1e-12)
        np.testing.assert_allclose(S @ B.T @ B, S, atol=1e-12)  # nothing of the rows lies across
    w, d = points(rows), points(rows, seed=3, size=10.0)
    across = d - np.einsum("irk,irl,il->ik", f.row_space, f.row_space, d)
    part = f.smooth_part
    np.testing.assert_allclose(part.value(w + across), part.value(w), rtol=1e-9)


def exactly(k: int, loss: ct.Loss, rows: Any, f: Any, z: np.ndarray) -> Any:
    """core_k(z), with every number that is stored taken for what it is: a fraction, or 60 digits."""
    at = slice(int(rows.m[:k].sum()), int(rows.m[: k + 1].sum()))
    design = f.smooth_part.design
    return exact_loss(design.psi, design.X[at], design.y[at], design.s[at], design.ridge, z)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_support_lies_below_in_exact_arithmetic(loss: ct.Loss, f: Any, rows: Any, size: float) -> None:
    """at + ⟨slope, z − w⟩ ≤ smooth_part(z) for every z and some slope within the rounding bound of q + low, exactly."""
    for seed, near in ((1, 1.0), (2, 1e-3), (3, 1e6)):
        w = points(rows, seed=seed, size=size)
        with np.errstate(over="ignore"):
            below = f.smooth_part.support(points(rows, seed=seed + 10, size=near), w)
        for k in range(len(w)):
            for z in (w[k], f.smooth_part.prox(w, np.full(len(w), 1e6), w)[k], *list(cloud(w[k]))[::5]):
                far = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(z, w[k], strict=True)]
                slope = [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(below.q[k], below.low[k], strict=True)]
                line = Fraction(float(below.at[k])) + sum(a * b for a, b in zip(slope, far, strict=True))
                line -= sum(Fraction(float(d)) * abs(b) for d, b in zip(below.rounding_bound[k], far, strict=True))
                assert at_most(line, exactly(k, loss, rows, f, z))


def test_support_is_close_where_it_is_asked_for(f: Any, rows: Any) -> None:
    """With the slope that the loss has at w, next to nothing is lost there."""
    w, core, accuracy = points(rows), f.smooth_part, 1e-11
    if core.smooth:
        slope = core.gradient(w)
    else:
        v, tau, accuracy = w, np.geomspace(0.1, 10, len(w)), 1e-8
        w = core.prox(v, tau, v)
        slope = (v - w) / tau[:, None]
    below = core.support(slope, w)
    np.testing.assert_allclose(below.at, core.value(w), rtol=accuracy, atol=0.01 * accuracy)
    assert (below.rounding_bound <= 1e-25 * (1 + np.abs(below.q))).all()


def test_prediction(loss: ct.Loss) -> None:
    X, w = np.array([[1.0, 2.0], [1.0, -3.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 1.0], [4.0, 4.0]])
    expected = {ct.Logistic: [1.0, 0.0, 1.0], ct.SquaredHinge: [1.0, 0.0, 1.0], ct.Poisson: np.exp([3.0, -2.0, 0.0])}
    np.testing.assert_array_equal(loss.predict(X, w), expected.get(type(loss), [3.0, -2.0, 0.0]))


def test_a_node_does_not_see_the_others(loss: ct.Loss, rows: Any, f: Any) -> None:
    """Bound alone, a node has the same prox as in the batch."""
    v, tau = points(rows), np.linspace(0.5, 2, len(rows.M))
    together = f.prox(v, tau, v)
    for k in range(len(v)):
        X, y = rows_of_node(rows, k)
        alone = loss.bind(ct.LocalDatasets.from_rows(X, y, np.zeros(len(y), dtype=int)).labelled)
        np.testing.assert_allclose(
            alone.prox(v[k : k + 1], tau[k : k + 1], v[k : k + 1])[0], together[k], rtol=1e-9, atol=1e-10
        )
