"""The problem on given clusters, one node for each: what a picture with few regions is solved as."""

from __future__ import annotations

import warnings

import numpy as np

from coterie.problem import BoundProblem, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.quotient import quotient
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.solution import NotConverged

MANY, PART = 10_000, 1 / 32  # nodes from which on, and clusters per node up to which, a contracted problem is worth it
MOST_ITERATIONS = 400  # of the contracted problem, which need not be solved to the end


def contracts(problem: BoundProblem, clusters: DualClusters) -> bool:
    """Whether `refine` applies: one feature, all nodes labelled, and many of them for each cluster."""
    V = problem.graph.n_nodes
    return (
        problem.n_features == 1
        and len(problem.M) == V >= MANY
        and clusters.counts[0] <= PART * V
        and problem.f.quadratic is not None
        and problem.penalty.exact_clusters
    )


def refine(problem: BoundProblem, clusters: DualClusters, tol: float) -> Array:
    """Solve the problem restricted to the clusters, whatever signs its cuts will have: a smaller problem of its kind.

    The quadratics of a cluster add up to one, and so do the edges between two clusters. Clusters that should be one
    become equal by themselves, so clusters that are too small do no harm.
    """
    from coterie.solver.solve import solve

    smaller = contract(problem, clusters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        solution = solve(smaller, tol, max_iter=MOST_ITERATIONS)
    return solution.w[clusters.label[:, 0]]


def contract(problem: BoundProblem, clusters: DualClusters) -> Problem:
    """One node for each cluster, one row at each node."""
    q, label, K = problem.f.quadratic, clusters.label[:, 0], int(clusters.counts[0])
    assert q is not None
    h = np.bincount(label, weights=q.H.ravel(), minlength=K)
    centre = np.bincount(label, weights=q.b.ravel(), minlength=K) / h
    x = np.sqrt(0.5 * h)  # (y − xw)² has the curvature 2x²
    data = LocalDatasets.from_rows(x[:, None], x * centre, np.arange(K))
    return Problem(quotient(problem.graph, label, K).graph, data, lam=problem.lam)
