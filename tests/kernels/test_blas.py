"""BLAS is held to one thread while a solve lasts, and no longer."""

import threading
from dataclasses import replace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import coterie as ct
from coterie.kernels.blas import one_thread
from coterie.solver.certificate import Certifier
from problems import instance


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def threads():
    """The numbers of threads of all BLAS libraries that have any (SCS brings one that has not)."""
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return {library["num_threads"] for library in libraries if library.get("threading_layer") != "disabled"}


def test_one_thread_inside_a_solve_and_as_many_as_before_afterwards():
    seen = []
    assert threads() == {2}
    ct.solve(instance("few labelled", lam=1e-3), 1e-10, callback=lambda record: seen.append(threads()))
    assert seen
    assert all(inside == {1} for inside in seen)
    assert threads() == {2}


def test_one_thread_while_losses_are_bound():
    class Watched(ct.SquaredError):
        def bind(self, rows):
            seen.append(threads())
            return super().bind(rows)

    seen = []
    problem = instance()
    assert replace(problem, loss=Watched()).bound
    assert seen == [{1}]
    assert threads() == {2}


def test_one_thread_inside_a_certificate(monkeypatch):
    seen, problem = [], instance()
    solution = ct.solve(problem)
    prove = Certifier.__call__
    watched = lambda *args, **how: seen.append(threads()) or prove(*args, **how)  # noqa: E731
    monkeypatch.setattr(Certifier, "__call__", watched)
    ct.certify(problem, solution.w, solution.u)
    assert seen == [{1}]
    assert threads() == {2}


def test_set_back_after_an_error():
    def broken(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ct.solve(instance(), 1e-12, callback=broken)
    assert threads() == {2}


def test_blocks_inside_each_other_and_in_another_thread():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_thread():
            entered.set()
            leave.wait()

    helper = threading.Thread(target=other)
    with one_thread():
        with one_thread():
            assert threads() == {1}
        assert threads() == {1}
        helper.start()
        entered.wait()
    leave.set()
    helper.join()
    assert threads() == {2}
