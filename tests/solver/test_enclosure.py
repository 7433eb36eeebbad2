"""The box that must hold a minimiser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.solver.enclosure import enclosure
from problems import EVERY_LOSS, EVERY_PENALTY, KINDS, instance, naive_objective, oracle, problems


def holds_a_minimiser(problem: ct.Problem, level: float) -> None:
    box = enclosure(problem, level)
    if box is None:
        return
    low, high = np.minimum(*box), np.maximum(*box)  # where there is no width, rounding may turn them round
    np.testing.assert_allclose(low, box[0], rtol=1e-10, atol=1e-10)
    best = oracle(problem)
    enough = best.value + 1e-6 * abs(best.value) + 1e-8 * (1 + problem.scale)  # the accuracy of the oracle
    if naive_objective(problem, np.clip(best.w, low, high)) > enough:  # these lie outside; are there others?
        assert oracle(problem, (low, high)).value <= enough


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_at_the_objective_of_the_optimum(loss: ct.Loss, penalty: ct.Penalty, kind: str) -> None:
    """The smallest box there is: nothing better than the oracle's weights is known."""
    problem = instance(kind, loss, penalty)
    holds_a_minimiser(problem, oracle(problem).value)


@settings(max_examples=80)
@given(problems(lam=st.sampled_from([1e-8, 1e-3, 0.1, 1.0])), st.sampled_from([1.0, 1.01, 2.0, 100.0]))
def test_on_any_problem(problem: ct.Problem, factor: float) -> None:
    holds_a_minimiser(problem, factor * oracle(problem).value)


def test_undetermined_nodes_are_held_at_zero() -> None:
    low, high = enclosure(instance("disconnected"), 10.0)
    assert not low[[10, 11]].any()
    assert not high[[10, 11]].any()


def test_a_lower_objective_gives_a_smaller_box() -> None:
    problem = instance("few labelled")
    low, high = enclosure(problem, problem.scale)
    low_near, high_near = enclosure(problem, oracle(problem).value)
    assert (low <= low_near).all()
    assert (high >= high_near).all()


def test_unlabelled_nodes_lie_in_the_hull_of_labelled_ones() -> None:
    problem = instance("few labelled")
    low, high = enclosure(problem, problem.scale)
    M = problem.M
    others = np.setdiff1d(np.arange(12), M)
    np.testing.assert_array_equal(low[others], np.tile(low[M].min(axis=0), (len(others), 1)))
    np.testing.assert_array_equal(high[others], np.tile(high[M].max(axis=0), (len(others), 1)))


def test_without_coupling_a_node_without_full_rank_is_not_bounded_by_others() -> None:
    problem = replace(instance("few points"), lam=0.0)
    holds_a_minimiser(problem, problem.scale)


def test_no_box_for_a_logistic_loss_without_ridge() -> None:
    assert enclosure(instance(loss=ct.Logistic()), 1.0) is None
