"""Snapping: clusters whose weights are exactly equal.

At the optimum an edge whose dual has slack, |u_e| < c_e, joins equal weights. Long before the iteration has
converged, the duals show these clusters; averaging inside them removes most of the error that is left.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import L1
from coterie.kernels.choice import Either
from coterie.problem import BoundProblem, EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.solver.solution import NotConverged

kernels = Either("clusters")

MARGIN = 1e-6  # an edge has slack when its dual is this much (relatively) below its bound
MANY, PART = 10_000, 1 / 32  # nodes from which on, and clusters per node up to which, a contracted problem is worth it
MOST_ITERATIONS = 400  # of the contracted problem, which need not be solved to the end


@dataclass(frozen=True, eq=False)
class DualClusters:
    """The clusters of each coordinate: label (V, n), counts (n)."""

    label: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def shown_by(cls, problem: BoundProblem, u: Array) -> DualClusters | None:
        """Return the clusters that the duals show; None for penalties that have none, or none that are known."""
        if problem.penalty.kernel is None or not problem.penalty.is_norm or problem.lam == 0:
            return None
        label = np.empty((problem.graph.n_nodes, problem.n_features), dtype=np.int64)
        counts = kernels.find_clusters(problem.penalty.kernel, problem.graph.edges, problem.c, u, MARGIN, label)
        return cls(label, counts)

    def average(self, x: Array) -> Array:
        out = np.empty_like(x)
        kernels.average(self.label, self.counts, x, out)
        return out


def contracts(problem: BoundProblem, partition: DualClusters) -> bool:
    """Whether `refine` applies: one feature, all nodes labelled, and many of them for each cluster."""
    V = problem.graph.n_nodes
    return (
        problem.n_features == 1
        and len(problem.M) == V >= MANY
        and partition.counts[0] <= PART * V
        and problem.f.quadratic is not None
        and problem.penalty.kernel == L1
    )


def refine(problem: BoundProblem, partition: DualClusters, tol: float) -> Array:
    """Solve the problem restricted to the partition, whatever signs its cuts will have: a smaller problem of its kind.

    The quadratics of a cluster add up to one, and so do the edges between two clusters. Clusters that should be one
    become equal by themselves, so a partition that is too fine does no harm.
    """
    from coterie.solver.solve import solve

    smaller = contract(problem, partition)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        solution = solve(smaller, tol, max_iter=MOST_ITERATIONS)
    return solution.w[partition.label[:, 0]]


def contract(problem: BoundProblem, partition: DualClusters) -> Problem:
    """One node for each cluster, one row at each node."""
    q, label, K = problem.f.quadratic, partition.label[:, 0], int(partition.counts[0])
    assert q is not None
    h = np.bincount(label, weights=q.H.ravel(), minlength=K)
    centre = np.bincount(label, weights=q.b.ravel(), minlength=K) / h
    i, j = label[problem.graph.edges.T]
    cut = i != j
    key, edge = np.unique(np.minimum(i, j)[cut] * K + np.maximum(i, j)[cut], return_inverse=True)
    edges = np.stack([key // K, key % K], axis=1)
    graph = EmpiricalGraph.from_edges(edges, np.bincount(edge, weights=problem.c[cut], minlength=len(key)), n_nodes=K)
    x = np.sqrt(0.5 * h)  # (y − xw)² has the curvature 2x²
    data = LocalDatasets.from_rows(x[:, None], x * centre, np.arange(K))
    return Problem(graph, data, lam=1.0)
