from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import coterie as ct
from coterie.federation.proximal_losses import with_proximal_terms
from problems import EVERY_LOSS, instance, oracle

NODES = np.array([0, 2, 5, 11])  # two of them labelled in "few labelled"


def pull(problem: ct.Problem, force: float = 0.0, rho: float = 2.0) -> ct.Problem:
    rng = np.random.default_rng(3)
    v = rng.standard_normal((4, 3))
    return with_proximal_terms(
        problem.bound, NODES, rho=np.full(4, rho), v=v, force=force * rng.standard_normal((4, 3))
    )


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
def test_the_value_is_the_loss_and_the_pull(loss: ct.Loss) -> None:
    problem = instance("few labelled", loss)
    w = np.random.default_rng(0).standard_normal((12, 3))
    rng = np.random.default_rng(3)
    v, force = rng.standard_normal((4, 3)), 0.5 * rng.standard_normal((4, 3))
    quadratic = (2.0 / 2) * ((w[NODES] - v) ** 2).sum()
    assert pull(problem).objective(w) == pytest.approx(problem.objective(w) + quadratic)
    both = quadratic - (force * w[NODES]).sum()
    assert pull(problem, force=0.5).objective(w) == pytest.approx(problem.objective(w) + both)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
@pytest.mark.parametrize("force", [0.0, 0.5])
def test_prox_conjugate_and_gradient_belong_to_the_value(loss: ct.Loss, force: float) -> None:
    f = pull(instance("few labelled", loss), force).f
    rng = np.random.default_rng(1)
    K = len(f.value(np.zeros((6, 3))))
    x, tau = rng.standard_normal((K, 3)), rng.uniform(0.5, 2.0, K)
    z = f.prox(x, tau, np.zeros_like(x))
    best = f.value(z) + ((z - x) ** 2).sum(axis=1) / (2 * tau)
    for _ in range(20):
        y = z + 1e-3 * rng.standard_normal(z.shape)
        assert (f.value(y) + ((y - x) ** 2).sum(axis=1) / (2 * tau) >= best - 1e-12).all()
    p = rng.standard_normal((K, 3)) * 0.1
    q, value = f.conjugate(p, x)
    for _ in range(20):  # Fenchel-Young
        y = 3 * rng.standard_normal(z.shape)
        assert (value >= (q * y).sum(axis=1) - f.value(y) - 1e-9).all()
    if f.smooth:
        slope = f.gradient(x)
        for k in range(3):
            step = np.zeros((K, 3))
            step[:, k] = 1e-6
            change = (f.value(x + step) - f.value(x - step)) / 2e-6
            assert change == pytest.approx(slope[:, k], abs=1e-6)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=str)
def test_a_force_is_a_box_of_one_point(loss: ct.Loss) -> None:
    f = pull(instance("few labelled", loss), force=0.5).f
    rng = np.random.default_rng(2)
    w = rng.standard_normal(f.v.shape)
    lower, upper = f.l1_box
    np.testing.assert_allclose(f.value(w), f.smooth_part.value(w) + np.maximum(lower * w, upper * w).sum(axis=1))
    s = f.split_dual(0.1 * rng.standard_normal(w.shape), w)
    assert ((lower <= s) & (s <= upper)).all()


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(0.2), ct.Logistic(ridge=0.1)], ids=str)
def test_a_conjugate_with_proximal_terms_is_exact(loss: ct.Loss) -> None:
    f = pull(instance("few labelled", loss)).f
    p = np.zeros((len(f.value(np.zeros((6, 3)))), 3))
    q, value = f.conjugate(p, p)
    w, _ = f.pooled(np.arange(len(p)), len(p))
    assert (q == p).all() or not f.smooth or np.allclose(q, p, atol=1e-9)
    tied = np.linalg.norm(f.value(w) + value) if not isinstance(loss, ct.SquaredError) else 0.0
    assert tied <= 1e-6


def test_squares_with_proximal_terms_are_solved_to_their_optimum() -> None:
    problem = instance("few labelled")
    proximal = pull(problem)
    w = oracle(problem).w
    rng = np.random.default_rng(3)
    v = rng.standard_normal((4, 3))

    def whole(flat: np.ndarray) -> float:
        x = flat.reshape(12, 3)
        return problem.objective(x) + ((x[NODES] - v) ** 2).sum()

    solution = ct.solve(proximal, 1e-10)
    assert solution.objective == pytest.approx(whole(solution.w.ravel()), rel=1e-12)
    found = minimize(whole, solution.w.ravel() + 1e-3, method="Powell", options={"maxiter": 3})
    assert solution.objective <= found.fun + 1e-12
    assert solution.objective <= whole(w.ravel())
