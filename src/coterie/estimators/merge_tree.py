"""The path of convex clustering: points that have become one stay one, so that ever fewer nodes are left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses import SquaredError
from coterie.problem.penalties import Penalty
from coterie.problem.quotient import quotient
from coterie.solver import solve

Integers = NDArray[np.int64]


def points_problem(graph: EmpiricalGraph, X: Array, m: Array, penalty: Penalty, lam: float) -> Problem:
    """Σ_i m_i ‖w_i − x_i‖² + λ Σ_e A_e φ(w_i − w_j): every node has the rows of √m_i times the identity matrix."""
    V, n = X.shape
    root = np.sqrt(m)[:, None, None]
    rows, y = (root * np.eye(n)).reshape(-1, n), (root[..., 0] * X).ravel()
    data = LocalDatasets.from_rows(rows, y, np.repeat(np.arange(V), n), n_nodes=V)
    return Problem(graph, data, SquaredError("sum"), penalty, lam)


@dataclass(eq=False)
class MergeTree:
    """Which clusters became one, and at which λ; leaves are 0 … V − 1, and the k-th merge makes cluster V + k.

    Attributes
    ----------
    children : list of pairs
    lams : list of float
        Ascending.
    cluster : array
        The number, as above, of each node of the present graph.
    """

    n_leaves: int
    children: list[tuple[int, int]] = field(default_factory=list)
    lams: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster = np.arange(self.n_leaves)

    @classmethod
    def grown(cls, graph: EmpiricalGraph, X: Array, penalty: Penalty, lams: Sequence[float], tol: float) -> MergeTree:
        """Solve for each λ, in ascending order, and let nodes that became one be one from there on.

        At the last one all are, even if the gap leaves some apart.
        """
        tree, start = cls(len(X)), None
        m: Array = np.ones(len(X))  # how many points each node stands for
        for lam in lams:
            if graph.n_nodes == 1:
                break
            solution = solve(points_problem(graph, X, m, penalty, lam), tol, start=start)
            found = solution.clusters()
            to, K = found.joint, len(found)
            tree.merge(graph, to, K, X if start is None else start.w, lam)
            made = quotient(graph, to, K)
            first = np.unique(to, return_index=True)[1]
            total = np.stack([np.bincount(to, weights=m * column) for column in X.T], axis=1)
            graph, m = made.graph, np.bincount(to, weights=m)
            X = total / m[:, None]
            start = replace(solution, graph=graph, w=solution.w[first], u=made.duals(solution.u))
        tree.merge(graph, np.zeros(graph.n_nodes, dtype=np.int64), 1, X, lams[-1])
        return tree

    def merge(self, graph: EmpiricalGraph, to: Integers, K: int, w: Array, lam: float) -> None:
        """Note that nodes with the same `to` become one; those that were nearest at the last λ first."""
        i, j = graph.edges.T
        inside = np.flatnonzero(to[i] == to[j])
        length = np.linalg.norm(w[i[inside]] - w[j[inside]], axis=1)
        group, cluster = np.arange(graph.n_nodes), self.cluster.copy()
        for e in inside[np.argsort(length, kind="stable")]:
            a, b = _root(group, i[e]), _root(group, j[e])
            if a != b:
                self.children.append((int(cluster[a]), int(cluster[b])))
                self.lams.append(lam)
                group[b], cluster[a] = a, self.n_leaves + len(self.children) - 1
        self.cluster = np.empty(K, dtype=np.int64)
        self.cluster[to] = cluster[[_root(group, k) for k in range(graph.n_nodes)]]

    def labels(self, n_clusters: int) -> Integers:
        """The clusters when so many are left, numbered in the order of their first leaves."""
        V = self.n_leaves
        owner = np.arange(V + len(self.children))
        for k, (a, b) in enumerate(self.children[: V - n_clusters]):
            owner[a] = owner[b] = V + k
        for k in reversed(range(len(owner))):
            owner[k] = owner[owner[k]]
        _, first, inverse = np.unique(owner[:V], return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[inverse]


def _root(group: Integers, k: int) -> int:
    while group[k] != k:
        group[k] = group[group[k]]
        k = group[k]
    return k
