"""The reductions change nothing: not the optimum, not the bound, not what a node is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.problem import BoundProblem
from coterie.solver.presolve import Presolved, presolve
from problems import EVERY_PENALTY, FIRST_LOSSES, instance, oracle, outside_domain, rows_of


@st.composite
def sparse_problems(draw: Any) -> ct.Problem:
    """Trees with a few more edges, isolated nodes, components without a label; few labels, weights with ties."""
    V = draw(st.integers(2, 16))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    alone = rng.random(V) < draw(st.sampled_from([0.0, 0.2]))
    pairs = {(int(rng.integers(0, j)), j) for j in range(1, V) if not alone[j]}
    for _ in range(draw(st.integers(0, 5))):
        i, j = sorted(int(k) for k in rng.choice(V, 2, replace=False))
        pairs.add((i, j))
    weights = rng.choice([0.5, 1.0, 2.0], len(pairs)) if draw(st.booleans()) else rng.lognormal(0.0, 2.0, len(pairs))
    graph = ct.EmpiricalGraph.from_edges(sorted(pairs), weights, n_nodes=V)
    loss, penalty = draw(st.sampled_from(FIRST_LOSSES)), draw(st.sampled_from(EVERY_PENALTY))
    X, y, nodes = rows_of(loss, rng.standard_normal((V, 2)), draw(st.sampled_from([1, 4])), rng)
    y[~np.isin(nodes, rng.choice(V, draw(st.integers(1, 3))))] = np.nan
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V)
    return ct.Problem(graph, data, loss, penalty, draw(st.sampled_from([0.0, 1e-3, 0.1, 1.0])))


def somewhere(problem: ct.Problem, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Any weights, and duals in the domain of g*, many of them on its border."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((problem.graph.n_nodes, problem.n_features))
    u = 2 * rng.standard_normal((problem.graph.n_edges, problem.n_features)) * problem.c[:, None]
    return w, problem.penalty.into_domain(u, problem.c)


def stated(problem: ct.Problem, small: BoundProblem) -> ct.Problem:
    """The smaller problem with the labelled rows of the larger one."""
    rows = problem.data.labelled
    data = ct.LocalDatasets.from_rows(
        rows.X, rows.y, np.repeat(small.M, rows.m), small.graph.n_nodes, weights=rows.weights
    )
    return replace(problem, graph=small.graph, data=data)


def gone(reduced: Presolved, V: int) -> np.ndarray:
    """Which of the first nodes were contracted, in any round."""
    number, out = np.arange(V), np.zeros(V, dtype=bool)
    for contraction in reduced.rounds:
        there = number >= 0
        out[there] |= contraction.via[number[there]] >= 0
        number[there] = contraction.to[number[there]]
    return out


@pytest.mark.slow
@settings(max_examples=60)
@given(sparse_problems())
def test_the_optimum_stays(problem: ct.Problem) -> None:
    reduced = presolve(problem.bound)
    here, there = oracle(problem), oracle(stated(problem, reduced.problem))
    accuracy = 1e-6 * abs(here.value) + 1e-8 * problem.objective(np.zeros_like(here.w))  # that of the oracle
    assert there.value == pytest.approx(here.value, abs=accuracy)
    w, _ = reduced.lift(there.w, np.zeros((reduced.problem.graph.n_edges, 2)))
    assert problem.objective(w) == pytest.approx(there.value, rel=1e-12)


@settings(max_examples=150)
@given(sparse_problems(), st.integers(0, 99))
def test_what_is_lifted_means_the_same(problem: ct.Problem, seed: int) -> None:
    reduced = presolve(problem.bound)
    small, V = reduced.problem, problem.graph.n_nodes
    w, u = somewhere(small, seed)
    w_lifted, u_lifted = reduced.lift(w, u)
    assert w_lifted.shape == (V, 2)
    assert u_lifted.shape == (problem.graph.n_edges, 2)
    assert problem.objective(w_lifted) == pytest.approx(small.objective(w), rel=1e-12)
    np.testing.assert_allclose(problem.f.value(w_lifted[problem.M]), small.f.value(w[small.M]), rtol=1e-14)
    assert not w_lifted[problem.undetermined].any()
    largest = problem.c.max(initial=0.0)
    assert outside_domain(problem, u_lifted) <= 1e-12 * largest
    rest = problem.graph.D.T @ u_lifted
    np.testing.assert_allclose(rest[gone(reduced, V)], 0.0, atol=1e-12 * largest)
    np.testing.assert_allclose(rest[problem.M], (small.graph.D.T @ u)[small.M], atol=1e-12 * largest)
    conjugate = small.penalty.conjugate(u, small.c)
    assert problem.penalty.conjugate(u_lifted, problem.c) == pytest.approx(conjugate, rel=1e-10, abs=1e-300)


@settings(max_examples=60)
@given(sparse_problems(), st.integers(0, 99))
def test_there_and_back(problem: ct.Problem, seed: int) -> None:
    reduced = presolve(problem.bound)
    w, u = somewhere(reduced.problem, seed)
    w_again, u_again = reduced.restrict(*reduced.lift(w, u))
    np.testing.assert_array_equal(w_again, w)
    np.testing.assert_allclose(u_again, u, rtol=1e-12, atol=1e-14 * problem.c.max(initial=0.0))


@pytest.mark.slow
@settings(max_examples=60)
@given(sparse_problems())
def test_the_certificate_of_the_lifted_point_holds_on_the_original(problem: ct.Problem) -> None:
    reduced = presolve(problem.bound)
    solution = ct.solve(reduced.problem, 1e-6)
    w, u = reduced.lift(solution.w, solution.u)
    proof, best = ct.certify(problem, w, u), oracle(problem).value
    assert solution.status is ct.Status.OPTIMAL
    assert proof.dual_bound <= best + 1e-10 * (abs(best) + problem.constant_loss)
    assert proof.objective <= best * (1 + 2e-6) + 1e-10 * problem.constant_loss


@settings(max_examples=60)
@given(sparse_problems())
def test_it_comes_to_an_end(problem: ct.Problem) -> None:
    """What is left has labels in every component, all labelled nodes, and goes through presolve as it is."""
    small = presolve(problem.bound).problem
    assert len(small.undetermined) == 0
    assert len(small.M) == len(problem.M)
    assert presolve(small).problem is small


def path(V: int, labelled: np.ndarray, penalty: ct.Penalty | None = None) -> ct.Problem:
    rng = np.random.default_rng(0)
    X, y, nodes = rows_of(ct.SquaredError(), rng.standard_normal((V, 2)), 3, rng)
    y[~np.isin(nodes, labelled)] = np.nan
    graph = ct.EmpiricalGraph.from_edges(np.stack([np.arange(V - 1), np.arange(1, V)], axis=1))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V)
    return ct.Problem(graph, data, penalty=penalty or ct.TotalVariation(), lam=0.01)


@pytest.mark.parametrize("penalty", EVERY_PENALTY[:2], ids=repr)
def test_a_path_shrinks_to_its_labels(penalty: ct.Penalty) -> None:
    labelled = np.sort(np.random.default_rng(1).choice(1000, 10, replace=False))
    reduced = presolve(path(1000, labelled, penalty).bound).problem
    assert 10 <= reduced.graph.n_nodes <= 12
    assert reduced.graph.n_edges == reduced.graph.n_nodes - 1
    np.testing.assert_array_equal(reduced.graph.weights, 1.0)


def test_squared_variation_loses_leaves_only() -> None:
    """Inside a path every node matters: differences are shared out evenly along it."""
    reduced = presolve(path(30, np.array([10, 20]), ct.SquaredVariation()).bound)
    assert 11 <= reduced.problem.graph.n_nodes < 30
    assert not gone(reduced, 30)[10:21].any()


def test_parallel_edges_add_up() -> None:
    """1 and 2 both go into 0, and their edges to 3 become one."""
    edges, weights = [[0, 1], [0, 2], [1, 3], [2, 3]], [5.0, 5.0, 1.0, 2.0]
    data = ct.LocalDatasets.from_rows(np.ones((2, 1)), [0.0, 1.0], [0, 3], n_nodes=4)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges(edges, weights), data, lam=1.0)
    reduced = presolve(problem.bound)
    assert reduced.problem.graph.edges.tolist() == [[0, 1]]
    assert reduced.problem.graph.weights.tolist() == [3.0]
    w, u = reduced.lift(np.array([[7.0], [8.0]]), np.array([[-1.5]]))
    assert w.ravel().tolist() == [7.0, 7.0, 7.0, 8.0]
    np.testing.assert_allclose(u.ravel(), [-0.5, -1.0, -0.5, -1.0])


def test_nothing_to_do() -> None:
    problem = instance("all labelled")
    reduced = presolve(problem.bound)
    assert reduced.problem is problem.bound
    w, u = somewhere(problem)
    for a, b in zip(reduced.restrict(*reduced.lift(w, u)), (w, u), strict=True):
        np.testing.assert_array_equal(a, b)


def test_without_any_label_nothing_is_left_out() -> None:
    problem = instance("all labelled")
    problem = replace(problem, data=replace(problem.data, y=np.full_like(problem.data.y, np.nan)))
    assert presolve(problem.bound).problem is problem.bound


def test_components_without_labels_are_left_out() -> None:
    problem = instance("disconnected")
    reduced = presolve(problem.bound)
    assert reduced.problem.graph.n_nodes == 10
    w, u = reduced.lift(np.ones((10, 3)), np.zeros((reduced.problem.graph.n_edges, 3)))
    np.testing.assert_array_equal(w[[10, 11]], 0.0)
    np.testing.assert_array_equal(u, 0.0)


def test_bound_losses_are_used_again() -> None:
    problem = instance("disconnected", ct.Logistic())
    assert presolve(problem.bound).problem.f is problem.f
