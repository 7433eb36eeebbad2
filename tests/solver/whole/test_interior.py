"""Interior points on forests: their answers are certified, and those of the iteration alone."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.solver import driver
from coterie.solver.whole import interior
from problems import EVERY_PENALTY, oracle


def on_tree(kind: str, n: int, m: int, loss: ct.Loss, labelled: float = 1.0, V: int = 60) -> ct.Problem:
    """Piecewise constant weights along a path, a random tree or a star."""
    rng = np.random.default_rng(7)
    above = {"path": np.arange(V - 1), "star": np.zeros(V - 1, dtype=int)}
    parents = above[kind] if kind in above else np.array([rng.integers(0, k) for k in range(1, V)])
    nodes = np.repeat(np.sort(rng.choice(V, round(labelled * V), replace=False)), m)
    X, truth = rng.standard_normal((len(nodes), n)), rng.standard_normal((3, n))
    y = np.einsum("rk,rk->r", X, truth[nodes * 3 // V]) + 0.3 * rng.standard_normal(len(nodes))
    if isinstance(loss, ct.Logistic):
        y = (y > 0).astype(float)
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V)
    graph = ct.EmpiricalGraph.from_edges(np.stack([parents, np.arange(1, V)], axis=1))
    return ct.Problem(graph, data, loss, lam=0.3)


@pytest.mark.parametrize("labelled", [1.0, 0.4])
@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Logistic(ridge=0.01)], ids=repr)
@pytest.mark.parametrize("kind", ["path", "tree", "star"])
def test_an_interior_point_is_certified(kind: str, loss: ct.Loss, labelled: float) -> None:
    problem = on_tree(kind, 4, 3, loss, labelled)
    inside = interior.Interior(problem, np.random.default_rng(0).standard_normal((60, 4)))
    goal = 1e-7 * problem.constant_loss
    assert inside.run(goal, 100, lambda: False) < 40
    proof = ct.certify(problem, inside.w, inside.u)
    assert proof.objective - proof.dual_bound <= goal
    assert proof.dual_bound <= oracle(problem).value * (1 + 1e-7)


@pytest.mark.slow
def test_regression_that_changes_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows than features at every node of a path."""
    problem = on_tree("path", 20, 2, ct.SquaredError(), V=200)
    solution = ct.solve(problem)
    assert solution.status is ct.Status.OPTIMAL
    assert solution.unconditional
    assert solution.n_iter < driver.FOREST + 40
    monkeypatch.setattr(driver, "FOREST", np.inf)
    monkeypatch.setattr(driver, "CRAWLS", np.inf)
    alone = ct.solve(problem)
    assert alone.n_iter > 2 * solution.n_iter
    assert max(alone.dual_bound, solution.dual_bound) <= min(alone.objective, solution.objective)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_the_engine_goes_on_from_there(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When steps end too early, nothing is lost."""
    monkeypatch.setattr(interior, "MOST_STEPS", 2)
    monkeypatch.setattr(driver, "FOREST", 20)
    solution = ct.solve(on_tree("tree", 3, 2, ct.SquaredError()), engine=engine)
    assert solution.status is ct.Status.OPTIMAL


def test_equal_weights_are_a_start() -> None:
    problem = on_tree("path", 3, 5, ct.SquaredError())
    inside = interior.Interior(problem, np.zeros((60, 3)))
    inside.run(1e-7 * problem.constant_loss, 100, lambda: False)
    proof = ct.certify(problem, inside.w, inside.u)
    assert proof.objective - proof.dual_bound <= 1e-7 * problem.constant_loss


def test_limits_are_kept() -> None:
    problem = on_tree("path", 4, 3, ct.SquaredError())
    assert interior.Interior(problem, np.zeros((60, 4))).run(0.0, 3, lambda: False) <= 3
    assert interior.Interior(problem, np.ones((60, 4))).run(0.0, 9, lambda: True) == 0


def test_what_it_does_not_apply_to() -> None:
    problem = on_tree("path", 3, 3, ct.SquaredError())
    assert interior.applies(problem.bound)
    assert not interior.applies(on_tree("path", 3, 3, ct.Lasso(0.1)))
    ring = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (0, 2)])
    data = ct.LocalDatasets.from_rows(np.ones((3, 1)), [1.0, 2.0, 4.0], [0, 1, 2])
    assert not interior.applies(ct.Problem(ring, data, lam=0.1))
    others = [penalty for penalty in EVERY_PENALTY if not isinstance(penalty, ct.TotalVariation)]
    assert not any(interior.applies(ct.Problem(problem.graph, problem.data, penalty=other)) for other in others)
