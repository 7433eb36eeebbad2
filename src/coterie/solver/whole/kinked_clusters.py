"""The optimum on given clusters for losses with kinks: a small linear program, or a quadratic one with a ridge.

One value for each cluster is sought. Rows are rows of these values, and all edges between two clusters are one more,
0 ≈ v_p − v_q with the limits ±c of their duals: so that an interior-point method knows nothing but rows.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.choice import Either
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.kinked_losses import KinkedLosses
from coterie.proofs.dual_clusters import DualClusters

program, meetings, kernels = Either("kinked_program"), Either("borders"), Either("clusters")

MOST = 4_000  # clusters, in all columns together
ACCURACY = 1e-11  # of the optimum
SLACK = 1e-6  # of its limit: a border whose dual has that much left is none


def best_on(problem: BoundProblem, clusters: DualClusters, w: Array, u: Array, b: Array) -> tuple[Array, Array] | None:
    """Weights (V, n) that are best on these clusters, and slopes (|M|, n) of the losses that prove it of them.

    Weights w and duals u of edges and b of rows should be near; b becomes that of the slopes. Clusters that turn out to
    have equal values become one. None where there are too many, or no numbers come of them.
    """
    f, M, K = problem.f, problem.M, clusters.total
    if K > MOST:
        return None
    assert isinstance(f, KinkedLosses)
    first = np.cumsum(clusters.counts) - clusters.counts
    unknown = clusters.label + first
    pairs, c, across = meetings.borders(problem.graph.edges, unknown, problem.c, u, K)
    low, high = (np.concatenate([limit, end]) for limit, end in zip(f.dual_limits, (-c, c), strict=True))
    ridge = np.bincount(unknown[M].ravel(), np.tile(2 * f.ridge, len(M)), minlength=K)
    z, duals = np.empty(K), np.concatenate([b, across])
    z[unknown] = clusters.average(w)
    program.minimise(f.rows.X, f.rows.y, f.rows.starts, unknown[M], pairs, low, high, ridge, ACCURACY, z, duals)
    if not (np.isfinite(z).all() and np.isfinite(duals).all()):
        return None
    b[:], across = np.split(duals, [len(b)])
    count, part = kernels.connected(K, *pairs[np.abs(across) < (1 - SLACK) * c].T)
    clusters.label[:] = part[unknown] - part[first]  # parts are numbered as clusters are, column after column
    clusters.counts[:] = np.diff(part[first], append=count)
    w = clusters.average(z[unknown])
    q, low, _ = f.design.forces(-b, 2 * f.ridge * w[M])
    return w, q + low
