"""Kernels for any number of features: compiled once, and the same as the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import coterie as ct
from coterie.engines.base import Mode
from coterie.engines.numba import NumbaEngine
from coterie.engines.numpy import NumpyEngine
from coterie.kernels import any_n, blocks, laplacian, static_int, vector_buffer
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.kernels.reference import laplacian as plain_laplacian
from coterie.solver.balance import Steps
from problems import EVERY_PENALTY, FIRST_LOSSES, rows_of

penalties = pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)


def random_problem(n: int, loss: ct.Loss, penalty: ct.Penalty, unlabelled: int, even: bool = False) -> ct.Problem:
    """A ring with chords, of equal weights or not; the first nodes have no labels."""
    rng, V = np.random.default_rng(n), 12
    edges = np.array([(i, j) for i in range(V) for j in range(i + 1, V) if j - i in (1, 5, V - 1)])
    graph = ct.EmpiricalGraph.from_edges(edges, None if even else rng.lognormal(size=len(edges)))
    X, y, nodes = rows_of(loss, rng.standard_normal((V, n)), n + 2, rng)
    y[nodes < unlabelled] = np.nan
    if even:
        X = np.tile(np.vstack([np.eye(n), np.eye(n)[:1], np.eye(n)[:1]]), (V, 1))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V)
    return ct.Problem(graph, data, loss, penalty, 0.1)


def agree(problem: ct.Problem, mode: Mode, threads: int) -> None:
    """Two epochs of a compiled engine and of the reference, from the same point."""
    rng, steps = np.random.default_rng(0), Steps.of(problem.bound)
    w = rng.standard_normal((problem.graph.n_nodes, problem.n_features))
    u = rng.standard_normal((problem.graph.n_edges, problem.n_features))
    both: tuple[Any, Any] = NumpyEngine(), NumbaEngine(threads)
    for engine in both:
        engine.setup(problem.bound, w, u)
        engine.set_steps(steps.tau, steps.sigma)
    for n_iter in (3, 1):
        expected, found = (engine.advance(n_iter, mode) for engine in both)
        assert found == pytest.approx(expected, rel=1e-7)
        for a, b in zip(both[0].point(), both[1].point(), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-8, atol=1e-9)
        assert tuple(both[1].restart()) == pytest.approx(tuple(both[0].restart()), rel=1e-7, abs=1e-9)


@penalties
@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=repr)
@pytest.mark.parametrize("n", [1, 3, 8, 19])
def test_an_engine_for_any_n(n: int, loss: ct.Loss, penalty: ct.Penalty) -> None:
    with using(Form.ANY_N):
        for mode in (Mode.RELAXED, Mode.HALPERN):
            agree(random_problem(n, loss, penalty, unlabelled=4), mode, threads=1 + n % 2)


@penalties
@pytest.mark.parametrize("strength", [(0.0, np.inf, 1.0), (np.inf,) * 3, (0.0,) * 3, (0.3, 0.0, 2.0)], ids=str)
def test_strengths_of_columns_for_any_n(strength: tuple[float, ...], penalty: ct.Penalty) -> None:
    problem = replace(random_problem(3, ct.SquaredError(), penalty, unlabelled=4), strength=np.array(strength))
    if problem.bound.penalty.edge_kernel is None:
        assert isinstance(penalty, ct.GroupTotalVariation)  # ellipsoids
        pytest.skip("NumPy does the work")
    with using(Form.ANY_N):
        for mode in (Mode.RELAXED, Mode.HALPERN):
            agree(problem, mode, threads=2)


@penalties
@pytest.mark.parametrize("n", [1, 3, 12])
def test_dual_steps_for_any_n(n: int, penalty: ct.Penalty) -> None:
    with using(Form.ANY_N):
        agree(random_problem(n, ct.SquaredError(), penalty, unlabelled=0, even=True), Mode.DUAL, threads=1)


@pytest.mark.parametrize("n", [1, 4, 11])
def test_the_laplacian_for_any_n(n: int) -> None:
    rng = np.random.default_rng(n)
    ends, S = np.array([[0, 1], [0, 3], [1, 2], [2, 3]]), rng.random((4, n)).astype(np.float32)
    x, found, expected = rng.standard_normal((3, 4, n))
    for ground in (laplacian.NO_GROUND, rng.random((4, n))):
        plain_laplacian.apply(static_int(0), ends, S, ground, x, expected)
        with using(Form.ANY_N):
            laplacian.apply(static_int(0), ends, S, ground, x, found)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_another_number_of_features_compiles_nothing() -> None:
    kernels = (any_n.edge_pass, any_n.node_pass)
    with using(Form.ANY_N):
        assert blocks(3) == blocks(20) == ()
        assert isinstance(vector_buffer(3), np.ndarray)
        compiled = []
        for n in (2, 5, 9):
            agree(random_problem(n, ct.SquaredError(), ct.TotalVariation(), unlabelled=4), Mode.HALPERN, threads=1)
            compiled.append([len(kernel.signatures) for kernel in kernels])
    assert compiled[0] == compiled[1] == compiled[2]


@pytest.mark.parametrize("n", [1, 4, 12])
def test_a_solve_for_any_n(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.solver.pace.Pace.form", lambda self, n_iter=0: Form.ANY_N)
    problem = random_problem(n, ct.SquaredError(), ct.TotalVariation(), unlabelled=4)
    expected, found = ct.solve(problem, 1e-9, engine="numpy"), ct.solve(problem, 1e-9)
    assert found.gap <= 1e-9
    assert found.unconditional
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)
