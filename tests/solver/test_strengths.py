"""A strength per column: free (0), held and tied (∞) columns, against CVXPY + Clarabel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from any_n import any_n
from coterie.proofs import free_columns
from coterie.proofs.free_columns import Unfolded
from pairs import in_pairs
from problems import (
    EVERY_PENALTY,
    FIRST_LOSSES,
    KINDS,
    OTHER_LOSSES,
    graphs,
    instance,
    naive_objective,
    oracle,
    outside_domain,
    problems,
)

TOL, INF = 1e-6, np.inf
STRENGTHS = (
    (0.3, 2.0, 1.0),
    (0.0, 0.3, 2.0),
    (INF, 0.0, 0.3),
    (0.0, INF, INF),
    (2.0, INF, INF),
    (0.0, 0.0, 2.0),
    (INF, INF, INF),
    (0.0, 0.0, 0.0),
)


def with_strength(problem: ct.Problem, strength: Any) -> ct.Problem:
    return replace(problem, strength=np.array(strength, dtype=float))


def check(problem: ct.Problem) -> ct.Solution:
    """What must be true of every answer."""
    solution, best = ct.solve(problem, TOL), oracle(problem)
    slack = 1e-9 * (abs(best.value) + problem.constant_loss)
    assert solution.status is ct.Status.OPTIMAL
    assert solution.objective == pytest.approx(naive_objective(problem, solution.w), rel=1e-11)
    assert solution.objective <= best.value * (1 + TOL) + slack
    assert solution.dual_bound <= best.value + slack
    assert outside_domain(problem, solution.u) <= 1e-14 * problem.c.max(initial=0.0)
    again = ct.certify(problem, solution.w, solution.u)
    assert again.objective == pytest.approx(solution.objective, rel=1e-13)
    assert again.dual_bound <= best.value + slack
    check_columns(problem, solution)
    return solution


def check_columns(problem: ct.Problem, solution: ct.Solution) -> None:
    """Tied columns have one number per component, exactly; free ones of unlabelled nodes are means of the others, or
    zero where every column is free, so that such nodes are undetermined.
    """
    assert problem.strength is not None
    component = problem.graph.components
    tied, free = solution.w[:, problem.strength == INF], solution.w[:, problem.strength == 0]
    for c in np.unique(component):
        np.testing.assert_array_equal(
            tied[component == c], np.broadcast_to(tied[component == c][:1], tied[component == c].shape)
        )
    for i in np.setdiff1d(np.arange(problem.graph.n_nodes), problem.M):
        known = bool(np.any(problem.strength))
        near = problem.M[(component[problem.M] == component[i]) & known]
        np.testing.assert_allclose(free[i], free[near].mean(axis=0) if len(near) else 0.0, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("strength", "kind", "loss", "penalty"), in_pairs(STRENGTHS, KINDS, FIRST_LOSSES, EVERY_PENALTY), ids=str
)
def test_solutions_are_those_of_another_solver(strength: Any, kind: str, loss: ct.Loss, penalty: ct.Penalty) -> None:
    check(with_strength(instance(kind, loss, penalty), strength))


@pytest.mark.parametrize(
    ("strength", "loss", "penalty"), in_pairs(STRENGTHS[:4], OTHER_LOSSES, EVERY_PENALTY)[::2], ids=str
)
def test_other_losses(strength: Any, loss: ct.Loss, penalty: ct.Penalty) -> None:
    check(with_strength(instance("few labelled", loss, penalty), strength))


@pytest.mark.parametrize("loss", [ct.SquaredError(ridge=0.1), ct.Lasso(0.1, unpenalised=(1,)), ct.Logistic(ridge=0.05)])
def test_ridge_and_alpha_of_free_columns(loss: ct.Loss) -> None:
    check(with_strength(instance("few points", loss), (0.0, INF, 2.0)))


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("strength", [(0.3, 2.0, 1.0), (INF, 0.0, 0.3)], ids=str)
def test_tied_columns_are_tied_without_lam(strength: Any, penalty: ct.Penalty) -> None:
    solution = check(with_strength(instance("disconnected", penalty=penalty, lam=0.0), strength))
    if INF not in strength:
        np.testing.assert_array_equal(solution.w, ct.solve(instance("disconnected", penalty=penalty, lam=0.0)).w)


@pytest.mark.parametrize("strength", [(0.0, INF, INF), (INF, INF, INF)], ids=str)
def test_where_no_column_is_held_all_penalties_are_the_same(strength: Any) -> None:
    """Also to the solver: squared variation took up to three times as many iterations."""
    kinds = [with_strength(instance("few labelled", penalty=penalty), strength) for penalty in EVERY_PENALTY]
    first, *others = [ct.solve(problem, TOL) for problem in kinds]
    for problem, solution in zip(kinds[1:], others, strict=True):
        np.testing.assert_array_equal(solution.w, first.w)
        proof = ct.certify(problem, solution.w, solution.u)
        assert proof.objective - proof.dual_bound <= TOL * proof.objective


@pytest.mark.parametrize("strength", [(0.3, 2.0, 1.0), (INF, 0.0, 0.3)], ids=str)
def test_a_path_and_its_warm_starts(strength: Any) -> None:
    problem = with_strength(instance(), strength)
    path = ct.solve_path(problem, n_lams=4)
    for lam, solution in path:
        check_columns(replace(problem, lam=lam), solution)
        assert solution.gap <= TOL
    first = path.solutions[0].w[:, np.array(strength) > 0]
    np.testing.assert_allclose(first, np.broadcast_to(first[:1], first.shape), atol=1e-3)


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("away", [1e-15, 1.0])
def test_a_start_whose_tied_columns_differ_is_no_answer(penalty: ct.Penalty, away: float) -> None:
    """Its objective is infinite, and so is its gap, whatever its duals prove."""
    problem = with_strength(instance(penalty=penalty), (INF, 0.3, 2.0))
    best = ct.solve(problem, TOL)
    start = replace(best, w=best.w + away * np.random.default_rng(0).standard_normal(best.w.shape))
    again = ct.solve(problem, TOL, start=start)
    assert again.status is ct.Status.OPTIMAL
    assert again.objective == pytest.approx(best.objective, rel=3 * TOL)
    check_columns(problem, again)


@pytest.mark.filterwarnings("ignore::coterie.NotConverged")
@settings(max_examples=15, deadline=None)
@given(problem=problems())
def test_strengths_of_one_are_none(problem: ct.Problem) -> None:
    ones = replace(problem, strength=np.ones(3))
    assert ones.strength is None
    assert ones.bound.strength is None
    plain, same = (ct.solve(one, TOL, max_iter=200) for one in (problem, ones))
    np.testing.assert_array_equal(same.w, plain.w)
    assert same.n_iter == plain.n_iter


@pytest.mark.filterwarnings("ignore::coterie.NotConverged")
@settings(max_examples=15, deadline=None)
@given(problem=problems(st.sampled_from([1e-3, 0.1, 1.0])), a=st.sampled_from([0.25, 3.0]))
def test_strengths_scale_as_lam_does(problem: ct.Problem, a: float) -> None:
    """Neither bound is above what the other one reaches."""
    scaled, plain = with_strength(problem, (a, a, a)), replace(problem, lam=a * problem.lam)
    one, other = (ct.solve(each, TOL, max_iter=300) for each in (scaled, plain))
    slack = 1e-12 * (problem.constant_loss + abs(other.objective))
    if one.unconditional:
        assert one.dual_bound <= other.objective + slack
    if other.unconditional:
        assert other.dual_bound <= one.objective + slack


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::coterie.NotConverged")
@settings(max_examples=40, deadline=None)
@given(
    problem=problems(st.sampled_from([0.0, 1e-3, 0.1, 10.0])),
    strength=st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.0, INF]), min_size=3, max_size=3),
)
def test_no_bound_is_above_the_optimum(problem: ct.Problem, strength: list[float]) -> None:
    problem = with_strength(problem, strength)
    solution, best = ct.solve(problem, TOL, max_iter=500, engine="numpy"), oracle(problem)
    assert solution.objective == pytest.approx(naive_objective(problem, solution.w), rel=1e-9)
    if solution.unconditional:
        assert solution.dual_bound <= best.value + 1e-12 * (abs(best.value) + problem.constant_loss)


@settings(max_examples=20, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 2**16))
def test_one_column_of_each_kind_is_a_problem_of_its_own(graph: Any, seed: int) -> None:
    """Columns that no row has two of are problems apart: free ones are solved node by node, tied ones by component."""
    rng, built = np.random.default_rng(seed), graph.build()
    V = built.n_nodes
    y = rng.standard_normal((V, 3))
    data = ct.LocalDatasets.from_rows(np.tile(np.eye(3), (V, 1)), y.ravel(), np.repeat(np.arange(V), 3), n_nodes=V)
    solution = ct.solve(ct.Problem(built, data, lam=0.1, strength=np.array([0.0, INF, 1.0])), 1e-10)
    np.testing.assert_allclose(solution.w[:, 0], y[:, 0], atol=1e-4)
    component = built.components
    mean = (np.bincount(component, y[:, 1]) / np.bincount(component))[component]
    np.testing.assert_allclose(solution.w[:, 1], mean, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [any_n(), "numba"], ids=["any n", "this n"])
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("strength", [(0.3, 2.0, 1.0), (0.0, 2.0, 1.0), (0.0, 1.0, INF)], ids=str)
def test_compiled_engines_solve_them(strength: Any, penalty: ct.Penalty, engine: Any) -> None:
    problem = with_strength(instance(penalty=penalty), strength)
    solution = ct.solve(problem, TOL, engine=engine)
    assert solution.status is ct.Status.OPTIMAL
    assert solution.objective == pytest.approx(ct.solve(problem, TOL, engine="numpy").objective, rel=2 * TOL)
    check_columns(problem, solution)


def test_a_gpu_refuses_strengths_without_an_end() -> None:
    with pytest.raises(TypeError, match=r'strengths of 0 or inf are not known to the GPU: leave engine="gpu" out'):
        ct.solve(with_strength(instance(), (0.0, 1.0, INF)), engine="gpu")


def test_what_is_told_goes_on_from_the_first_solve() -> None:
    told: list[ct.Record] = []
    solution = ct.solve(with_strength(instance(), (0.3, 2.0, 1.0)), TOL, callback=told.append)
    assert [record.n_iter for record in solution.history] == sorted(record.n_iter for record in solution.history)
    assert solution.n_iter == solution.history[-1].n_iter
    assert told
    with pytest.warns(ct.NotConverged, match="iteration limit"):
        limited = ct.solve(with_strength(instance(), (0.3, 2.0, 1.0)), 1e-12, max_iter=20)
    assert limited.n_iter <= 20
    assert limited.status is ct.Status.ITERATION_LIMIT


@pytest.mark.parametrize(
    ("strength", "message"),
    [
        ([1.0, 2.0], r"one number for each of the 3 columns, got shape \(2,\)"),
        ([1.0, -2.0, 1.0], r"strength\[1\] is -2; a strength is 0, a number from 1e-09 to 1e\+09, or inf"),
        ([1.0, 1.0, np.nan], r"strength\[2\] is nan"),
        ([1.0, 1.0, 1e-30], r"strength\[2\] is 1e-30"),
    ],
)
def test_bad_strengths_are_named(strength: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(instance(), strength=strength)


def test_the_papers_algorithm_ends_with_tied_columns_that_are_equal() -> None:
    problem = with_strength(instance(), (INF, 0.0, 0.3))
    solution = ct.algorithm1(problem, n_iter=2000)
    assert solution.gap <= 1e-3
    check_columns(problem, solution)


def test_a_federation_refuses_them() -> None:
    from coterie.federation.simulate import simulate

    with pytest.raises(ValueError, match="a federation has one strength for all columns"):
        simulate(with_strength(instance(), (1.0, 2.0, 1.0)), np.arange(12) // 6)


def test_penalties_of_ones_own_have_no_strengths() -> None:
    class Own(ct.TotalVariation):
        pass

    with pytest.raises(TypeError, match="Own has no strengths by column"):
        with_strength(instance(penalty=Own()), (1.0, 2.0, 1.0))


@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=str)
@pytest.mark.parametrize("strength", [(0.0, INF, INF), (0.3, 0.0, INF)], ids=str)
def test_too_many_free_columns_to_unfold(monkeypatch: pytest.MonkeyPatch, strength: Any, loss: ct.Loss) -> None:
    """Some nodes then bound shared columns, and with these, rows of its own bound what a node has for itself."""
    monkeypatch.setattr(free_columns, "MOST_COLUMNS", 6)
    problem = with_strength(instance("all labelled", loss), strength)
    assert not Unfolded.of(problem.bound, problem.graph.components[problem.M]).complete
    check(problem)


def test_nodes_with_too_few_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four nodes of three rows see slopes that all have in common, so that one row per node bounds its level."""
    monkeypatch.setattr(free_columns, "MOST_COLUMNS", 6)
    rng, m = np.random.default_rng(0), np.array([3] * 4 + [1] * 6)
    nodes = np.repeat(np.arange(10), m)
    X = np.column_stack([rng.standard_normal((len(nodes), 2)), np.ones(len(nodes))])
    y = X[:, :2].sum(axis=1) + nodes + 0.1 * rng.standard_normal(len(nodes))
    graph = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(9)])
    data = ct.LocalDatasets.from_rows(X, y, nodes)
    check(ct.Problem(graph, data, lam=0.1, strength=np.array([INF, INF, 0.0])))


def test_means_where_nothing_counts_stay_inside_bounds() -> None:
    """Three times 0.1, divided by three, is more than 0.1."""
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)])
    data = ct.LocalDatasets.from_rows([[1.0, 0.1]] * 3, [1.0, 2.0, 3.0], nodes=[0, 1, 2], n_nodes=4)
    loss = ct.SquaredError(ridge=1.0, unpenalised=(0,), lower=(-1.0, -INF), upper=(0.1, INF))
    solution = ct.solve(ct.Problem(graph, data, loss=loss, strength=np.array([0.0, 1.0])), TOL)
    assert np.all(solution.w[:, 0] == 0.1)
