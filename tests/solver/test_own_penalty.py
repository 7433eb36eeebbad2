"""A penalty from outside the package, in one file: the largest difference counts, φ(z) = ‖z‖_∞."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cvxpy as cp
import numpy as np
import pytest

import coterie as ct
from coterie.engines.numba import NumbaEngine
from coterie.engines.numpy import NumpyEngine
from problems import FIRST_LOSSES, case_of, instance


@dataclass(frozen=True)
class LargestVariation(ct.Penalty):
    """φ(z) = ‖z‖_∞; its dual ball is that of ℓ1."""

    is_norm: ClassVar[bool] = True

    def value(self, z: np.ndarray, c: np.ndarray) -> float:
        return float(c @ np.abs(z).max(axis=1, initial=0.0))

    def conjugate(self, u: np.ndarray, c: np.ndarray) -> float:
        return 0.0

    def dual_step(self, u: np.ndarray, c: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """The projection onto ‖u_e‖₁ ≤ c_e: shrink all coordinates by as much as it takes."""
        size = -np.sort(-np.abs(u), axis=1)
        over = (np.cumsum(size, axis=1) - c[:, None]) / np.arange(1, u.shape[1] + 1)
        shrink = np.maximum(np.where(size > over, over, -np.inf).max(axis=1), 0.0)
        return self.into_domain(np.sign(u) * np.maximum(np.abs(u) - shrink[:, None], 0.0), c)

    def into_domain(self, u: np.ndarray, c: np.ndarray) -> np.ndarray:
        length = np.abs(u).sum(axis=1)
        factor = np.divide(c, length, out=np.ones_like(c), where=length > c)
        return u * factor[:, None]

    def strength_needed(self, u: np.ndarray, A: np.ndarray) -> float:
        return float((np.abs(u).sum(axis=1) / A).max(initial=0.0))

    def spread(self, budget: float, weakest: np.ndarray, longest: np.ndarray) -> np.ndarray:
        return budget / weakest


def optimum(problem: ct.Problem) -> float:
    w = cp.Variable((problem.graph.n_nodes, problem.n_features))
    rows = ~np.isnan(problem.data.y)
    X, y, nodes = problem.data.X[rows], problem.data.y[rows], problem.data.nodes[rows]
    margins, m = cp.sum(cp.multiply(X, w[nodes]), axis=1), np.bincount(nodes)[nodes]
    loss = case_of(problem.loss).convex(problem.loss, margins, y, m, w[np.unique(nodes)])
    i, j = problem.graph.edges.T
    largest = cp.max(cp.abs(w[i] - w[j]), axis=1)
    return float(cp.Problem(cp.Minimize(loss + problem.c @ largest)).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("loss", FIRST_LOSSES, ids=str)
@pytest.mark.parametrize("name", ["all labelled", "few labelled"])
@pytest.mark.parametrize("engine", ["auto", "numpy", NumpyEngine()], ids=["auto", "numpy", "an engine"])
def test_it_is_solved_with_a_certificate(name: str, loss: ct.Loss, engine: object) -> None:
    problem = instance(name, loss=loss, penalty=LargestVariation())
    solution = ct.solve(problem, 1e-6, engine=engine)
    assert solution.status is ct.Status.OPTIMAL
    best = optimum(problem)
    assert solution.dual_bound <= best * (1 + 1e-7)
    assert solution.objective >= best * (1 - 1e-7)
    again = ct.certify(problem, solution.w, solution.u)
    assert again.objective == pytest.approx(solution.objective, rel=1e-12)


def test_a_path_begins_where_all_are_equal() -> None:
    problem = instance(penalty=LargestVariation())
    path = ct.solve_path(problem, n_lams=3)
    np.testing.assert_allclose(path.solutions[0].w, path.solutions[0].w[:1].repeat(12, axis=0), atol=1e-4)


def test_compiled_kernels_do_not_know_it() -> None:
    with pytest.raises(TypeError, match=r'LargestVariation has no compiled form; solve it with engine="numpy"'):
        ct.solve(instance(penalty=LargestVariation()), engine=NumbaEngine())
