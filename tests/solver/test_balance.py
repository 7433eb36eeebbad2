from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import coterie as ct
from coterie.engines.base import Mode, Travel
from coterie.solver.balance import Steps, _first_omega
from problems import KINDS, instance, problems


def operator_norm(problem: ct.Problem, steps: Steps) -> float:
    """‖Σ^½ D T^½‖, densely: PDHG converges while it is below 1."""
    D = problem.graph.D.toarray()
    return float(np.linalg.norm(np.sqrt(steps.sigma)[:, None] * D * np.sqrt(steps.tau), 2)) if D.size else 0.0


@given(problems())
def test_steps_converge(problem: ct.Problem) -> None:
    steps = Steps.of(problem.bound)
    assert (steps.tau > 0).all()
    assert (steps.sigma > 0).all()
    assert np.isfinite(steps.omega)
    assert operator_norm(problem, steps) <= 1.01


@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_long(kind: str) -> None:
    problem = instance(kind)
    assert operator_norm(problem, Steps.of(problem.bound)) > 0.95


@pytest.mark.parametrize(
    ("travel", "factor"), [((1.0, 4.0), 2.0), ((4.0, 1.0), 0.5), ((1.0, 1e9), 10.0), ((0.0, 1.0), 1.0)]
)
def test_the_balance_moves_to_where_both_travel_equally_far(travel: tuple[float, float], factor: float) -> None:
    problem = instance()
    steps = Steps.of(problem.bound)
    omega, norm = steps.omega, operator_norm(problem, steps)
    steps.rebalance(Travel(*travel))
    assert steps.omega == pytest.approx(factor * omega)
    assert operator_norm(problem, steps) == pytest.approx(norm)


def denoising(edges: np.ndarray, X: np.ndarray) -> ct.Problem:
    """One row at every node."""
    V = len(X)
    y = np.random.default_rng(1).standard_normal(V) + (np.arange(V) > V / 2)
    return ct.Problem(ct.EmpiricalGraph.from_edges(edges), ct.LocalDatasets.from_rows(X, y, np.arange(V)), lam=1.0)


def test_a_hub_does_not_set_the_pace_of_its_leaves() -> None:
    leaves = np.arange(1, 5001)
    problem = denoising(np.stack([np.zeros_like(leaves), leaves], axis=1), np.ones((5001, 1)))
    assert Steps.of(problem.bound).modes == (Mode.RELAXED, Mode.HALPERN)
    solution = ct.solve(problem)
    assert solution.gap <= 1e-6
    assert solution.unconditional
    assert solution.n_iter <= 300


def test_dual_ascent_where_ends_are_alike() -> None:
    V = 400
    edges = np.stack([np.arange(V - 1), np.arange(1, V)], axis=1)
    assert Steps.of(denoising(edges, np.ones((V, 1)))).modes == (Mode.DUAL,)
    uneven = np.random.default_rng(0).standard_normal((V, 1))
    assert Mode.DUAL not in Steps.of(denoising(edges, uneven)).modes


def test_a_pooled_model_that_cancels_says_nothing_of_sizes() -> None:
    """Around their mean, points take as many iterations as anywhere."""
    points = np.random.default_rng(0).standard_normal((30, 2))
    points -= points.mean(axis=0)
    graph = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(29)])

    def omega(shift: float) -> float:
        rows, y = np.tile(np.eye(2), (30, 1)), (points + shift).ravel()
        data = ct.LocalDatasets.from_rows(rows, y, np.repeat(np.arange(30), 2))
        problem = ct.Problem(graph, data, ct.SquaredError("sum"), ct.GroupTotalVariation(), 0.5)
        return _first_omega(problem.bound, np.ones(30))

    assert 0.2 < omega(0.0) / omega(1.0) < 5
    assert omega(1e-10) == pytest.approx(omega(0.0))


@pytest.mark.parametrize("loss", [ct.SquaredError(lower=-1e3), ct.Huber(lower=-1e3), ct.Lasso(1e-6)], ids=str)
def test_labels_that_add_up_to_zero_do_not_spoil_the_first_balance(loss: ct.Loss) -> None:
    graph = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(8)])
    y = (np.arange(-4, 5)[:, None] + 0.1 * np.arange(-2, 3)).ravel()
    data = ct.LocalDatasets.from_rows(np.ones((45, 1)), y, np.repeat(np.arange(9), 5))
    solution = ct.solve(ct.Problem(graph, data, loss, lam=0.3), engine="numpy")
    assert solution.status is ct.Status.OPTIMAL
    assert solution.n_iter <= 100
