"""Weights of edges that are learnt with the models: every node shares its weight out anew among its neighbours.

In turn, models w are fitted on the weights A_e, and every node i solves a small convex problem of its own,

    min_a  Σ_j a_j d_ij + γ/2 Σ_j (a_j − A_ij)²/A_ij,     Σ_j a_j = Σ_j A_ij,  a_j ≥ LEAST · A_ij,

where A are the weights as they were given and d_ij = ‖w_i − w_j‖. An edge has the mean of what its two ends say, so
that all weights keep their sum, and λ its size.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie.estimators.adaptive import differences
from coterie.problem import EmpiricalGraph, Problem
from coterie.problem.arrays import Array
from coterie.solver import NotConverged, solve

GAMMA = 0.3
"""γ, relative to the root mean square of the first differences: see docs/decisions/0035-paths-and-learnt-graphs.md."""

LEAST = 0.01  # of its weight stays to every edge, so that nodes without labels stay connected to some
ROUNDS, SETTLED = 20, 0.01  # turns at most; weights that change by less, relative to the largest, are the last


def learnt(problem: Problem, lam: float, options: dict[str, Any]) -> Problem:
    """The problem on the same edges with the weights that are learnt at λ. `options` are those of `solve`."""
    given, graph, gamma, start = problem.graph, problem.graph, 0.0, None
    for _ in range(ROUNDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            start = solve(replace(problem, graph=graph).bound.at(lam), start=start, **options)
        d = differences(given, start.w)
        gamma = gamma or GAMMA * float(np.sqrt((d**2).mean())) if len(d) else 0.0
        if gamma == 0:
            break
        before, graph = graph.weights, shared_out(given, d, gamma)
        moved = float(np.abs(graph.weights - before).max() / before.max())
        if moved <= SETTLED:
            break
    else:
        warnings.warn(
            f"learn_graph: weights of edges have not settled after {ROUNDS} turns, the last of which moved one of them "
            f"by {moved:.1%} of the largest; another lam may suit them better",
            ConvergenceWarning,
            stacklevel=2,
        )
    return replace(problem, graph=graph)


def shared_out(graph: EmpiricalGraph, d: Array, gamma: float) -> EmpiricalGraph:
    """The same edges with the weights that solve the problems of all nodes, d being the differences of the edges.

    A node's best weights are a_j = A_j max(LEAST, 1 + (ν − d_j)/γ). With r edges above the least, its nearest, ν is
    the mean of their d plus γ(1 − LEAST) times the weight of the others over theirs; r is the largest number for which
    the last of them is above the least.
    """
    E, node = graph.n_edges, graph.edges.T.ravel()
    A, far = np.tile(graph.weights, 2), np.tile(d, 2)
    order = np.lexsort((far, node))
    node, A, far = node[order], A[order], far[order]
    first = np.flatnonzero(np.diff(node, prepend=-1))
    size = np.diff(np.append(first, 2 * E))
    weight, of = _sums(A, first, size), np.repeat(np.arange(len(first)), size)
    total = np.add.reduceat(A, first)[of]
    nu = (_sums(A * far, first, size) + gamma * (1 - LEAST) * (total - weight)) / weight
    rank = np.arange(2 * E) - np.repeat(first, size)
    above = nu > far - gamma * (1 - LEAST)
    r = np.maximum.reduceat(np.where(above, rank, 0), first)
    share = np.empty(2 * E)
    share[order] = A * np.maximum(LEAST, 1 + (nu[first + r][of] - far) / gamma)
    weights = 0.5 * (share[:E] + share[E:])
    weights.flags.writeable = False
    return replace(graph, weights=weights)


def _sums(x: Array, first: Array, size: Array) -> Array:
    """Sums of x from the first of its node on; rounded as one long sum is."""
    running = np.cumsum(x)
    return running - np.repeat(running[first] - x[first], size)
