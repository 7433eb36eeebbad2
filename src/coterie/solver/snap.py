"""Snapping: clusters whose weights are exactly equal.

At the optimum an edge whose dual has slack, |u_e| < c_e, joins equal weights. Long before the iteration has
converged, the duals show these clusters; averaging inside them removes most of the error that is left.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import clusters as kernels
from coterie.kernels.cholesky import cholesky_solve
from coterie.kernels.edges import L1, SQUARED
from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.quadratic import Quadratics
from coterie.solver.solution import NotConverged

MARGIN = 1e-6  # an edge has slack when its dual is this much (relatively) below its bound
FEW = 64  # clusters of all coordinates together, up to which the reduced problem is solved exactly
NEWTON_STEPS = 20
MANY, PART = 10_000, 1 / 32  # nodes from which on, and clusters per node up to which, a contracted problem is worth it
MOST_ITERATIONS = 400  # of the contracted problem, which need not be solved to the end
SETTLED = 1e-8  # a Newton step this small, relatively, is the last one needed


@dataclass(frozen=True, eq=False)
class Partition:
    """The clusters of each coordinate: label (V, n), counts (n)."""

    label: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def shown_by(cls, problem: Problem, u: Array) -> Partition | None:
        """Return the clusters that the duals show; None for squared variation, which has none."""
        if problem.penalty.kernel == SQUARED or problem.lam == 0:
            return None
        label = np.empty((problem.graph.n_nodes, problem.n_features), dtype=np.int64)
        counts = kernels.find_clusters(problem.penalty.kernel, problem.graph.edges, problem.c, u, MARGIN, label)
        return cls(label, counts)

    def average(self, x: Array) -> Array:
        out = np.empty_like(x)
        kernels.average(self.label, self.counts, x, out)
        return out


def polish(problem: Problem, partition: Partition, w: Array) -> Array | None:
    """Solve the problem restricted to the partition, with the signs of w across its cuts; None where it can't be.

    With signs fixed, the total variation is linear, ⟨force, w⟩ with force = Dᵀ(c sign Dw), and the unknowns are the
    values of the clusters: a small smooth problem, solved by Newton's method (for squared error, one step and
    one more against rounding). Steps that become longer say that the clusters are not those of a minimum.
    """
    K = int(partition.counts.sum())
    if not (K <= FEW and problem.f.smooth and problem.penalty.kernel == L1):
        return None
    w = partition.average(w)
    force = np.empty_like(w)
    kernels.cut_forces(problem.graph.edges, problem.c, w, force)
    offset = np.concatenate([[0], np.cumsum(partition.counts)])
    unknown = partition.label + offset[:-1]
    M = problem.M
    pairs = (unknown[M][:, :, None] * K + unknown[M][:, None, :]).ravel()
    longest = np.inf
    for _ in range(2 if isinstance(problem.f, Quadratics) else NEWTON_STEPS):
        slope = force.copy()
        slope[M] += problem.f.gradient(w[M])
        reduced = np.bincount(unknown.ravel(), weights=slope.ravel(), minlength=K)
        H = np.bincount(pairs, weights=problem.f.hessian(w[M]).ravel(), minlength=K * K).reshape(K, K)
        H[np.diag_indices(K)] += 1e-14 * np.trace(H) + np.finfo(float).tiny  # a cluster may have no labels
        step = cholesky_solve(H, reduced)
        before, longest = longest, float(np.abs(step).max())
        if not longest <= before:
            return None
        w = w + step[unknown]
        if longest <= SETTLED * np.abs(w).max():
            break
    return w if np.isfinite(w).all() else None


def contracts(problem: Problem, partition: Partition) -> bool:
    """Whether `refine` applies: one feature, all nodes labelled, and many of them for each cluster."""
    V = problem.graph.n_nodes
    return (
        problem.n_features == 1
        and len(problem.M) == V >= MANY
        and partition.counts[0] <= PART * V
        and isinstance(problem.f, Quadratics)
        and problem.penalty.kernel == L1
    )


def refine(problem: Problem, partition: Partition, tol: float) -> Array:
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


def contract(problem: Problem, partition: Partition) -> Problem:
    """One node for each cluster, one row at each node."""
    q, label, K = problem.f, partition.label[:, 0], int(partition.counts[0])
    assert isinstance(q, Quadratics)
    h = np.bincount(label, weights=q.H.ravel(), minlength=K)
    centre = np.bincount(label, weights=q.b.ravel(), minlength=K) / h
    ends = np.sort(label[problem.graph.edges], axis=1)
    cut = ends[:, 0] < ends[:, 1]
    key, edge = np.unique(ends[cut, 0] * K + ends[cut, 1], return_inverse=True)
    edges = np.stack([key // K, key % K], axis=1)
    graph = EmpiricalGraph.from_edges(edges, np.bincount(edge, weights=problem.c[cut], minlength=len(key)), n_nodes=K)
    x = np.sqrt(0.5 * h)  # (y − xw)² has the curvature 2x²
    data = LocalDatasets.from_rows(x[:, None], x * centre, np.arange(K))
    return Problem(graph, data, lam=1.0)
