"""solve, against CVXPY + Clarabel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coterie as ct
from coterie.engines import numba
from coterie.engines.arrays import ArrayProver
from coterie.engines.numba import NumbaEngine
from coterie.problem import BoundProblem
from coterie.solver.bound import Bound
from coterie.solver.certificate import relative_gap
from coterie.solver.incumbent import Incumbent
from pairs import in_pairs
from problems import EVERY_PENALTY, FIRST_LOSSES, KINDS, instance, naive_objective, oracle, outside_domain

TOL = 1e-6
PARAMETERS = (
    ct.Logistic(ridge=0.05),
    ct.Logistic(ridge=0.05, unpenalised=(0,)),
    ct.SquaredError(reduction="sum"),
    ct.SquaredError(ridge=0.1, unpenalised=(2,)),
    ct.Lasso(0.1, unpenalised=(1,)),
)


def check_against_oracle(problem: ct.Problem) -> ct.Solution:
    """What must be true of every answer."""
    solution, best = ct.solve(problem, TOL), oracle(problem)
    slack = 1e-11 * (abs(best.value) + problem.constant_loss)
    assert solution.status is ct.Status.OPTIMAL
    assert solution.objective == pytest.approx(naive_objective(problem, solution.w), rel=1e-11)
    assert solution.objective <= best.value * (1 + TOL) + slack
    assert solution.dual_bound <= best.value + slack
    assert solution.gap <= TOL
    assert solution.gap == relative_gap(problem, solution.objective, Bound(solution.dual_bound, True))
    check_certificate(problem, solution)
    return solution


def check_certificate(problem: ct.Problem, solution: ct.Solution) -> None:
    """It can be computed again from w and u alone, and u is feasible.

    The duals of an ℓ1 term are found again by repair, those of kinks by ascent, and need not be as good.
    """
    accuracy = 1e-9 * abs(solution.objective) + 1e-14 * problem.constant_loss
    again = ct.certify(problem, solution.w, solution.u)
    if not problem.f.smooth:
        accuracy += solution.objective - solution.dual_bound
    assert again.objective == pytest.approx(solution.objective, rel=1e-13)
    assert solution.dual_bound - accuracy <= again.dual_bound <= again.objective
    assert again.unconditional is solution.unconditional
    assert outside_domain(problem, solution.u) <= 1e-14 * problem.c.max(initial=0.0)


@pytest.mark.parametrize(("kind", "loss", "penalty"), in_pairs(KINDS, FIRST_LOSSES, EVERY_PENALTY), ids=str)
def test_against_the_oracle(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    check_against_oracle(instance(kind, loss, penalty))


@pytest.mark.parametrize(
    ("loss", "penalty", "kind"), in_pairs(PARAMETERS, EVERY_PENALTY, ["few labelled", "few points"]), ids=str
)
def test_parameters_of_losses_against_the_oracle(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    check_against_oracle(instance(kind, loss, penalty, seed=2))


@pytest.mark.parametrize("lam", [0.0, 1e-4, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_any_strength_of_coupling(penalty: ct.Penalty, lam: float) -> None:
    check_against_oracle(instance("few labelled", penalty=penalty, lam=lam))


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(0.2)], ids=repr)
def test_any_unit_of_the_features(loss: ct.Loss, scale: float) -> None:
    """The weights carry the inverse unit, and λ the unit: the same problem in other words."""
    plain = instance("few labelled", loss)
    other = replace(plain, data=replace(plain.data, X=plain.data.X * scale), lam=plain.lam * scale)
    if isinstance(loss, ct.Lasso):
        other = replace(other, loss=ct.Lasso(loss.alpha * scale))
    solution = ct.solve(other, TOL)
    assert solution.objective == pytest.approx(ct.solve(plain, TOL).objective, rel=2 * TOL)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_features_far_from_the_size_of_lam(penalty: ct.Penalty, scale: float) -> None:
    problem = instance("few labelled", penalty=penalty)
    check_against_oracle(replace(problem, data=replace(problem.data, X=problem.data.X * scale)))


@pytest.mark.parametrize("engine", ["numba", "numpy"])
def test_it_is_deterministic(engine: str) -> None:
    a, b = (ct.solve(instance("few points"), TOL, engine=engine) for _ in range(2))
    np.testing.assert_array_equal(a.w, b.w)
    np.testing.assert_array_equal(a.u, b.u)
    assert a.n_iter == b.n_iter


@pytest.mark.parametrize(("kind", "loss", "penalty"), in_pairs(KINDS, FIRST_LOSSES, EVERY_PENALTY), ids=str)
def test_engines_come_to_the_same_answer(kind: str, loss: ct.Loss, penalty: ct.Penalty) -> None:
    problem, tol = instance(kind, loss, penalty), 1e-6 if isinstance(loss, ct.Quantile) else 1e-10
    numba, numpy, own = (ct.solve(problem, tol, engine=engine) for engine in ("numba", "numpy", NumbaEngine(2)))
    for other in (numpy, own):
        assert other.objective == pytest.approx(numba.objective, rel=2 * tol)
        if problem.f.smooth_part.smooth:  # else several weights can be optimal
            values = problem.f.value(other.w[problem.M])
            np.testing.assert_allclose(values, problem.f.value(numba.w[problem.M]), rtol=1e-3)


def test_an_engine_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="there is no engine 'abacus'; choose one of auto, numba, numpy"):
        ct.solve(instance(), engine="abacus")


@pytest.mark.parametrize("tol", [-1e-6, np.nan])
def test_a_tolerance_that_makes_no_sense(tol: float) -> None:
    with pytest.raises(ValueError, match="tol must be a number ≥ 0"):
        ct.solve(instance(), tol)


def test_no_labels_at_all() -> None:
    data = ct.LocalDatasets.from_rows(np.ones((3, 2)), [np.nan] * 3, [0, 1, 2])
    solution = ct.solve(ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1], [1, 2]]), data))
    assert solution.status is ct.Status.OPTIMAL
    assert solution.objective == solution.dual_bound == solution.gap == 0.0
    assert solution.undetermined.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(solution.w, 0.0)


@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_one_node(loss: ct.Loss) -> None:
    plain = instance("all labelled", loss)
    mine = plain.data.nodes == 0
    data = ct.LocalDatasets.from_rows(plain.data.X[mine], plain.data.y[mine], plain.data.nodes[mine])
    check_against_oracle(ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=1), data, loss))


@pytest.mark.parametrize("kind", ["disconnected", "isolated nodes"])
def test_undetermined_nodes_are_zero_and_named(kind: str) -> None:
    problem = instance(kind)
    solution = ct.solve(problem, TOL)
    np.testing.assert_array_equal(solution.undetermined, problem.undetermined)
    np.testing.assert_array_equal(solution.w[problem.undetermined], 0.0)


def test_every_status_is_a_sentence() -> None:
    for status in ct.Status:
        assert status.value[0].isupper()
        assert status.value.endswith(".")


def test_a_solution_prints_on_one_line() -> None:
    text = repr(ct.solve(instance(loss=ct.Logistic()), TOL))
    assert text.startswith("Solution(OPTIMAL, objective ")
    assert "\n" not in text


def test_as_many_threads_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []

    def prover(problem: BoundProblem, threads: int | None) -> ArrayProver:
        asked.append(threads)
        return ArrayProver(problem, threads)

    monkeypatch.setattr(numba, "array_prover", prover)
    one, two = (ct.solve(instance(), threads=threads, engine="numba") for threads in (1, 2))
    assert asked == [1, 2]
    assert one.objective == pytest.approx(two.objective, rel=1e-6)
    with pytest.raises(ValueError, match=r"threads must be a whole number ≥ 1, got 1\.5"):
        ct.solve(instance(), threads=1.5)  # type: ignore[arg-type]


def test_duals_that_are_not_numbers_are_not_handed_out() -> None:
    problem = instance()
    best = Incumbent(ArrayProver(problem.bound), TOL, np.zeros((12, 3)))
    best.proof = replace(best.proof, u=np.full((problem.graph.n_edges, 3), np.nan))
    assert not best.solution(ct.Status.STALLED, 1).u.any()


@pytest.mark.parametrize("loss", [ct.Huber(), ct.Quantile()], ids=repr)
def test_labels_without_noise_have_an_objective_of_zero(loss: ct.Loss) -> None:
    X, nodes = np.array([[0.0], [3.0], [2.0], [2.0], [0.0], [3.0]]), [1, 1, 4, 4, 5, 5]
    ends = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (6, 3), (5, 0), (3, 1), (3, 7), (4, 0), (4, 1)]
    graph = ct.EmpiricalGraph.from_edges(ends, n_nodes=8)
    problem = ct.Problem(graph, ct.LocalDatasets.from_rows(X, 3 * X[:, 0], nodes, n_nodes=8), loss, lam=0.1)
    for engine in ("numpy", "auto"):
        solution = ct.solve(problem, engine=engine)
        assert solution.status is ct.Status.OPTIMAL
        assert solution.objective == pytest.approx(0.0, abs=1e-12)


def test_what_is_no_engine_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^object is no engine; inherit from coterie\.engines\.base\.Engine$"):
        ct.solve(instance(), engine=object())  # type: ignore[arg-type]
