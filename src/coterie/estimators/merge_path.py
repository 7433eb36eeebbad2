"""The path of convex clustering: points that have become one stay one, so that ever fewer nodes are left."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses import SquaredError
from coterie.problem.penalties import Penalty
from coterie.problem.quotient import quotient
from coterie.solver import Solution, solve

Integers = NDArray[np.int64]
CLOSE = 1e-3  # two λ that are as near as this, relatively, have none in between


def points_problem(graph: EmpiricalGraph, X: Array, m: Array, penalty: Penalty, lam: float) -> Problem:
    """Σ_i m_i ‖w_i − x_i‖² + λ Σ_e A_e φ(w_i − w_j): every node has the rows of √m_i times the identity matrix."""
    V, n = X.shape
    root = np.sqrt(m)[:, None, None]
    rows, y = (root * np.eye(n)).reshape(-1, n), (root[..., 0] * X).ravel()
    data = LocalDatasets.from_rows(rows, y, np.repeat(np.arange(V), n), n_nodes=V)
    return Problem(graph, data, SquaredError("sum"), penalty, lam)


class Stage:
    """The clusters at one λ.

    Attributes
    ----------
    lam : float
    to : array of shape (V,)
        The cluster of each point.
    graph, X, m : EmpiricalGraph, array, array
        What joins the clusters, the means of their points, and how many these are.
    start : Solution or None
        The solution on this graph; None: every cluster has its mean.
    """

    def __init__(
        self, lam: float, to: Integers, graph: EmpiricalGraph, X: Array, m: Array, start: Solution | None
    ) -> None:
        self.lam, self.to, self.graph, self.X, self.m, self.start = lam, to, graph, X, m, start

    @classmethod
    def of_points(cls, graph: EmpiricalGraph, X: Array) -> Stage:
        """λ = 0, where points are one that are equal and joined by edges."""
        i, j = graph.edges.T
        alone = cls(0.0, np.arange(len(X)), graph, X, np.ones(len(X)), None)
        equal = EmpiricalGraph.from_edges(graph.edges[(X[i] == X[j]).all(axis=1)], n_nodes=len(X))
        return alone.joined(equal.components, 0.0)

    @property
    def w(self) -> Array:
        """The weights of the clusters."""
        return self.X if self.start is None else self.start.w

    @cached_property
    def none_below(self) -> float:
        """A λ below which no two of these clusters become one.

        Subgradients of λA_e φ are at most λA_e in each coordinate, so that node i moves by at most (λ/2m_i) Σ_j A_ij in
        each, and two can only meet if that is enough for both together.
        """
        i, j = self.graph.edges.T
        V, A = self.graph.n_nodes, self.graph.weights
        pull = (np.bincount(i, A, V) + np.bincount(j, A, V)) / (2 * self.m)
        apart = np.abs(self.X[i] - self.X[j]).max(axis=1) / (pull[i] + pull[j])
        return max(self.lam, float(apart.min(initial=np.inf)))

    def at(self, lam: float, penalty: Penalty, tol: float) -> Stage:
        """The clusters at a larger λ, those of this one staying one."""
        solution = self._solved(lam, penalty, tol)
        return self.joined(solution.clusters().joint, lam, solution)

    def joined(self, to: Integers, lam: float, solution: Solution | None = None) -> Stage:
        """The stage in which clusters with the same `to` are one."""
        made, m = quotient(self.graph, to, int(to.max()) + 1), np.bincount(to, self.m)
        X = np.stack([np.bincount(to, self.m * column) / m for column in self.X.T], axis=1)
        first = np.unique(to, return_index=True)[1]
        if solution is not None:
            solution = replace(solution, graph=made.graph, w=solution.w[first], u=made.duals(solution.u))
        return Stage(lam, to[self.to], made.graph, X, m, solution)

    def start_on(self, graph: EmpiricalGraph, lam: float, penalty: Penalty, tol: float) -> Solution:
        """Where to start on all points, of clusters of equal ones: with their weights and duals.

        An edge inside a cluster has the dual that leaves nothing at its second point, if that has no other such edge.
        """
        found, made = self._solved(lam, penalty, tol), quotient(graph, self.to, len(self.m))
        w, between = found.w[self.to], made.edge_to >= 0
        u, new = 2 * (w - self.X[self.to])[graph.edges[:, 1]], made.edge_to[between]
        share = (made.sign * graph.weights)[between] / made.graph.weights[new]
        u[between] = share[:, None] * found.u[new]
        return replace(found, graph=graph, w=w, u=u)

    def _solved(self, lam: float, penalty: Penalty, tol: float) -> Solution:
        return solve(points_problem(self.graph, self.X, self.m, penalty, lam), tol, start=self.start)


def stages(points: Stage, penalty: Penalty, largest: float, n_lams: int, tol: float) -> list[Stage]:
    """From points to one cluster, at λ = `largest`; solved for at most `n_lams` values in between, where merges are.

    Each lies in the middle, in logarithms, of two λ between which clusters merge: as many and over as long a way as
    between no other two.
    """
    found = [points]
    if len(points.m) > 1:
        found.append(points.joined(np.zeros(len(points.m), dtype=np.int64), largest))
    for _ in range(n_lams):
        merges = -np.diff([len(stage.m) for stage in found])
        way = np.array([np.log(high.lam / min(low.none_below, high.lam)) for low, high in pairwise(found)])
        gain = merges * np.where(way > CLOSE, way, 0.0)
        if not (gain > 0).any():
            break
        low, high = found[(k := int(gain.argmax())) : k + 2]
        found.insert(k + 1, low.at(_between(low, high), penalty, tol))
    return found


def cut_closely(found: list[Stage], k: int, penalty: Penalty, tol: float) -> None:
    """Bisect the stretch of λ at whose end there are k clusters or fewer for the first time, until it is short."""
    while (at := next(i for i, stage in enumerate(found) if len(stage.m) <= k)) > 0:
        low, high = found[at - 1 : at + 1]
        if high.lam <= low.none_below * (1 + CLOSE):
            break
        found.insert(at, low.at(_between(low, high), penalty, tol))


def _between(low: Stage, high: Stage) -> float:
    return float(np.sqrt(low.none_below * high.lam))
