from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import null_space

import coterie as ct
from coterie.engines.arrays import ArrayProver
from coterie.kernels.gradients import ConjugateGradients
from coterie.solver.repair import Enough, Repair
from problems import EVERY_PENALTY, KINDS, case_of, instance, outside_domain, problems, rows_of_node

pytestmark = pytest.mark.usefixtures("compiled_kernels")

SPARSE = ["few labelled", "disconnected", "few points"]


def flat_projection(problem: ct.Problem, x: np.ndarray) -> np.ndarray:
    """Nx, node by node, from singular vectors of the rows that a smooth loss sees."""
    x = x.copy()
    for k, i in enumerate(problem.M):
        seen = np.vstack([rows_of_node(problem.data.labelled, k)[0], case_of(problem.loss).rank_rows(problem.loss, 3)])
        _, s, Vt = np.linalg.svd(seen, full_matrices=False)
        V = Vt[s > 1e-12 * s[0]]
        x[i] -= V.T @ (V @ x[i])
    return x


def repaired(problem: ct.Problem, u: np.ndarray, rounds: int = 10) -> np.ndarray:
    repair = Repair(ArrayProver(problem.bound))
    u = u.copy()
    repair.prover.clip(u)
    if repair.prover.needs_repair:
        repair.rounds(u, rounds)
    return u


def left_over(problem: ct.Problem, u: np.ndarray) -> float:
    """‖N Dᵀu‖: the flow that the data of its node cannot take up."""
    return float(np.linalg.norm(flat_projection(problem, problem.graph.D.T @ u)))


def duals(problem: ct.Problem, size: float, seed: int = 0) -> np.ndarray:
    return size * np.random.default_rng(seed).standard_normal((problem.graph.n_edges, problem.n_features))


@given(problems(), st.sampled_from([0.0, 1e-3, 1.0, 1e3]), st.integers(0, 99))
def test_the_result_is_in_the_domain(problem: ct.Problem, size: float, seed: int) -> None:
    u = repaired(problem, duals(problem, size, seed))
    assert np.isfinite(u).all()
    assert outside_domain(problem, u) <= 1e-12 * problem.c.max(initial=0.0)


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_less_is_left_over(penalty: ct.Penalty, kind: str) -> None:
    problem = instance(kind, penalty=penalty)
    u = problem.penalty.into_domain(duals(problem, 0.02), problem.c)
    assert left_over(problem, repaired(problem, u)) < 0.1 * left_over(problem, u)


@pytest.mark.parametrize("kind", SPARSE)
def test_more_rounds_leave_less(kind: str) -> None:
    problem = instance(kind)
    u = duals(problem, 0.05)
    assert left_over(problem, repaired(problem, u, rounds=10)) <= left_over(problem, repaired(problem, u, rounds=1))


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("kind", SPARSE)
def test_a_small_stretch_leaves_nothing(kind: str, penalty: ct.Penalty) -> None:
    problem = instance(kind, penalty=penalty)
    repair = Repair(ArrayProver(problem.bound))
    u = duals(problem, 0.02)
    repair.prover.clip(u)
    repair.rounds(u, 3)
    before, near = left_over(problem, u), u.copy()
    assert not repair.rounds(u, 1, enough=Enough(left=1e-8, stretch=1.5))
    assert left_over(problem, u) <= max(1e-6 * before, 1e-15)
    assert outside_domain(problem, u) <= 1e-12 * problem.c.max()
    assert np.abs(u - near).max() <= problem.c.max()


def test_threads_agree() -> None:
    problem = instance("few points")
    several = []
    for threads in (1, 3):
        repair, u = Repair(ArrayProver(problem.bound, threads)), duals(problem, 0.02)
        repair.prover.clip(u)
        repair.rounds(u, 3)
        several.append(u)
    np.testing.assert_allclose(*several, rtol=1e-9, atol=1e-12)


def test_it_says_when_nothing_is_left_to_do() -> None:
    problem = instance("few labelled")
    repair = Repair(ArrayProver(problem.bound))
    u = duals(problem, 0.02)
    repair.prover.clip(u)
    assert repair.rounds(u, 1)
    assert not repair.rounds(u, 200)
    assert left_over(problem, u) < 1e-14
    before = u.copy()
    assert not repair.rounds(u, 1)
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize("kind", ["few labelled", "few points"])
def test_the_duals_of_an_l1_term_move_as_well(kind: str) -> None:
    """With s, it is N(Dᵀu + s) that shrinks, and s stays inside [−alpha, alpha] (and zero where alpha is)."""
    problem = instance(kind, ct.Lasso(0.2, unpenalised=(1,)))
    s = np.zeros((problem.graph.n_nodes, 3))
    s[problem.M] = np.clip(np.random.default_rng(1).standard_normal((len(problem.M), 3)), -0.2, 0.2) * [1, 0, 1]
    repair = Repair(ArrayProver(problem.bound))
    plain = instance(kind)  # sees what the quadratic part of the Lasso does

    def rest(u: np.ndarray) -> float:
        return float(np.linalg.norm(flat_projection(plain, problem.graph.D.T @ u + s)))

    u = duals(problem, 0.02)
    repair.prover.clip(u)
    before = rest(u)
    first = s.copy()
    repair.rounds(u, 10, s)
    assert rest(u) < 0.1 * before
    assert np.abs(s).max() <= 0.2
    assert not s[:, 1].any()
    assert (s != first).any() == (kind == "few points")  # elsewhere N is zero at labelled nodes


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_right_is_left_alone(kind: str) -> None:
    problem = instance(kind)
    u = ct.solve(problem, 1e-6).u
    np.testing.assert_allclose(repaired(problem, u), u, atol=1e-6)


def test_nothing_flows_where_nothing_is_labelled() -> None:
    problem = instance("disconnected")
    u = repaired(problem, duals(problem, 1.0))
    silent = np.isin(problem.graph.edges[:, 0], [10, 11])
    assert silent.any()
    assert not u[silent].any()
    assert u[~silent].any()


def test_nothing_to_repair_where_every_loss_is_curved() -> None:
    problem = instance("all labelled", ct.SquaredError(ridge=1.0))
    repair = Repair(ArrayProver(problem.bound))
    assert not repair.prover.needs_repair
    u = problem.penalty.into_domain(duals(problem, 1.0), problem.c)
    before = u.copy()
    repair.prover.clip(u)
    repair.rounds(u, 1)
    np.testing.assert_array_equal(u, before)


def test_a_given_dual_is_not_changed() -> None:
    problem = instance("few labelled")
    w, u = np.zeros((problem.graph.n_nodes, 3)), duals(problem, 1.0)
    before = u.copy()
    ct.certify(problem, w, u)
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.SquaredError(ridge=1.0), ct.Logistic()], ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_keep_flat_projects(kind: str, loss: ct.Loss) -> None:
    problem = instance(kind, loss)
    x = np.random.default_rng(1).standard_normal((12, 3))
    expected = flat_projection(problem, x)
    ArrayProver(problem.bound).keep_flat(x)
    np.testing.assert_allclose(x, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["all labelled", "few labelled", "disconnected"])
def test_keep_flat_where_everything_is_seen(kind: str) -> None:
    problem = instance(kind)
    x = np.random.default_rng(1).standard_normal((12, 3))
    expected = np.where(np.isin(np.arange(12), problem.M)[:, None], 0.0, x)
    ArrayProver(problem.bound).keep_flat(x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("everything", [True, False])
def test_conjugate_gradients_on_a_small_system(everything: bool) -> None:
    """Few enough unknowns that the steps suffice: the least-squares answer in the directions that are not seen."""
    rng = np.random.default_rng(0)
    L = rng.standard_normal((12, 12))
    L = L @ L.T + 6 * np.eye(12)
    nodes, rows = np.array([1, 4]), rng.standard_normal((2, 1, 2))

    def apply(x: np.ndarray, out: np.ndarray) -> None:
        out[:] = (L @ x.ravel()).reshape(6, 2)

    rest = rng.standard_normal((6, 2))
    seen = nodes, None if everything else rows
    x = ConjugateGradients(apply, rest.copy(), np.diag(L).reshape(6, 2).copy(), seen).run(10, 0.003)
    constraints = np.zeros((4, 6, 2))
    for a, (i, row) in enumerate(zip(nodes, rows[:, 0], strict=True)):
        constraints[2 * a, i] = row
        constraints[2 * a + 1, i] = row[::-1] * [1, -1] if everything else row
    free = null_space(constraints.reshape(4, 12))
    expected = free @ np.linalg.solve(free.T @ L @ free, free.T @ rest.ravel())
    assert np.linalg.norm(x.ravel() - expected) <= 0.01 * np.linalg.norm(expected)
    np.testing.assert_allclose((x[nodes] * rows[:, 0]).sum(axis=1), 0.0, atol=1e-13)


def test_conjugate_gradients_stop_where_there_is_nothing_to_do() -> None:
    nothing = np.zeros((3, 2))
    x = ConjugateGradients(lambda x, out: out.fill(0.0), nothing, np.zeros((3, 2))).run(10, 0.03)
    np.testing.assert_array_equal(x, 0.0)


def test_a_curvature_without_an_inverse_is_none() -> None:
    diagonal = np.array([[2.0], [1e-310]])
    with np.errstate(all="raise"):
        x = ConjugateGradients(lambda x, out: np.multiply(x, [[2.0], [0.0]], out=out), np.ones((2, 1)), diagonal)
        assert x.run(10, 0.03)[0, 0] == 0.5


def test_no_accuracy_is_promised_where_numbers_have_run_out() -> None:
    descent = ConjugateGradients(lambda x, out: None, np.ones((2, 1)), np.ones((2, 1)))
    descent.steps = 3
    for rz, accuracy in ((-1.0, np.nan), (np.nan, 1e-3), (0.5, np.nan), (0.5, 0.0)):
        descent.rz = rz
        assert descent.steps_to(accuracy) == np.inf
    descent.rz, descent.first = 1e-300, 1e300
    assert descent.steps_to(1e-200) == 3
