from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from coterie.solver.repair import flat_projection, repair
from problems import EVERY_PENALTY, KINDS, instance, outside_domain, problems

SPARSE = ["few labelled", "disconnected", "few points"]


def left_over(problem: ct.Problem, u: np.ndarray) -> float:
    """‖N Dᵀu‖: the flow that the data of its node cannot take up."""
    N = flat_projection(problem)
    return 0.0 if N is None else float(np.linalg.norm(N(problem.graph.D.T @ u)))


def duals(problem: ct.Problem, size: float, seed: int = 0) -> np.ndarray:
    return size * np.random.default_rng(seed).standard_normal((problem.graph.n_edges, problem.n_features))


@given(problems(), st.sampled_from([0.0, 1e-3, 1.0, 1e3]), st.integers(0, 99))
def test_the_result_is_in_the_domain(problem: ct.Problem, size: float, seed: int) -> None:
    u = repair(problem, duals(problem, size, seed))
    assert np.isfinite(u).all()
    assert outside_domain(problem, u) <= 1e-12 * problem.c.max(initial=0.0)


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_less_is_left_over(penalty: ct.Penalty, kind: str) -> None:
    problem = instance(kind, penalty=penalty)
    u = problem.penalty.into_domain(duals(problem, 0.02), problem.c)
    assert left_over(problem, repair(problem, u)) < 0.1 * left_over(problem, u)


@pytest.mark.parametrize("kind", SPARSE)
def test_more_rounds_leave_less(kind: str) -> None:
    problem = instance(kind)
    u = duals(problem, 0.05)
    assert left_over(problem, repair(problem, u, rounds=10)) <= left_over(problem, repair(problem, u, rounds=1))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_left_alone(kind: str) -> None:
    problem = instance(kind)
    u = ct.solve(problem, 1e-6).u
    np.testing.assert_allclose(repair(problem, u), u, atol=1e-6)


def test_nothing_flows_where_nothing_is_labelled() -> None:
    problem = instance("disconnected")
    u = repair(problem, duals(problem, 1.0))
    silent = np.isin(problem.graph.edges[:, 0], [10, 11])
    assert silent.any()
    assert not u[silent].any()
    assert u[~silent].any()


def test_nothing_to_repair_where_every_loss_is_curved() -> None:
    problem = instance("all labelled", ct.SquaredError(ridge=1.0))
    assert flat_projection(problem) is None
    u = problem.penalty.into_domain(duals(problem, 1.0), problem.c)
    np.testing.assert_array_equal(repair(problem, u), u)


@pytest.mark.parametrize("kind", SPARSE)
def test_the_flat_projection_projects(kind: str) -> None:
    problem = instance(kind)
    N = flat_projection(problem)
    x, z = np.random.default_rng(1).standard_normal((2, 12, 3))
    np.testing.assert_allclose(N(N(x)), N(x), atol=1e-12)
    assert np.vdot(N(x), z) == pytest.approx(np.vdot(x, N(z)))
