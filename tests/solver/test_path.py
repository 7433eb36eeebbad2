from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import coterie as ct
from problems import EVERY_PENALTY, FIRST_LOSSES, instance, oracle

CUTTING = [ct.TotalVariation(), ct.GroupTotalVariation()]


@pytest.mark.slow
@pytest.mark.parametrize("penalty", CUTTING, ids=repr)
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
def test_it_agrees_with_cold_solves(loss: ct.Loss, penalty: ct.Penalty) -> None:
    problem = instance("few labelled", loss, penalty)
    path = ct.solve_path(problem, n_lams=8)
    assert len(path) == len(path.lams) == len(path.solutions) == 8
    for lam, solution in path:
        cold = ct.solve(replace(problem, lam=lam), 1e-6)
        assert solution.status is ct.Status.OPTIMAL
        assert solution.objective == pytest.approx(cold.objective, rel=2e-6)


def test_it_begins_where_everything_is_equal_and_goes_down_evenly() -> None:
    problem = instance("few labelled")
    path = ct.solve_path(problem, n_lams=5, smallest=1e-2)
    largest = ct.largest_useful_lam(problem)
    assert path.lams == pytest.approx([largest * 10 ** (-k / 2) for k in range(5)])
    assert len(path.solutions[0].clusters()) == 1
    assert len(path.solutions[-1].clusters()) > 1
    losses = [problem.f.value(s.w[problem.M]).sum() for s in path.solutions]
    assert all(a >= b * (1 - 1e-6) for a, b in pairwise(losses))


def test_starts_are_warm() -> None:
    problem = instance("few labelled", penalty=ct.GroupTotalVariation())
    lams = np.geomspace(0.05, 0.04, 12)
    warm = sum(s.n_iter for _, s in ct.solve_path(problem, lams, tol=1e-8))
    cold = sum(ct.solve(replace(problem, lam=lam), 1e-8).n_iter for lam in lams)
    assert warm <= cold


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_lams_of_the_users_own(penalty: ct.Penalty) -> None:
    problem = instance("few labelled", penalty=penalty)
    path = ct.solve_path(problem, [1e-3, 1.0, 0.0, 1e-2], tol=1e-7)
    assert path.lams == (1.0, 1e-2, 1e-3, 0.0)
    for lam, solution in path:
        best = oracle(replace(problem, lam=lam)).value
        assert solution.objective <= best * (1 + 1e-7) + 1e-11 * problem.constant_loss


def test_progress_and_options_of_solve() -> None:
    seen: list[tuple[float, ct.Solution]] = []
    path = ct.solve_path(instance(), n_lams=3, tol=1e-4, engine="numpy", progress=lambda lam, s: seen.append((lam, s)))
    assert seen == list(path)
    with pytest.warns(ct.NotConverged, match="iteration limit"):
        ct.solve_path(instance(penalty=ct.GroupTotalVariation()), [1e-3], tol=1e-14, max_iter=1)


def test_squared_variation_goes_from_nearly_equal_to_nearly_alone() -> None:
    problem = instance(penalty=ct.SquaredVariation())
    path = ct.solve_path(problem, n_lams=4)
    assert path.lams[-1] == pytest.approx(1e-6 * path.lams[0])
    first = path.solutions[0].w
    assert np.ptp(first, axis=0).max() < 0.05 * np.abs(first).max()
    alone = ct.solve(replace(problem, lam=0.0)).w
    equal, last, least = (problem.f.value(w[problem.M]).sum() for w in (first, path.solutions[-1].w, alone))
    assert last - least < 0.02 * (equal - least)


@pytest.mark.parametrize("options", [{"n_lams": 0}, {"n_lams": -2}, {"smallest": 0.0}, {"smallest": 1.5}], ids=str)
def test_what_makes_no_sense_is_refused(options: dict) -> None:
    with pytest.raises(ValueError, match=r"n_lams must be at least 1 and smallest in \(0, 1\]"):
        ct.solve_path(instance(), **options)


def test_a_negative_lam_is_refused() -> None:
    with pytest.raises(ValueError, match="lams must be a sequence of finite numbers ≥ 0"):
        ct.solve_path(instance(), [-1.0])


def test_nothing_pulls() -> None:
    data = ct.LocalDatasets.from_rows(np.ones((1, 1)), [1.0], [0], n_nodes=2)
    path = ct.solve_path(ct.Problem(ct.EmpiricalGraph.from_edges([[0, 1]]), data))
    assert path.lams == (0.0,)
