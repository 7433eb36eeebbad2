"""Means of two solutions between their λ: a start that proves itself, and the order that makes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coterie as ct
from coterie.solver.balance import Steps
from coterie.solver.strides import balance_of, in_strides, start_at
from problems import EVERY_PENALTY, FIRST_LOSSES, instance


@pytest.mark.parametrize("n", [0, 1, 2, 5, 9, 30])
def test_every_number_comes_once_after_those_it_starts_from(n: int) -> None:
    seen: list[int] = []
    for k, near in in_strides(np.geomspace(1.0, 0.1, n)):
        assert set(near) <= set(seen)
        assert (near == ()) == (k == n - 1)
        assert len(near) != 1 or k < near[0]
        assert len(near) < 2 or near[0] < k < near[1]
        seen.append(k)
    assert sorted(seen) == list(range(n))


def test_lams_that_are_far_apart_come_one_after_the_other() -> None:
    assert list(in_strides([1.0, 0.1, 0.01, 0.0])) == [(3, ()), (2, (3,)), (1, (2,)), (0, (1,))]


def test_those_in_between_come_from_the_smallest_up() -> None:
    lams = np.geomspace(1.9, 1.0, 5)
    assert list(in_strides(lams)) == [(4, ()), (0, (4,)), (2, (0, 4)), (3, (2, 4)), (1, (0, 2))]


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_means_of_duals_prove_the_chord(loss: ct.Loss, penalty: ct.Penalty) -> None:
    problem = instance("few labelled", loss, penalty)
    lams = (1e-2, 2e-3)
    ends = [(lam, ct.solve(replace(problem, lam=lam), 1e-4, engine="numpy")) for lam in lams]
    lam = 5e-3
    start = start_at(replace(problem, lam=lam).bound, ends, None, 1e-3)
    proof = ct.certify(replace(problem, lam=lam), start.w, start.u)
    chord = np.interp(lam, sorted(lams), [ends[1][1].dual_bound, ends[0][1].dual_bound])
    assert proof.dual_bound >= chord - 1e-4 * abs(chord) or not proof.unconditional


def test_a_start_without_two_around_it() -> None:
    problem = instance().bound
    one = ct.solve(problem.at(1e-3), engine="numpy")
    assert start_at(problem.at(0.05), [], None, 1e-3) is None
    assert start_at(problem.at(0.05), [], one, 1e-3) is one
    start = start_at(problem.at(2e-3), [(1e-3, one)], None, 1e-3)
    assert start.w is one.w
    assert start.u is one.u
    assert start_at(problem.at(1e-3), [(1e-3, one), (1e-3, one)], None, 1e-3).w is one.w
    assert start_at(problem.at(0.1), [(0.0, one)], None, 1e-3) is None


def test_the_balance_of_two_solutions_is_where_steps_stay_balanced() -> None:
    problem = instance("few labelled").bound
    one, other = (ct.solve(problem.at(lam), engine="numpy") for lam in (2e-3, 1e-3))
    steps = Steps.of(problem.at(2e-3))
    steps.eta, steps.omega = 1.0, balance_of(problem, [one, other])
    primal, dual = ((one.w - other.w) ** 2).sum(axis=1), ((one.u - other.u) ** 2).sum(axis=1)
    assert (primal / steps.tau).sum() == pytest.approx((dual / steps.sigma).sum())


def test_one_solution_or_two_that_are_the_same_tell_no_balance() -> None:
    problem = instance().bound
    one = ct.solve(problem, engine="numpy")
    assert balance_of(problem, []) is None
    assert balance_of(problem, [one]) is None
    assert balance_of(problem, [one, one]) is None


def test_from_the_largest_useful_lam_on_one_model_is_where_to_start() -> None:
    problem = instance("few labelled").bound
    one = ct.solve(problem.at(1e-3), engine="numpy")
    start = start_at(problem.at(ct.largest_useful_lam(problem)), [(1e-3, one)], None, 1e-3)
    assert np.ptp(start.w, axis=0).max() == 0


def test_most_of_a_fine_path_takes_no_iterations() -> None:
    problem = instance("few labelled")
    path = ct.solve_path(problem, np.geomspace(0.02, 0.01, 9), tol=1e-3, engine="numpy")
    assert sum(solution.n_iter == 0 for solution in path.solutions) > 3
    for lam, solution in list(path)[::3]:
        assert solution.status is ct.Status.OPTIMAL
        proof = ct.certify(replace(problem, lam=lam), solution.w, solution.u)
        assert proof.objective - proof.dual_bound <= 1.01e-3 * proof.objective


def test_what_is_certified_at_the_start_has_clusters_as_well() -> None:
    problem = instance("few labelled")
    path = ct.solve_path(problem, np.geomspace(0.02, 0.01, 9), tol=1e-3, engine="numpy")
    coarse, fine = len(path.solutions[0].clusters()), len(path.solutions[-1].clusters())
    assert all(len(solution.clusters()) <= max(coarse, fine) + 1 for solution in path.solutions)


def test_progress_is_told_in_order() -> None:
    told: list[float] = []
    path = ct.solve_path(instance(), n_lams=7, tol=1e-2, engine="numpy", progress=lambda lam, _: told.append(lam))
    assert told == list(reversed(path.lams))
