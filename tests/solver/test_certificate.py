"""A certificate never claims more than is true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.engines.arrays import ArrayProver
from coterie.solver.bound import Bound
from coterie.solver.certificate import FLOOR, MOST, Certifier, relative_gap
from coterie.solver.repair import Repair
from pairs import in_pairs
from problems import EVERY_LOSS, EVERY_PENALTY, KINDS, instance, oracle, outside_domain, problems

pytestmark = pytest.mark.usefixtures("compiled_kernels")

ROUNDING = 1e-11  # of the sizes that were added up


def anywhere(problem: ct.Problem, w_size: float, u_size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and duals that nobody has optimised, and duals outside the domain of g*."""
    rng = np.random.default_rng(seed)
    n = problem.n_features
    w = w_size * rng.standard_normal((problem.graph.n_nodes, n))
    return w, u_size * rng.standard_normal((problem.graph.n_edges, n))


def never_too_good(problem: ct.Problem, w: np.ndarray, u: np.ndarray, best: float | None = None) -> None:
    """The bound at this point against the optimum, which is found anew where it is not given."""
    proof = ct.certify(problem, w, u)
    assert proof.objective == pytest.approx(problem.objective(w), rel=1e-12)
    assert outside_domain(problem, proof.u) <= 1e-12 * (1 + problem.c.max(initial=0.0))
    box = None
    if not proof.unconditional:  # "some minimiser has no weight above …": true of the best weights in that box
        assert proof.condition.startswith("some minimiser has no weight above")
        reach = 10 * np.abs(w).max() or 1.0
        box, best = (np.full_like(w, -reach), np.full_like(w, reach)), None
    best = oracle(problem, box).value if best is None else best
    assert proof.dual_bound <= best + ROUNDING * (abs(best) + problem.constant_loss)


SIZES = st.sampled_from([0.0, 1e-6, 1e-2, 1.0, 1e3])


@pytest.mark.slow
@settings(max_examples=100)
@given(problems(), SIZES, SIZES, st.integers(0, 2**16))
def test_at_arbitrary_points(problem: ct.Problem, w_size: float, u_size: float, seed: int) -> None:
    never_too_good(problem, *anywhere(problem, w_size, u_size, seed))


@pytest.mark.slow
@settings(max_examples=50)
@given(problems(), st.sampled_from([1e-8, 1e-4, 1e-1]), st.integers(0, 2**16))
def test_near_the_optimum(problem: ct.Problem, distance: float, seed: int) -> None:
    """Where the bound is sharp, and the least error would show."""
    near, best = ct.algorithm1(problem, 60, sigma=0.05, tau=10.0), oracle(problem)
    dw, du = anywhere(problem, distance, distance * problem.lam, seed)
    never_too_good(problem, best.w + dw, near.u + du, best.value)


@pytest.mark.slow
@settings(max_examples=60)
@given(problems(lam=st.just(0.0)), SIZES, SIZES, st.integers(0, 99))
def test_without_coupling(problem: ct.Problem, w_size: float, u_size: float, seed: int) -> None:
    never_too_good(problem, *anywhere(problem, w_size, u_size, seed))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "penalty", "scales"), in_pairs(EVERY_LOSS, EVERY_PENALTY, [(1.0, 1e-3, 1e3), (1e-6, 1.0, 1.0)]), ids=str
)
def test_features_of_very_different_sizes(loss: ct.Loss, penalty: ct.Penalty, scales: Any) -> None:
    problem = instance("few labelled", loss, penalty)
    data = replace(problem.data, X=problem.data.X * scales)
    problem = replace(problem, data=data)
    never_too_good(problem, *anywhere(problem, 1.0, 0.05, seed=0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_the_gap_closes_at_the_optimum(penalty: ct.Penalty, kind: str) -> None:
    problem = instance(kind, ct.SquaredError(ridge=0.1), penalty)
    solution = ct.solve(problem, 1e-8)
    proof = ct.certify(problem, solution.w, solution.u)
    assert proof.objective - proof.dual_bound <= 1.1e-8 * proof.objective


@pytest.mark.slow
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_which_bounds_are_unconditional(loss: ct.Loss) -> None:
    """All, even without ridge: these rows cannot be separated."""
    problem = instance("few labelled", loss)
    proof = ct.certify(problem, *anywhere(problem, 1.0, 1.0, 0))
    assert proof.unconditional
    assert not proof.condition


@pytest.mark.parametrize("loss", [ct.Logistic(), ct.Logistic(ridge=0.1, unpenalised=(0,)), ct.Logistic(ridge=0.1)])
def test_classes_that_can_be_separated_need_a_ridge_on_every_column(loss: ct.Logistic) -> None:
    data = ct.LocalDatasets.from_rows([[1.0, 0.5], [2.0, 0.1], [-1.0, 0.3]], [1.0, 1.0, 0.0], [0, 0, 1], n_nodes=3)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1], [1, 2]]), data, loss, lam=0.1)
    proof = ct.certify(problem, np.ones((3, 2)), np.full((2, 2), 0.05))
    assert proof.unconditional is (loss.ridge > 0 and not loss.unpenalised)
    assert bool(proof.condition) is not proof.unconditional


def test_neither_weights_nor_duals_are_changed() -> None:
    problem = instance("few points")
    w, u = anywhere(problem, 1.0, 5.0, 0)
    w_before, u_before = w.copy(), u.copy()
    ct.certify(problem, w, u)
    np.testing.assert_array_equal(w, w_before)
    np.testing.assert_array_equal(u, u_before)


def test_relative_gap_is_relative_to_the_objective() -> None:
    problem = instance()
    assert relative_gap(problem, 2.0, Bound(1.5, True)) == 0.25
    assert relative_gap(problem, -2.0, Bound(-3.0, True)) == 0.5
    assert relative_gap(problem, 1.0, Bound(1.0, True)) == relative_gap(problem, 1.0, Bound(1 + 1e-13, True)) == 0.0
    assert relative_gap(problem, 1.0, Bound(1.5, False)) == np.inf


def test_relative_gap_has_a_floor() -> None:
    problem = instance()
    assert relative_gap(problem, 0.0, Bound(-problem.constant_loss, True)) == pytest.approx(1 / FLOOR)
    assert relative_gap(problem, 0.0, Bound(0.0, True)) == 0.0


def noise_free() -> ct.Problem:
    """One cluster without noise: the optimum is 0."""
    problem = instance("all labelled")
    y = problem.data.X @ np.array([1.0, -2.0, 0.5])
    return replace(problem, data=replace(problem.data, y=y))


def test_an_optimum_of_zero_can_be_certified() -> None:
    solution = ct.solve(noise_free(), 1e-6)
    assert solution.status is ct.Status.OPTIMAL
    assert solution.objective <= 1e-6 * FLOOR * noise_free().constant_loss
    np.testing.assert_allclose(solution.w, np.tile([1.0, -2.0, 0.5], (12, 1)), atol=1e-5)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_without_repair_the_dual_stays_where_it_is(loss: ct.Loss) -> None:
    problem = instance("few points", loss)
    w, u = anywhere(problem, 1.0, 0.01, 0)
    u = problem.penalty.into_domain(u, problem.c)
    np.testing.assert_array_equal(Certifier(ArrayProver(problem.bound))(w, u, rounds=0).u, u)


@pytest.mark.slow
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_repair_tightens_the_bound_near_the_optimum(loss: ct.Loss) -> None:
    problem = instance("few points", loss)
    near = ct.algorithm1(problem, 200, sigma=0.05, tau=10.0)
    u = near.u + anywhere(problem, 0.0, 1e-3, 0)[1]
    certifier = Certifier(ArrayProver(problem.bound))
    assert certifier(near.w, u).dual_bound >= certifier(near.w, u, rounds=0).dual_bound


def test_no_repair_beyond_the_goal() -> None:
    """A charge that leaves the goal within reach is not worth a round."""
    problem = instance("few labelled")
    near = ct.algorithm1(problem, 200, sigma=0.05, tau=10.0)
    certifier = Certifier(ArrayProver(problem.bound))
    level = problem.objective(near.w)
    untouched = certifier(near.w, near.u.copy(), level=level, rounds=0)
    goal = 1.01 * (level - untouched.dual_bound)
    np.testing.assert_array_equal(certifier(near.w, near.u.copy(), goal=goal).u, untouched.u)


def glanced_at(kind: str) -> tuple[ct.Problem, ct.Solution, ArrayProver, float, float]:
    """A point near the optimum, what proves there, its objective, and how far from the optimum that is."""
    problem = instance(kind)
    near = ct.algorithm1(problem, 200, sigma=0.05, tau=10.0)
    level = problem.objective(near.w)
    return problem, near, ArrayProver(problem.bound), level, level - ct.solve(problem, 1e-8).dual_bound


@pytest.mark.parametrize("kind", ["few labelled", "few points"])
def test_what_is_repaired_before_the_first_bound_is_proven_like_all_else(kind: str) -> None:
    problem, near, prover, level, apart = glanced_at(kind)
    goal, glanced = 20 * apart, prover.glance(near.w, near.u, level)
    asked = {"goal": goal, "rounds": MOST, "level": level, "hurry": True}
    proof, _ = Certifier(prover).attempt(near.w, near.u.copy(), **asked, glanced=glanced)
    assert proof is not None
    assert level - goal <= proof.dual_bound <= ct.solve(problem, 1e-8).objective
    again = Certifier(ArrayProver(problem.bound))(near.w, proof.u.copy(), rounds=0)
    assert again.dual_bound == pytest.approx(proof.dual_bound, rel=1e-9)


@pytest.mark.parametrize("kind", ["few labelled", "few points"])
def test_repair_that_is_in_vain_ends_without_a_bound(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, near, prover, level, apart = glanced_at(kind)
    rounds = []
    correct = Repair._correct
    monkeypatch.setattr(Repair, "_correct", lambda *args: (rounds.append(1), correct(*args))[1])
    u = near.u + 0.02 * np.random.default_rng(0).standard_normal(near.u.shape)
    asked = {"goal": 0.5 * apart, "rounds": MOST, "level": level, "hurry": True}
    proof, shown = Certifier(prover).attempt(near.w, u, **asked, glanced=level)
    assert proof is None
    assert shown < level - 0.5 * apart
    assert len(rounds) <= 3


@pytest.mark.parametrize("name", ["w", "u"])
def test_points_of_another_problem_are_refused(name: str) -> None:
    problem = instance()
    point = dict(zip("wu", anywhere(problem, 1.0, 1.0, 0), strict=True))
    point[name] = point[name][1:]
    with pytest.raises(ValueError, match=rf"{name} must have shape \(\d+, 3\) for this problem; got"):
        ct.certify(problem, **point)


def test_repair_never_makes_a_bound_worse() -> None:
    problem = instance("few points", ct.Lasso(0.1, unpenalised=(1,)), ct.SquaredVariation(), seed=2)
    solution = ct.solve(problem, 1e-6)
    assert ct.certify(problem, solution.w, solution.u).dual_bound >= solution.dual_bound * (1 - 1e-12)


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Logistic(ridge=0.05)], ids=repr)
def test_near_the_optimum_a_glance_tells_what_a_proof_would(loss: ct.Loss) -> None:
    problem = instance(loss=loss)
    near = ct.solve(problem, 1e-4)
    certifier, level = Certifier(ArrayProver(problem.bound)), problem.objective(near.w)
    proof = certifier(near.w, near.u.copy(), rounds=0, goal=1.0)
    assert level - certifier.prover.glance(near.w, near.u, level) == pytest.approx(
        level - proof.bound_before_charge, rel=0.02
    )


@pytest.mark.parametrize("loss", [ct.Logistic(), ct.Poisson()], ids=repr)
def test_a_glance_looks_at_what_data_see(loss: ct.Loss) -> None:
    problem = instance("few points", loss)
    near = ct.solve(problem, 1e-4)
    prover, level = ArrayProver(problem.bound), problem.objective(near.w)
    assert level - prover.glance(near.w, near.u, level) == pytest.approx(
        level - prover.minorant(near.w, near.u, None).value, rel=0.02
    )


def test_where_directions_are_unseen_and_rows_have_kinks_a_glance_tells_nothing() -> None:
    problem = instance("few points", ct.SquaredHinge())
    w, u = anywhere(problem, 1.0, 0.01, 0)
    assert ArrayProver(problem.bound).glance(w, u, problem.objective(w)) == np.inf
