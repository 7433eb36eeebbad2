"""Snapping: clusters whose weights are exactly equal.

At the optimum an edge whose dual has slack, |u_e| < c_e, joins equal weights. Long before the iteration has
converged, the duals show these clusters; averaging inside them removes most of the error that is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.kernels.reference.clusters import join_up
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

kernels = Either("clusters")

MARGIN = 1e-6  # an edge has slack when its dual is this much (relatively) below its bound


@dataclass(frozen=True, eq=False)
class DualClusters:
    """The clusters of each coordinate: label (V, n), counts (n)."""

    label: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def shown_by(cls, problem: BoundProblem, u: Array, margin: float = MARGIN) -> DualClusters | None:
        """Return the clusters that the duals show; None for penalties that have none, or none that are known."""
        label = np.empty((problem.graph.n_nodes, problem.n_features), dtype=np.int64)
        by_column = problem.by_column
        if by_column is not None and (by_column.is_norm or by_column.tied.any()) and problem.lam > 0:
            return cls(label, join_up(problem.graph.edges, by_column.joins(u, problem.c, margin), label))
        if problem.penalty.kernel is None or not problem.penalty.is_norm or problem.lam == 0:
            return None
        counts = kernels.find_clusters(problem.penalty.kernel, problem.graph.edges, problem.c, u, margin, label)
        return cls(label, counts)

    @property
    def total(self) -> int:
        """How many there are in all coordinates together."""
        return int(self.counts.sum())

    def average(self, x: Array) -> Array:
        out = np.empty_like(x)
        kernels.average(self.label, self.counts, x, out)
        return out
