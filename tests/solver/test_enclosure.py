"""The box that must hold a minimiser, and what a rest costs there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.solver.enclosure import Enclosure, charge_terms
from problems import EVERY_LOSS, EVERY_PENALTY, KINDS, Oracle, instance, naive_objective, oracle, problems


def minimiser_inside(problem: ct.Problem, level: float, best: Oracle) -> np.ndarray | None:
    """The box holds weights as good as the oracle's; return them, or None where there is no box."""
    box = Enclosure(problem).box(level)
    if box is None:
        return None
    low, high = box
    assert (low <= high).all()
    enough = best.value + 1e-6 * abs(best.value) + 1e-8 * (1 + problem.scale)  # the accuracy of the oracle
    inside = np.clip(best.w, low, high)
    if naive_objective(problem, inside) > enough:  # these lie outside; are there others?
        other = oracle(problem, (low, high))
        assert other.value <= enough
        return other.w
    return inside


def charge_holds(problem: ct.Problem, level: float, best: Oracle, size: float, seed: int) -> None:
    """Σ⟨rest, w*⟩ is never below the charge, for every rest and the minimiser in the box."""
    w = minimiser_inside(problem, level, best)
    rng = np.random.default_rng(seed)
    rest = size * rng.standard_normal(best.w.shape) * rng.integers(0, 2, best.w.shape)
    charge = Enclosure(problem).charge(rest, level)
    if w is None:
        assert charge is None
        return
    accuracy = 1e-4 * (np.abs(rest).sum() * (1 + np.abs(w).max()))  # that of the oracle's weights
    assert charge <= np.vdot(rest, w) + accuracy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_at_the_objective_of_the_optimum(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    """The smallest box there is: nothing better than the oracle's weights is known."""
    problem = instance(kind, loss, penalty)
    best = oracle(problem)
    charge_holds(problem, best.value, best, 1.0, 0)


@settings(max_examples=80)
@given(
    problems(lam=st.sampled_from([1e-8, 1e-3, 0.1, 1.0])),
    st.sampled_from([1.0, 1.01, 2.0, 100.0]),
    st.sampled_from([1e-6, 1.0, 1e3]),
    st.integers(0, 99),
)
def test_on_any_problem(problem: ct.Problem, factor: float, size: float, seed: int) -> None:
    best = oracle(problem)
    charge_holds(problem, factor * best.value, best, size, seed)


@pytest.mark.parametrize("nodes", [[0, 0], [0, 1], [1, 0]], ids=str)
def test_columns_of_very_different_sizes(nodes: list[int]) -> None:
    """The data fix w at (0, 1e9) with an objective of 0: curvature 1e-18 is small, and not nothing."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [0.0, 1e-9]], [0.0, 1.0], nodes, n_nodes=2)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data, lam=1.0)
    w = np.array([[0.0, 1e9], [0.0, 1e9]])
    assert problem.objective(w) <= 1e-12
    for level in (0.0, 1e-9, 0.5, problem.scale, 100.0):
        low, high = Enclosure(problem).box(level)
        assert (low <= w).all()
        assert (w <= high).all()


def hardly_seen(ratio: float, turned: bool, penalty: ct.Penalty | None = None) -> tuple[ct.Problem, np.ndarray]:
    """Three nodes, the last without labels; a noise-free common weight is the minimiser, however far away."""
    X = np.random.default_rng(0).standard_normal((8, 2)) * [1.0, ratio]
    truth = np.array([1.0, 1.0 / ratio])
    if turned:
        Q = np.array([[0.6, 0.8], [-0.8, 0.6]])
        X, truth = X @ Q, truth @ Q
    data = ct.LocalDatasets.from_rows(X, X @ truth, np.repeat([0, 1], 4), n_nodes=3)
    graph = ct.EmpiricalGraph.from_edges([[0, 1], [1, 2]])
    return ct.Problem(graph, data, penalty=penalty or ct.TotalVariation(), lam=1.0), np.tile(truth, (3, 1))


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize(
    ("ratio", "turned"),
    [
        (1e-3, False),
        (1e-6, False),
        (1e-9, False),
        (1e-3, True),
        (1e-6, True),
        (1e-9, True),
    ],
)
def test_a_direction_that_is_hardly_seen(penalty: ct.Penalty, ratio: float, turned: bool) -> None:
    problem, truth = hardly_seen(ratio, turned, penalty)
    for level in (problem.objective(truth), problem.scale):
        low, high = Enclosure(problem).box(level)
        assert (low <= truth).all()
        assert (truth <= high).all()


@pytest.mark.parametrize("ratio", [1e-3, 1e-6])
def test_no_bound_above_the_optimum_where_a_direction_is_hardly_seen(ratio: float) -> None:
    problem, truth = hardly_seen(ratio, turned=True)
    for flow in (1e-8, 1e-7, 1e-6):
        proof = ct.certify(problem, truth, np.array([[0.0, 0.0], [0.0, -flow]]))
        assert proof.dual_bound <= 1e-9 * problem.scale


def test_undetermined_nodes_are_held_at_zero() -> None:
    low, high = Enclosure(instance("disconnected")).box(10.0)
    assert not low[[10, 11]].any()
    assert not high[[10, 11]].any()


def test_a_lower_objective_gives_a_smaller_box_and_charge() -> None:
    problem = instance("few labelled")
    enclosure, best = Enclosure(problem), oracle(problem).value
    low, high = enclosure.box(problem.scale)
    low_near, high_near = enclosure.box(best)
    assert (low <= low_near).all()
    assert (high >= high_near).all()
    rest = np.random.default_rng(0).standard_normal(low.shape)
    assert enclosure.charge(rest, problem.scale) <= enclosure.charge(rest, best)


def test_unlabelled_nodes_lie_in_the_hull_of_labelled_ones() -> None:
    problem = instance("few labelled")
    low, high = Enclosure(problem).box(problem.scale)
    M = problem.M
    others = np.setdiff1d(np.arange(12), M)
    np.testing.assert_array_equal(low[others], np.tile(low[M].min(axis=0), (len(others), 1)))
    np.testing.assert_array_equal(high[others], np.tile(high[M].max(axis=0), (len(others), 1)))


def test_without_coupling_a_node_without_full_rank_is_not_bounded_by_others() -> None:
    problem = replace(instance("few points"), lam=0.0)
    charge_holds(problem, problem.scale, oracle(problem), 1.0, 0)


def test_no_box_for_a_logistic_loss_without_ridge() -> None:
    enclosure = Enclosure(instance(loss=ct.Logistic()))
    assert enclosure.box(1.0) is None
    assert enclosure.charge(np.ones((12, 3)), 1.0) is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Logistic(ridge=0.1), ct.Lasso(0.2)], ids=repr)
def test_the_joint_bound(loss: ct.Loss, seed: int) -> None:
    """Where every node has full rank, a rest spread over many nodes costs less than the worst corner of the box."""
    problem = instance("all labelled", loss)
    best, enclosure = oracle(problem), Enclosure(problem)
    rest = np.random.default_rng(seed).standard_normal((12, 3))
    charge = enclosure.charge(rest, best.value)
    assert charge <= np.vdot(rest, best.w)
    assert charge > charge_terms(rest, *enclosure.box(best.value)).sum()


def test_the_joint_bound_is_reached() -> None:
    """By the weights farthest against the rest: λ = 0, one quadratic after the other, the level shared out."""
    problem = replace(instance("all labelled"), lam=0.0)
    q, rest = problem.f, np.random.default_rng(0).standard_normal((12, 3))
    level = q.floor.sum() + 2.0
    inverse = np.linalg.inv(q.H)
    step = np.einsum("ikl,il->ik", inverse, rest)
    w = q.centre - step * np.sqrt(2 * 2.0 / np.vdot(rest, step))
    assert problem.objective(w) == pytest.approx(level)
    assert Enclosure(problem).charge(rest, level) == pytest.approx(np.vdot(rest, w))


@pytest.mark.parametrize(
    ("rest", "low", "high", "charge"),
    [
        ([1.0, -2.0, 0.0], [-1.0, -1.0, -1.0], [3.0, 3.0, 3.0], -7.0),
        ([1.0, 1.0], [2.0, -3.0], [4.0, 5.0], -1.0),
        ([0.0, 0.0], [-np.inf, -1.0], [np.inf, 1.0], 0.0),
        ([1e-300, 0.0], [-np.inf, -1.0], [np.inf, 1.0], -np.inf),
    ],
)
def test_charge_is_the_worst_corner_of_the_box(rest: list, low: list, high: list, charge: float) -> None:
    assert charge_terms(np.array([rest]), np.array([low]), np.array([high])).sum() == charge


@pytest.mark.parametrize("kind", ["all labelled", "few labelled", "weighted edges", "isolated nodes"])
@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Lasso(0.2), ct.Logistic(ridge=0.1)], ids=str)
def test_reach_holds_the_labelled_weights_of_every_point_at_the_level(kind: str, loss: ct.Loss) -> None:
    problem = instance(kind, loss)
    enclosure, rng = Enclosure(problem), np.random.default_rng(0)
    best = ct.solve(problem, 1e-6).w
    for size in (0.1, 1.0, 10.0, 100.0):
        w = best + size * rng.standard_normal(best.shape)
        reach = enclosure.reach(problem.objective(w))
        assert np.abs(w[problem.M]).max() <= reach < np.inf


def test_reach_is_infinite_where_a_direction_is_open() -> None:
    graph = ct.EmpiricalGraph.from_edges([], n_nodes=2)
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0], [0, 1])
    assert Enclosure(ct.Problem(graph, data)).reach(5.0) == np.inf
    assert Enclosure(instance(loss=ct.Logistic())).reach(5.0) == np.inf
    assert Enclosure(instance()).reach(np.inf) == np.inf
