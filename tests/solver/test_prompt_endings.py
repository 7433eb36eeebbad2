"""Ctrl-C and time limits where they hurt: in processes of their own, in the middle of inner solves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np
import pytest

import coterie as ct
from coterie.engines import arrays
from coterie.kernels.interruption import (
    TimeUp,
    allow,
    aside,
    check,
    check_with_grace,
    interruptible,
    pieces,
    time_is_up,
)
from coterie.proofs.ellipsoids import Ellipsoids
from coterie.solver import reasons
from coterie.solver.certificate import Certificate, Certifier
from coterie.solver.whole import joint_system
from problems import instance

SLACK = 0.5  # seconds that a limit or Ctrl-C may take to be noticed …
BUSY = 30.0  # … and what a machine busy with other work may add; the solve itself would take far longer

SOLVE = """
import sys, time, warnings
import numpy as np
import coterie as ct

warnings.simplefilter("ignore")
rng, n, V, m = np.random.default_rng(0), 300, 6, 200
X = rng.standard_normal((V * m, n))
y, loss = X[:, :5].sum(axis=1) + rng.standard_normal(V * m), ct.Lasso(0.05)
if sys.argv[1] == "logistic":
    y, loss = (y > 0).astype(float), ct.Logistic(ridge=1e-3)
data = ct.LocalDatasets.from_rows(X, y, np.repeat(np.arange(V), m))
problem = ct.Problem(ct.EmpiricalGraph.from_edges([(i, (i + 1) % V) for i in range(V)]), data, loss=loss, lam=0.01)
ct.solve(problem, 0.5, max_iter=20)  # all is compiled
for limit in (0.3, 1.0, None):
    print("begin", flush=True)
    began = time.process_time()
    solution = ct.solve(problem, 0.0, time_limit=limit)
    print("end", solution.status.name, solution.gap, time.process_time() - began, flush=True)
time.sleep(1.0)  # Ctrl-C is Python's again
print("slept", flush=True)
"""


@contextmanager
def started(loss: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A process that solves thrice, and what it prints."""
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, "-c", SOLVE, loss], **quiet) as process:
        try:
            yield process, process.stdout
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["lasso", "logistic"])
def test_limits_hold_and_ctrl_c_keeps_the_best_answer_and_gives_the_handler_back(loss: str) -> None:
    """Inside inner solves, and in the last certificate."""
    with started(loss) as (process, printed):
        for limit in (0.3, 1.0):
            assert printed.readline() == "begin\n"
            _, status, gap, seconds = printed.readline().split()
            assert status == "TIME_LIMIT"
            assert float(gap) > 0
            assert float(seconds) <= os.cpu_count() * (limit + SLACK)  # of work: others may keep the machine busy
        assert printed.readline() == "begin\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        word, status, gap, _ = printed.readline().split()
        assert time.perf_counter() - sent <= SLACK + BUSY
        assert (word, status) == ("end", "INTERRUPTED")
        assert 0 < float(gap) <= 1
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) != 0
        assert printed.read() == ""


def test_ctrl_c_is_noticed_at_the_next_check_and_no_sooner() -> None:
    with interruptible():
        signal.raise_signal(signal.SIGINT)
        done = True  # whatever runs now is not interrupted
        with pytest.raises(KeyboardInterrupt):
            time_is_up()
        check()  # it was noticed once
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_certify_waits_for_a_check_too(monkeypatch: pytest.MonkeyPatch) -> None:
    prove, going_on = Certifier.__call__, []

    def pressed(self: Certifier, *point: np.ndarray) -> Certificate:
        signal.raise_signal(signal.SIGINT)
        going_on.append(True)
        return prove(self, *point)

    problem = instance("few labelled")
    w, u = np.zeros((problem.graph.n_nodes, problem.n_features)), np.zeros((problem.graph.n_edges, problem.n_features))
    monkeypatch.setattr(Certifier, "__call__", pressed)
    with pytest.raises(KeyboardInterrupt):
        ct.certify(problem, w, u)
    assert going_on
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_does_not_wait() -> None:
    with interruptible():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        check()


def test_ctrl_c_after_the_last_check_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_blocks_inside_each_other() -> None:
    with interruptible():
        allow(0.0)
        with interruptible():
            with pytest.raises(TimeUp):
                check()
            allow(np.inf)
            check()
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                check()
        assert time_is_up()
    assert not time_is_up()


def test_a_handler_of_the_program_is_left_alone() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
            check()
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_limits_hold_in_other_threads_too() -> None:
    """Where signals do not arrive, and handlers cannot be set."""
    statuses = []

    def work() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statuses.append(ct.solve(problem, 0.0, time_limit=0.0).status)

    X = np.random.default_rng(0).standard_normal((12, 2))
    data = ct.LocalDatasets.from_rows(X, X.sum(axis=1) + X[:, 0] ** 2, np.repeat(np.arange(4), 3))
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)]), data, lam=0.1)
    helper = threading.Thread(target=work)
    helper.start()
    helper.join()
    assert statuses == [ct.Status.TIME_LIMIT]


def test_pieces_are_checked_between_and_cover_everything() -> None:
    assert list(pieces(10, 1)) == [(0, 10)]
    assert list(pieces(0, 5)) == []
    ranges = list(pieces(7, 20_000_000))
    assert ranges == [(0, 2), (2, 4), (4, 6), (6, 7)]
    with interruptible():
        allow(0.0)
        parts = pieces(7, 20_000_000)
        assert next(parts) == (0, 2)  # what takes no time is done all the same
        with pytest.raises(TimeUp):
            next(parts)


class Long:
    """A call that takes as long as one likes, but no longer than a minute."""

    def __init__(self) -> None:
        self.end, self.ended = threading.Event(), False

    def __call__(self, *arguments: object, **options: object) -> None:
        self.end.wait(60.0)
        self.ended = True


def test_a_long_call_is_left_aside_when_the_time_is_up() -> None:
    assert aside(lambda: 3, 10**6) == 3
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 // 0, 10**6)
    call = Long()
    with interruptible():
        allow(0.1)
        with pytest.raises(TimeUp):
            aside(call, 10**6)
    assert not call.ended
    call.end.set()


def test_what_is_nearly_done_has_a_little_grace() -> None:
    with interruptible():
        allow(-0.01)
        check_with_grace()
        allow(-10.0)
        with pytest.raises(TimeUp):
            check_with_grace()


def tough(rows: int = 6) -> ct.Problem:
    """Collinear columns, which second-order steps are for."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20 * rows, 5))
    X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    data = ct.LocalDatasets.from_rows(X, X[:, 2] ** 2 + rng.standard_normal(len(X)), np.repeat(np.arange(20), rows))
    ring = ct.EmpiricalGraph.from_edges([(i, (i + 1) % 20) for i in range(20)])
    return ct.Problem(ring, data, lam=0.05)


def test_a_factorisation_that_takes_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Long()
    monkeypatch.setattr(joint_system, "splu", slow)
    monkeypatch.setattr("coterie.kernels.interruption.FEW", 0)
    with pytest.warns(ct.NotConverged):
        solution = ct.solve(tough(), 1e-14, time_limit=1.0)
    assert not slow.ended
    slow.end.set()
    assert solution.status is ct.Status.TIME_LIMIT
    assert solution.n_iter >= 200


def test_a_certificate_that_takes_too_long_is_dropped_and_the_best_one_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is long over when the second certificate begins: the first one counts."""
    monkeypatch.setattr(arrays, "QUICK", 0)
    seen: list[ct.Record] = []

    def dawdle(record: ct.Record) -> None:
        seen.append(record)
        allow(-10.0)

    problem = instance("few labelled", penalty=ct.GroupTotalVariation(), lam=1e-3)
    with pytest.warns(ct.NotConverged, match="The time limit was reached"):
        solution = ct.solve(problem, 1e-15, callback=dawdle)
    assert len(seen) == 1
    assert solution.dual_bound == seen[0].dual_bound
    assert solution.status is ct.Status.TIME_LIMIT


def test_nobody_waits_for_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a limit, columns are named, or classes called separable, only if that is known in a moment."""

    def slow(self: object) -> None:
        raise TimeUp

    monkeypatch.setattr(reasons.Enclosure, "open_columns", slow)
    problem = instance("few labelled", loss=ct.Logistic())
    with pytest.warns(ct.NotConverged) as caught:
        ct.solve(problem, 1e-15, time_limit=0.0)
    assert "separated" not in str(caught[0].message)
    assert "ollinear" not in str(caught[0].message)


def test_groups_with_fewer_rows_than_columns_are_known_nowhere() -> None:
    """Neither caps nor shifts help there, and no n × n matrix is made to find out."""
    rng = np.random.default_rng(0)
    data = ct.LocalDatasets.from_rows(rng.standard_normal((6, 4)), rng.standard_normal(6), [0, 0, 0, 0, 0, 1])
    design = ct.Problem(ct.EmpiricalGraph.from_edges([(0, 1)]), data).f.design
    none = np.zeros(4, dtype=bool)
    sets = Ellipsoids.of(design, np.arange(2), 2, none, False)
    assert sets.resolved.tolist() == [True, False]
    assert sets.floors[1] == 0
    assert np.isinf(sets.radius(np.ones(2), np.zeros(2), np.zeros(4))[1])
    assert Ellipsoids.of(design, np.zeros(2, dtype=np.int64), 1, none, True).resolved.tolist() == [True]
    with interruptible():
        allow(0.0)
        assert Ellipsoids.unknown(design, np.arange(2), 2).resolved.tolist() == [False, False]


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Logistic()], ids=repr)
def test_nodes_without_neighbours_may_take_longer_than_there_is_time(loss: ct.Loss) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40 * 300, 40))
    y = X[:, 0] + rng.standard_normal(len(X))
    data = ct.LocalDatasets.from_rows(X, y > 0 if isinstance(loss, ct.Logistic) else y, np.repeat(np.arange(40), 300))
    problem = ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=40), data, loss, lam=0.0)
    with pytest.warns(ct.NotConverged):
        solution = ct.solve(problem, time_limit=0)
    assert solution.status in (ct.Status.TIME_LIMIT, ct.Status.CONDITIONAL)
    assert solution.dual_bound <= solution.objective
