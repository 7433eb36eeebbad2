"""Where a solve begins and ends: limits, interruptions, warm starts, and what it says then."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event

import coterie as ct
from coterie.engines.arrays import ArrayProver
from coterie.engines.numpy import NumpyEngine
from coterie.kernels import compiling  # noqa: F401  which keeps the time
from coterie.kernels.interruption import TimeUp
from coterie.problem import BoundProblem
from coterie.problem.losses import quadratic
from problems import EVERY_PENALTY, instance, oracle, outside_domain

HARD = 1e-15  # a tolerance that takes more than a few iterations

engines = pytest.mark.parametrize("engine", ["numba", "numpy"])


def hard() -> ct.Problem:
    return instance("few labelled", penalty=ct.GroupTotalVariation(), lam=1e-3)


def check_answer(problem: ct.Problem, solution: ct.Solution) -> None:
    """Whatever the status: a feasible dual, and a bound that can be computed again and is true."""
    best = oracle(problem).value
    slack = 1e-10 * problem.constant_loss
    assert solution.dual_bound <= best + slack
    assert best <= solution.objective + slack
    again = ct.certify(problem, solution.w, solution.u)
    assert again.objective == pytest.approx(solution.objective, rel=1e-13)
    assert solution.dual_bound - 1e-9 * abs(solution.objective) <= again.dual_bound <= best + slack
    assert outside_domain(problem, solution.u) <= 1e-14 * problem.c.max()


@engines
def test_a_limit_on_iterations_gives_a_warning_that_names_the_gap(engine: str) -> None:
    problem = hard()
    with pytest.warns(ct.NotConverged, match=r"Certified gap: \d\.\d\de[+-]\d\d, asked for: 1\.00e-15") as caught:
        solution = ct.solve(problem, HARD, max_iter=40, engine=engine)
    assert f"{solution.gap:.2e}" in str(caught[0].message)
    assert solution.status is ct.Status.ITERATION_LIMIT
    assert solution.gap > HARD
    check_answer(problem, solution)


def test_a_limit_that_is_over_before_there_is_a_prover() -> None:
    """As where the directions that rows see take an SVD of every node."""

    class Late(NumpyEngine):
        def prover(self, problem: BoundProblem) -> ArrayProver:
            raise TimeUp

    problem = hard()
    with pytest.warns(ct.NotConverged, match="The time limit was reached"):
        solution = ct.solve(problem, HARD, engine=Late())
    assert solution.status is ct.Status.TIME_LIMIT
    assert solution.gap == solution.history[0].gap == 1
    check_answer(problem, solution)


@pytest.mark.parametrize("loss", [ct.SquaredError(ridge=0.1), ct.Lasso(alpha=0.1), ct.SquaredError(lower=0.0)])
def test_a_limit_ends_the_svds_of_a_loss_too(monkeypatch: pytest.MonkeyPatch, loss: ct.Loss) -> None:
    def late(X: np.ndarray) -> None:
        raise TimeUp

    problem = instance("few labelled", loss=loss)
    monkeypatch.setattr(quadratic, "thin_svd", late)
    with pytest.warns(ct.NotConverged, match="The time limit was reached"):
        solution = ct.solve(problem)
    assert solution.n_iter == solution.dual_bound == 0
    assert solution.objective == problem.objective(np.zeros_like(solution.w))


def test_the_time_counts_from_the_call_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binding the loss to its rows is part of a solve."""
    problem, bind = hard(), ct.SquaredError.bind
    monkeypatch.setattr(ct.SquaredError, "bind", lambda *rows: time.sleep(0.2) or bind(*rows))
    with pytest.warns(ct.NotConverged, match="The time limit was reached"):
        assert ct.solve(problem, HARD, time_limit=0.1).n_iter == 0


@engines
@pytest.mark.parametrize("max_iter", [0, 1, 19, 20, 33])
def test_no_iteration_more_than_allowed(max_iter: int, engine: str) -> None:
    problem = hard()
    with pytest.warns(ct.NotConverged, match="The iteration limit was reached"):
        solution = ct.solve(problem, HARD, max_iter=max_iter, engine=engine)
    assert solution.n_iter == max_iter
    assert solution.status is ct.Status.ITERATION_LIMIT
    check_answer(problem, solution)


@engines
def test_a_limit_on_time(engine: str) -> None:
    problem = hard()
    with pytest.warns(ct.NotConverged, match="The time limit was reached"):
        solution = ct.solve(problem, HARD, time_limit=0.0, engine=engine)
    assert solution.status is ct.Status.TIME_LIMIT
    check_answer(problem, solution)


@pytest.mark.parametrize("engine", ["numpy", "auto"])
def test_compiling_on_the_way_does_not_count(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock by which every kernel takes a hundred seconds to compile, in a solve that may take fifty."""
    now, late = time.perf_counter, [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now() + late[0])

    class SlowCompiler(event.Listener):
        def on_start(self, event: event.Event) -> None:
            late[0] += 100.0

        def on_end(self, event: event.Event) -> None:
            pass

    def compile_something(record: ct.Record) -> None:
        assert numba.njit(lambda x: x + 1.0)(1.0) == 2.0

    with event.install_listener("numba:compile", SlowCompiler()):
        solution = ct.solve(hard(), 1e-9, time_limit=50.0, callback=compile_something, engine=engine)
    assert late[0] > 100.0
    assert solution.status is ct.Status.OPTIMAL


@engines
def test_a_tolerance_below_rounding(engine: str) -> None:
    problem = instance("all labelled")
    with pytest.warns(ct.NotConverged, match="Rounding errors keep the gap from falling further"):
        solution = ct.solve(problem, 0.0, engine=engine)
    assert solution.status is ct.Status.STALLED
    assert solution.gap < 1e-12
    check_answer(problem, solution)


@engines
def test_records_only_get_better(engine: str) -> None:
    records: list[ct.Record] = []
    solution = ct.solve(hard(), 1e-10, callback=records.append, engine=engine)
    assert len(records) > 2
    assert records == list(solution.history[-len(records) :])
    for a, b in pairwise(solution.history):
        assert a.n_iter < b.n_iter
        assert a.seconds <= b.seconds
        assert a.objective >= b.objective
        assert a.dual_bound <= b.dual_bound
        assert a.gap >= b.gap
    assert records[-1].dual_bound == solution.dual_bound
    assert solution.gap <= max(1e-10, records[-1].gap)  # equal but for clusters that were made exactly equal


@engines
@pytest.mark.parametrize("at", [1, 3])
def test_interrupted_by_the_user(at: int, engine: str) -> None:
    problem, seen = hard(), []

    def press_ctrl_c(record: ct.Record) -> None:
        seen.append(record)
        if len(seen) == at:
            raise KeyboardInterrupt

    with pytest.warns(ct.NotConverged, match="The solve was interrupted"):
        solution = ct.solve(problem, HARD, callback=press_ctrl_c, engine=engine)
    assert solution.status is ct.Status.INTERRUPTED
    assert solution.n_iter == seen[-1].n_iter > 0
    assert solution.gap <= seen[-1].gap
    check_answer(problem, solution)


def test_interrupted_between_two_looks() -> None:
    """Ctrl-C hits the engine in the middle of its work: its last whole block counts."""
    from coterie.engines.numpy import NumpyEngine

    class Interrupted(NumpyEngine):
        calls = 0

        def advance(self, *arguments: Any) -> float:
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt
            return super().advance(*arguments)

    problem = hard()
    with pytest.warns(ct.NotConverged, match="The solve was interrupted"):
        solution = ct.solve(problem, HARD, engine=Interrupted())
    assert solution.n_iter == 40
    check_answer(problem, solution)


def test_other_errors_of_the_callback_are_not_swallowed() -> None:
    def broken(record: ct.Record) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ct.solve(instance(), 1e-12, callback=broken)


@engines
@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
def test_a_warm_start_saves_iterations(penalty: ct.Penalty, engine: str) -> None:
    problem = instance("few labelled", penalty=penalty, lam=1e-2)
    cold = ct.solve(problem, 1e-8, engine=engine)
    assert ct.solve(problem, 1e-7, start=cold, engine=engine).n_iter == 0
    near = replace(problem, lam=1.001e-2)
    warm = ct.solve(near, 1e-6, start=cold, engine=engine)
    assert warm.n_iter <= ct.solve(near, 1e-6, engine=engine).n_iter
    check_answer(near, warm)


@pytest.mark.parametrize("kind", ["disconnected", "isolated nodes"])
def test_a_start_of_another_problem_on_the_same_graph(kind: str) -> None:
    """Weights that the start has where nothing is known are forgotten, and duals that are too large cut down."""
    problem = instance(kind, lam=1e-2)
    start = ct.solve(problem, 1e-2)
    start = replace(start, w=start.w + 5.0, u=start.u + 3.0)
    solution = ct.solve(problem, 1e-6, start=start)
    np.testing.assert_array_equal(solution.w[problem.undetermined], 0.0)
    check_answer(problem, solution)


def test_a_start_is_not_changed() -> None:
    problem = instance("few labelled")
    start = ct.solve(problem, 1e-2)
    w, u = start.w.copy(), start.u.copy()
    ct.solve(problem, 1e-8, start=start)
    np.testing.assert_array_equal(start.w, w)
    np.testing.assert_array_equal(start.u, u)


@pytest.mark.parametrize("name", ["w", "u"])
def test_a_start_on_another_graph_is_refused(name: str) -> None:
    problem = instance()
    start = ct.solve(problem, 1e-2)
    start = replace(start, **{name: getattr(start, name)[1:]})
    with pytest.raises(ValueError, match=rf"{name} must have shape \(\d+, 3\)"):
        ct.solve(problem, start=start)
