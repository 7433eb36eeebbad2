"""Several classes, one weight vector for each: what the contract of losses asks, against loops and 60 digits."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

import coterie as ct
from coterie.kernels.reference import classes
from exactly import at_most, high, inner
from problems import penalised, rows_of_node

N, K = 2, 3
SIZES = {"few points": (2, 1, 3), "mixed": (1, 5, 2)}
EXAMPLES = (
    ct.Multinomial(K),
    ct.Multinomial(K, ridge=0.1, unpenalised=(1,), reduction="sum"),
    ct.Multinomial(4, ridge=0.02),
    ct.Multinomial(2),
)


@pytest.fixture(params=EXAMPLES, ids=repr)
def loss(request: pytest.FixtureRequest) -> ct.Multinomial:
    return request.param


@pytest.fixture(params=SIZES, ids=str)
def rows(request: pytest.FixtureRequest, loss: ct.Multinomial) -> Any:
    """Rows of all classes, with weights."""
    rng, m = np.random.default_rng(0), np.array(SIZES[request.param])
    nodes = np.repeat(np.arange(len(m)), m)
    y = rng.integers(0, loss.n_classes, len(nodes)).astype(float)
    weights = rng.uniform(0.5, 2.0, len(nodes))
    return ct.LocalDatasets.from_rows(rng.standard_normal((len(nodes), N)), y, nodes, weights=weights).labelled


@pytest.fixture
def f(loss: ct.Multinomial, rows: Any) -> Any:
    return loss.bind(rows)


def naive(loss: ct.Multinomial, rows: Any, k: int, w: np.ndarray) -> float:
    """L_k(w) of one node, by a loop."""
    (X, y), W = rows_of_node(rows, k), w.reshape(loss.n_classes, N)
    s, total = rows.weights[rows.starts[k] : rows.starts[k + 1]], 0.0
    for x_r, y_r, s_r in zip(X, y, s / (s.sum() if loss.reduction == "mean" else 1.0), strict=True):
        z = [sum(x_r * w_k) for w_k in W]
        total += s_r * (max(z) + np.log(sum(np.exp(z_k - max(z)) for z_k in z)) - z[int(y_r)])
    return total + loss.ridge * sum(sum(penalised(loss, N) * w_k**2) for w_k in W)


def points(f: Any, seed: int = 1, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(seed).standard_normal((len(f.rows.M), len(f.ridge)))


def cloud(around: np.ndarray, seed: int = 2) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    for size in np.repeat([1e-4, 1e-2, 0.3, 3.0, 30.0], 6):
        yield around + size * rng.standard_normal(around.shape)


def test_value_gradient_and_hessian(loss: ct.Multinomial, f: Any, rows: Any) -> None:
    w, h = points(f), 1e-5
    np.testing.assert_allclose(f.value(w), [naive(loss, rows, k, w[k]) for k in range(len(w))], rtol=1e-12)
    for k, gradient in enumerate(f.gradient(w)):
        slopes = [
            (naive(loss, rows, k, w[k] + h * e) - naive(loss, rows, k, w[k] - h * e)) / (2 * h)
            for e in np.eye(w.shape[1])
        ]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-7)
    columns = [(f.gradient(w + h * e) - f.gradient(w - h * e)) / (2 * h) for e in np.eye(w.shape[1])]
    np.testing.assert_allclose(f.hessian(w), np.stack(columns, axis=2), rtol=1e-6, atol=1e-8)


def test_prox_is_the_minimiser_from_any_guess(loss: ct.Multinomial, f: Any, rows: Any) -> None:
    v = points(f, size=2.0)
    tau = np.geomspace(0.05, 20, len(v))
    z = f.prox(v, tau, np.zeros_like(v))
    np.testing.assert_allclose(f.prox(v, tau, points(f, seed=9, size=20.0)), z, rtol=1e-8, atol=1e-9)
    for k in range(len(v)):

        def objective(x: np.ndarray, k: int = k) -> float:
            return naive(loss, rows, k, x) + sum((v[k] - x) ** 2) / (2 * tau[k])

        here = objective(z[k])
        assert here <= minimize(objective, v[k], method="BFGS", options={"gtol": 1e-9}).fun + 1e-11 * (1 + here)
        assert here <= min(map(objective, cloud(z[k]))) + 1e-11 * (1 + here)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_conjugate_obeys_fenchel_and_young(loss: ct.Multinomial, f: Any, rows: Any, size: float) -> None:
    near = points(f, seed=5)
    q, conjugate = f.conjugate(points(f, seed=4, size=size), near)
    for k in range(len(q)):
        for w in (*cloud(near[k]), *cloud(np.zeros(q.shape[1]), seed=6)):
            pairing, value = q[k] @ w, naive(loss, rows, k, w)
            assert pairing - value <= conjugate[k] + 1e-12 * (abs(conjugate[k]) + abs(pairing) + abs(value))
    w = points(f)
    q, conjugate = f.conjugate(f.gradient(w), w)
    np.testing.assert_allclose(q, f.gradient(w), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(conjugate + f.value(w), (q * w).sum(axis=1), rtol=1e-7, atol=1e-9)


def test_pooled_minimises_the_sum_over_a_group(loss: ct.Multinomial, f: Any, rows: Any) -> None:
    groups = np.arange(len(rows.M)) % 2
    v, p = f.pooled(groups, 3)
    for g in (0, 1):
        members = np.flatnonzero(groups == g)

        def objective(x: np.ndarray, members: np.ndarray = members) -> float:
            return sum(naive(loss, rows, k, x) for k in members)

        here = objective(v[g])
        assert here <= minimize(objective, np.zeros(v.shape[1]), method="BFGS").fun + 1e-7 * (1 + here)
        np.testing.assert_allclose(p[members].sum(axis=0), 0.0, atol=1e-9)
    assert not v[2].any(), "a group without members has the weight 0"


def test_across_what_is_seen_the_loss_is_constant(loss: ct.Multinomial, f: Any) -> None:
    """One vector for all classes is a direction that no row sees; a ridge on every column does."""
    if loss.ridge and not loss.unpenalised:
        assert f.row_space is None
        return
    B = f.row_space
    gram = B @ B.transpose(0, 2, 1)
    there = np.einsum("irr->ir", gram) > 0.5
    np.testing.assert_allclose(gram, there[:, :, None] * np.eye(B.shape[1]), atol=1e-12)
    w, d = points(f), points(f, seed=3, size=10.0)
    across = d - np.einsum("irk,irl,il->ik", B, B, d)
    assert np.abs(across).max() > 1e-3
    np.testing.assert_allclose(f.value(w + across), f.value(w), rtol=1e-9)
    slope = f.gradient(w)  # and nothing of the rows lies across
    np.testing.assert_allclose(np.einsum("irk,irl,il->ik", B, B, slope), slope, atol=1e-12)


def exactly(f: Any, k: int, z: np.ndarray) -> Any:
    """L_k(z) of the numbers as they are stored, with 60 digits."""
    X, y = rows_of_node(f.rows, k)
    s, W = f.scale[f.rows.starts[k] : f.rows.starts[k + 1]], z.reshape(-1, N)
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for x_r, y_r, s_r in zip(X, y, s, strict=True):
            scores = [inner(x_r, w_k) for w_k in W]
            excess = [mpmath.exp(high(z_k - scores[int(y_r)])) for j, z_k in enumerate(scores) if j != int(y_r)]
            total += mpmath.mpf(float(s_r)) * mpmath.log1p(sum(excess))
        return total + high(sum(Fraction(float(r)) * Fraction(float(x)) ** 2 for r, x in zip(f.ridge, z, strict=True)))


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_support_lies_below_in_exact_arithmetic(f: Any, size: float) -> None:
    for seed, near in ((1, 1.0), (2, 1e-3), (3, 1e6)):
        w = points(f, seed=seed, size=size)
        with np.errstate(over="ignore"):
            below = f.support(points(f, seed=seed + 10, size=near), w)
        for k in range(len(w)):
            for z in (w[k], *list(cloud(w[k]))[::6]):
                far = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(z, w[k], strict=True)]
                slope = [Fraction(float(a)) + Fraction(float(b)) for a, b in zip(below.q[k], below.low[k], strict=True)]
                line = Fraction(float(below.at[k])) + sum(a * b for a, b in zip(slope, far, strict=True))
                line -= sum(Fraction(float(d)) * abs(b) for d, b in zip(below.rounding_bound[k], far, strict=True))
                assert at_most(line, exactly(f, k, z))


def test_support_is_close_where_it_is_asked_for(f: Any) -> None:
    w = points(f)
    below = f.support(f.gradient(w), w)
    np.testing.assert_allclose(below.at, f.value(w), rtol=1e-11, atol=1e-13)


def test_rows_below_lie_below(f: Any) -> None:
    """And they are rows of two classes, on which the enclosure rests; with two classes they are the rows."""
    for size in (1e-3, 1.0, 1e3):
        w = points(f, size=size)
        low, here = f.below.values(w), f.value(w)
        assert (low <= here * (1 + 1e-12)).all()
        if f.n_classes == 2:
            np.testing.assert_allclose(low, here, rtol=1e-12)


def test_quadratic_models_lie_above(f: Any) -> None:
    """As far as the weights have come from those before, and everywhere without such."""
    w, before = points(f), points(f) + 0.3 * points(f, seed=2)
    for model, reach in ((f.model(w, before), 1.0), (f.model(w, None), 100.0)):
        for share in (-1.0, 0.5, 1.0):
            d = reach * share * (before - w)
            above = f.value(w) + (model.slope * d).sum(axis=1) + 0.5 * np.einsum("ik,ikl,il->i", d, model.H, d)
            assert (f.value(w + d) <= above * (1 + 1e-12) + 1e-12).all()


def test_entropies_are_bounds() -> None:
    """Never more than the truth, next to it, and nothing where chances add up to more than one."""
    rng = np.random.default_rng(0)
    y = np.zeros(400)
    p = rng.dirichlet(np.ones(4), 400) * 10.0 ** rng.uniform(-20, 0, (400, 1)) * (1 - 4 * classes.ROUNDING)
    found = classes.entropies(p, y)
    with mpmath.workdps(60):
        for one, value in zip(p, found, strict=True):
            others = [mpmath.mpf(float(c)) for c in one[1:] if c > 0]
            chances = [*others, 1 - sum(others)]
            true = -sum(c * mpmath.log(c) for c in chances)
            assert mpmath.mpf(float(value)) <= true <= mpmath.mpf(float(value)) * (1 + 1e-12) + 1e-300
    assert classes.entropies(np.array([[0.0, 0.6, 0.5]]), np.zeros(1))[0] == -np.inf
    assert classes.entropies(np.array([[0.0, -0.1, 0.5]]), np.zeros(1))[0] == -np.inf


def test_predictions(loss: ct.Multinomial) -> None:
    C = loss.n_classes
    X, W = np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros((2, C, 2))
    W[0, C - 1, 0], W[1, 0, 1] = 2.0, 1.0
    w = W.reshape(2, -1)
    assert loss.predict(X, w).tolist() == [C - 1, 0]
    p = loss.predict_proba(X, w)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[0, C - 1], np.exp(2) / (np.exp(2) + C - 1))
    np.testing.assert_allclose(loss.error(X, np.array([C - 1.0, 1.0]), w), -np.log([p[0, C - 1], p[1, 1]]))


def labelled(y: list[float], **more: Any) -> ct.LocalDatasets:
    return ct.LocalDatasets.from_rows(np.ones((len(y), 1)), y, np.zeros(len(y), dtype=int), **more)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (labelled([0.0, 1.0, 3.0, 2.0]), "labels of 3 classes are 0 to 2, but node 0 has the label 3 in row 2"),
        (labelled([0.0, 0.5, 1.0, 2.0]), "node 0 has the label 0.5 in row 1"),
        (labelled([0.0, 2.0, -1.0, 1.0]), "node 0 has the label -1 in row 2"),
        (labelled([0.0, 2.0]), "no row has the label 1, so that nothing is known of this class"),
        (labelled([0.0, 1.0, 2.0], offset=np.ones(3)), "takes no offsets"),
    ],
)
def test_labels_that_make_no_sense(data: ct.LocalDatasets, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=1), data, ct.Multinomial(3))


@pytest.mark.parametrize("n_classes", [1, 2.5, "three"])
def test_classes_are_a_whole_number(n_classes: Any) -> None:
    with pytest.raises(ValueError, match="n_classes must be a whole number ≥ 2"):
        ct.Multinomial(n_classes)
