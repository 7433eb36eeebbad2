from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import coterie as ct
from coterie.problem.losses.base import LocalLosses
from coterie.solver import path as path_module
from coterie.solver.path import FIRST
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
    first = path.solutions[0].w
    assert np.ptp(first, axis=0).max() <= 1e-9 * np.abs(first).max()
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
    assert seen == list(reversed(list(path)))
    with pytest.warns(ct.NotConverged, match="iteration limit"):
        ct.solve_path(instance(penalty=ct.GroupTotalVariation()), [1e-3], tol=1e-14, max_iter=1)


def test_the_first_lam_is_solved_closer_and_within_tol_is_enough() -> None:
    problem = instance("few labelled", penalty=ct.GroupTotalVariation())
    closer, asked = ct.solve_path(problem, [1e-2, 1e-3], tol=0.1, engine="numpy").solutions[::-1]
    assert closer.gap <= FIRST < asked.gap <= 0.1
    ended = ct.solve_path(problem, [1e-2, 1e-3], tol=0.1, max_iter=20, engine="numpy").solutions[-1]  # and nobody warns
    assert FIRST < ended.gap <= 0.1
    assert ended.status is ct.Status.OPTIMAL


def test_a_lam_from_which_no_other_starts_is_solved_no_further_than_asked_from_a_start() -> None:
    problem = instance("few labelled", penalty=ct.GroupTotalVariation())
    start = ct.solve(replace(problem, lam=5e-3), 0.1, engine="numpy")
    for begin, closer in ((None, True), (start, False)):
        (alone,) = ct.solve_path(problem, [1e-2], tol=0.1, start=begin, engine="numpy").solutions
        assert (alone.gap <= FIRST) == closer


@pytest.mark.parametrize("where", ["start_at", "solve_closer"])
def test_ctrl_c_between_two_solves_ends_the_path_with_those_before(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done, usual = [], getattr(path_module, where)

    def pressed(*arguments: object, **options: object) -> object:
        done.append(where)
        if len(done) == 3:
            raise KeyboardInterrupt
        return usual(*arguments, **options)

    monkeypatch.setattr(path_module, where, pressed)
    path = ct.solve_path(instance(), n_lams=5, tol=1e-2, engine="numpy")
    assert len(path) == 2
    assert path.interrupted
    assert repr(path).endswith(", interrupted)")


def test_ctrl_c_before_anything_is_solved_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(path_module, "start_at", pressed)
    with pytest.raises(KeyboardInterrupt):
        ct.solve_path(instance(), n_lams=5, engine="numpy")


def test_after_zero_the_smallest_lam_is_solved_closer() -> None:
    problem = instance("few labelled", penalty=ct.GroupTotalVariation())
    path = ct.solve_path(problem, [1e-2, 1e-3, 0.0], tol=0.1, engine="numpy")
    assert path.solutions[1].gap <= FIRST < path.solutions[0].gap


def test_columns_of_other_strengths_are_stated_once_for_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = instance("few labelled")
    problem = replace(problem, strength=np.arange(1.0, problem.n_features + 1))
    kind, stated = type(problem.f), 0
    in_columns = kind.in_columns

    def counted(f: LocalLosses, t: np.ndarray) -> LocalLosses | None:
        nonlocal stated
        stated += 1
        return in_columns(f, t)

    monkeypatch.setattr(kind, "in_columns", counted)
    assert len(ct.solve_path(problem, n_lams=12, tol=1e-3, engine="numpy")) == 12
    assert stated == 1


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
