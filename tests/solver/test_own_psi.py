"""A scalar function of a user's own, as CONTRIBUTING.md shows it: prox, conjugate and certificate come with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import xlogy

import coterie as ct
import problems
from problems import EVERY_PENALTY, LossCase, bound_rows, instance, oracle, rows_of_node


@dataclass(frozen=True)
class LogCosh(ct.RowLoss):
    """ψ(e) = log cosh e of the residual e = y − ⟨x, w⟩."""

    lipschitz = 1.0
    curvature = 1.0
    rise = (1.0, np.log(2))  # ψ(e) ≥ |e| − log 2

    def psi(self, e: Any, y: Any) -> Any:
        return np.logaddexp(e, -e) - np.log(2)

    def slope(self, e: Any, y: Any) -> Any:
        return np.tanh(e) * (1 - 1e-15)

    def bend(self, e: Any, y: Any) -> Any:
        return 1 - np.tanh(e) ** 2

    def conjugate(self, t: Any, y: Any) -> Any:
        return 0.5 * (xlogy(1 + t, 1 + t) + xlogy(1 - t, 1 - t))


@dataclass(frozen=True)
class Silent(LogCosh):
    """The same, and nothing is said of how it grows."""

    rise = None


CASE = LossCase(
    (LogCosh(), Silent()),
    problems.LOSSES[ct.Huber].labels,
    problems._naive_rows(lambda loss, z, y: np.logaddexp(y - z, z - y) - np.log(2)),
    problems._convex_rows(lambda loss, z, y: cp.logistic(2 * (y - z)) - (y - z) - np.log(2)),
    lambda loss, n: np.zeros((1, n)),
)


@pytest.fixture(autouse=True)
def _known_to_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (LogCosh, Silent):
        monkeypatch.setitem(problems.LOSSES, kind, CASE)


@pytest.mark.parametrize("penalty", EVERY_PENALTY, ids=repr)
@pytest.mark.parametrize(("kind", "engine"), [("few labelled", "numpy"), ("few points", "numpy")])
def test_it_is_solved_and_proven(kind: str, penalty: ct.Penalty, engine: str) -> None:
    problem = instance(kind, LogCosh(), penalty)
    solution, best = ct.solve(problem, 1e-6, engine=engine), oracle(problem).value
    assert solution.status is ct.Status.OPTIMAL
    assert solution.objective <= best * (1 + 1e-6) + 1e-9
    assert solution.dual_bound <= best + 1e-9


def test_compiled_kernels_leave_it_to_numpy() -> None:
    test_it_is_solved_and_proven("few points", ct.TotalVariation(), "numba")


def test_what_is_not_said_is_not_used() -> None:
    problem = instance("few labelled", Silent())
    with pytest.warns(ct.NotConverged, match="no weight above"):
        solution = ct.solve(problem, 1e-6, engine="numpy")
    assert solution.status is ct.Status.CONDITIONAL
    assert solution.objective <= oracle(problem).value * (1 + 1e-6) + 1e-9


def test_a_ridge_on_every_column_is_enough() -> None:
    solution = ct.solve(instance("few labelled", Silent(ridge=0.1)), 1e-6, engine="numpy")
    assert solution.status is ct.Status.OPTIMAL


def test_prox_conjugate_and_pooled_models_come_with_it() -> None:
    loss = LogCosh()
    rows = bound_rows(loss, (5, 2))
    f, v, tau = loss.bind(rows), np.ones((2, 3)), np.array([0.3, 3.0])
    z = f.prox(v, tau, 0 * v)
    np.testing.assert_allclose(f.gradient(z), (v - z) / tau[:, None], atol=1e-10)
    q, conjugate = f.conjugate(f.gradient(z), z)
    for k in range(2):
        X, y = rows_of_node(rows, k)
        assert q[k] @ z[k] - CASE.naive(loss, X, y, z[k]) == pytest.approx(conjugate[k], abs=1e-9)
    pooled, p = f.pooled(np.zeros(2, dtype=int), 1)
    np.testing.assert_allclose(f.gradient(pooled[[0, 0]]).sum(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(p.sum(axis=0), 0.0, atol=1e-12)


@dataclass(frozen=True)
class Quartic(ct.RowLoss):
    """ψ(e) = e⁴/4, of whose curvature nothing is said."""

    def psi(self, e: Any, y: Any) -> Any:
        return e**4 / 4

    def slope(self, e: Any, y: Any) -> Any:
        return e**3

    def bend(self, e: Any, y: Any) -> Any:
        return 3 * e**2

    def conjugate(self, t: Any, y: Any) -> Any:
        return 0.75 * np.abs(t) ** (4 / 3)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_curvature_that_can_be_anything_is_not_modelled(size: float) -> None:
    rng = np.random.default_rng(0)
    X, nodes = rng.standard_normal((12, 2)), np.repeat(np.arange(4), 3)
    y = size * (1 + X @ [1.0, -1.0] + rng.standard_normal(12))
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)])
    problem = ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, nodes), Quartic(ridge=0.1), lam=0.1 * size**3)
    with pytest.warns(ct.NotConverged, match="only under a condition"):
        assert ct.solve(problem, engine="numpy").gap <= 1e-6


@pytest.mark.parametrize("strength", [(1.0, 1.0, np.inf), (0.0, np.inf, 1.0), (np.inf, 0.0, 0.3)])
def test_it_converges_with_strengths_of_columns(strength: Any) -> None:
    """Models of a ψ that says nothing but how bent it can be lie above it."""
    problem = replace(instance(loss=LogCosh()), strength=np.array(strength))
    solution = ct.solve(problem, max_iter=1_000, engine="numpy")
    assert solution.gap <= 1e-6
