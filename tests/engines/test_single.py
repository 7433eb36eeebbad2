"""Iterations in single precision: as good as their digits, and only where these are enough."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from test_engines import EQUAL, WEIGHTED, agree, begin

import coterie as ct
from coterie.engines.base import Mode
from coterie.engines.numba import NumbaEngine
from coterie.engines.single import SingleEngine
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.solver import driver
from problems import instance

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engines that solves set up."""
    names, setup = [], NumbaEngine.setup
    monkeypatch.setattr(
        NumbaEngine, "setup", lambda self, *args: (names.append(type(self).__name__), setup(self, *args))[1]
    )
    return names


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("kind", "penalty", "mode"),
    [("weighted edges", *one) for one in WEIGHTED] + [("few labelled", *one) for one in EQUAL],
    ids=str,
)
def test_two_epochs(threads: int, kind: str, penalty: ct.Penalty, mode: Mode) -> None:
    engine, naive = begin(partial(SingleEngine, threads=threads), instance(kind, penalty=penalty))
    for n_iter in (1, 4):
        assert engine.advance(n_iter, mode) == pytest.approx(naive.advance(n_iter, mode), rel=1e-4)
        agree(engine, naive, CLOSE)
        assert tuple(engine.restart()) == pytest.approx(naive.restart(), rel=1e-4)
        agree(engine, naive, CLOSE)


@pytest.mark.parametrize("n", [4, 5, 9])
def test_columns_of_zeros_stay_zero(n: int) -> None:
    rng = np.random.default_rng(n)
    edges = np.stack([np.arange(19), np.arange(1, 20)], axis=1)
    data = ct.LocalDatasets.from_rows(
        rng.standard_normal((40, n)), rng.standard_normal(40), np.repeat(np.arange(20), 2)
    )
    engine, naive = begin(partial(SingleEngine, threads=1), ct.Problem(ct.EmpiricalGraph.from_edges(edges), data))
    engine.advance(5, Mode.RELAXED)
    naive.advance(5, Mode.RELAXED)
    agree(engine, naive, CLOSE)
    assert engine.w.shape[1] == {4: 4, 5: 8, 9: 9}[n]
    assert not engine.w[:, n:].any()
    assert not engine.u[:, n:].any()


def many_classes(n: int, K: int, size: float = 1.0) -> ct.Problem:
    """Two rows at each of 20 nodes, one column of another size."""
    rng = np.random.default_rng(n)
    edges = np.stack([np.arange(19), np.arange(1, 20)], axis=1)
    X = rng.standard_normal((40, n))
    X[:, 0] *= size
    data = ct.LocalDatasets.from_rows(X, np.arange(40) % K * 1.0, np.repeat(np.arange(20), 2))
    return ct.Problem(ct.EmpiricalGraph.from_edges(edges), data, ct.Multinomial(K, ridge=0.02), lam=0.1)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("n", "K"), [(5, 3), (4, 4), (4, 3), (10, 3), (6, 4), (9, 5)])
@pytest.mark.parametrize("mode", [Mode.RELAXED, Mode.HALPERN])
def test_thin_models(threads: int, n: int, K: int, mode: Mode) -> None:
    problem = many_classes(n, K)
    with using(Form.THIS_N):
        assert SingleEngine.suits(problem.bound)
        engine, double = (begin(partial(one, threads=threads), problem)[0] for one in (SingleEngine, NumbaEngine))
        for n_iter in (1, 4, 5):
            assert engine.advance(n_iter, mode) == pytest.approx(double.advance(n_iter, mode), rel=1e-3)
            for here, there in zip(engine.point(), double.point(), strict=True):
                np.testing.assert_allclose(here, there, **CLOSE)
            assert tuple(engine.restart()) == pytest.approx(double.restart(), rel=1e-3)
    assert engine.w.shape[1] == {12: 16, 15: 16, 16: 16, 24: 24, 30: 32, 45: 48}[n * K]
    assert not engine.w[:, n * K :].any()
    assert not engine.u[:, n * K :].any()


@pytest.mark.parametrize(("size", "engines"), [(1.0, ["SingleEngine"]), (1e4, ["SingleEngine", "NumbaEngine"])])
def test_tight_gaps_of_many_classes_are_reached_in_single_precision_unless_they_are_stiff(
    size: float, engines: list[str], used: list[str]
) -> None:
    solution = ct.solve(many_classes(5, 3, size), 1e-6, engine="numba")
    assert list(dict.fromkeys(used)) == engines
    assert solution.gap <= 1e-6
    assert solution.unconditional
    used.clear()
    assert solution.objective == pytest.approx(
        ct.solve(many_classes(5, 3, size), 1e-6, engine="numpy").objective, rel=2e-6
    )
    assert not used


def test_primal_updates_are_exact_where_models_do_not_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = many_classes(5, 3)
    with using(Form.THIS_N):
        engine, double = (begin(partial(one, threads=1), problem)[0] for one in (SingleEngine, NumbaEngine))
        for one in (engine, double):
            one.models.patience = 0
            one.advance(5, Mode.RELAXED)
        assert engine.models is None
        for here, there in zip(engine.point(), double.point(), strict=True):
            np.testing.assert_allclose(here, there, **CLOSE)


def test_loose_gaps_are_reached_in_single_precision_and_others_in_double(used: list[str]) -> None:
    problem = instance("few points")
    loose, tight = (ct.solve(problem, tol, engine="numba") for tol in (1e-4, 1e-6))
    assert used == ["SingleEngine", "NumbaEngine"]
    assert loose.gap <= 1e-4
    assert loose.unconditional
    assert loose.w.dtype == loose.u.dtype == np.float64
    assert loose.objective == pytest.approx(tight.objective, rel=1e-4)


def test_a_solve_goes_on_in_double_precision_where_single_is_too_rough(
    used: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "ROUGH", np.inf)
    monkeypatch.setattr(driver.Run, "_look_if_due", _late(driver.Run._look_if_due))
    assert ct.solve(instance("few points"), 1e-4, engine="numba").gap <= 1e-4
    assert used == ["SingleEngine", "NumbaEngine"]


def _late(look):
    return lambda self, residual: look(self, residual) if self.engine is self.plain else None


@pytest.mark.parametrize("what", ["dual steps", "large weights", "weak edges", "two columns", "other losses"])
def test_what_it_does_not_suit(what: str, used: list[str]) -> None:
    rng = np.random.default_rng(0)
    n, graph = 2 if what == "two columns" else 3, instance("few points").graph
    rows = np.tile(np.eye(n), (12, 1)) if what == "dual steps" else rng.standard_normal((24, n))
    y = rng.standard_normal(len(rows)) * (1e13 if what == "large weights" else 1.0)
    data = ct.LocalDatasets.from_rows(rows, y, np.repeat(np.arange(12), len(rows) // 12))
    loss = ct.Huber() if what == "other losses" else ct.SquaredError()
    problem = ct.Problem(graph, data, loss, lam=1e-14 if what == "weak edges" else 0.1)
    with using(Form.THIS_N):
        suits = SingleEngine.suits(problem.bound)
    assert suits is (what == "dual steps")
    ct.solve(problem, 1e-2, engine="numba")
    assert "SingleEngine" not in used or what == "large weights"  # which are not large in units of their own
