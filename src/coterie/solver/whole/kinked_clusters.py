"""The optimum on given clusters for losses with kinks: a small linear program, or a quadratic one with a ridge.

One value for each cluster is sought. Rows are rows of these values, and all edges between two clusters are one more,
0 ≈ v_p − v_q with the limits ±c of their duals: so that an interior-point method knows nothing but rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from coterie.kernels.interruption import check
from coterie.kernels.reference.clusters import join_up
from coterie.kernels.reference.interior_point import TRACE, fit
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.kinked_losses import KinkedLosses
from coterie.proofs.dual_clusters import DualClusters

Integers = NDArray[np.int64]

MOST = 4_000  # clusters, in all columns together
ACCURACY = 1e-11  # of the optimum
SLACK = 1e-6  # of its limit: a border whose dual has that much left is none


def best_on(problem: BoundProblem, clusters: DualClusters) -> tuple[Array, Array] | None:
    """Weights (V, n) that are best on these clusters, and slopes (|M|, n) of the losses that prove it of them.

    Clusters that turn out to have equal values become one. None where there are too many.
    """
    f, M, ends, K = problem.f, problem.M, problem.graph.edges, clusters.total
    if K > MOST:
        return None
    assert isinstance(f, KinkedLosses)
    unknown = clusters.label + (np.cumsum(clusters.counts) - clusters.counts)
    pairs, c, border = _borders(unknown, ends, problem.c, K)
    rows = _SparseRows(K, (f.rows.X, unknown[np.repeat(M, f.rows.m)]), (np.tile([1.0, -1.0], (len(c), 1)), pairs))
    y = np.concatenate([f.rows.y, np.zeros(len(c))])
    low, high = (np.concatenate([limit, end]) for limit, end in zip(f.dual_limits, (-c, c), strict=True))
    ridge = np.bincount(unknown[M].ravel(), np.tile(2 * f.ridge, len(M)), minlength=K)
    (z,), (b,) = fit(rows, y[None], low[None], high[None], ridge[None], ACCURACY, True)
    b, across = np.split(b, [len(f.rows.y)])
    slack = np.append(np.abs(across) < (1 - SLACK) * c, True)  # the last one: inside a cluster there is no border
    clusters.counts[:] = join_up(ends, slack[border], clusters.label)
    w = clusters.average(z[unknown])
    q, low, _ = f.design.forces(-b, 2 * f.ridge * w[M])
    return w, q + low


def _borders(unknown: Integers, ends: Integers, c: Array, K: int) -> tuple[Integers, Array, Integers]:
    """The pairs of clusters that share edges, (B, 2), how strong these are together, and which each is of, (E, n)."""
    p, q = np.sort(unknown[ends.T], axis=0)
    apart = p != q
    keys, of = np.unique(p[apart] * K + q[apart], return_inverse=True)
    border = np.full(p.shape, -1)
    border[apart] = of
    strength = np.bincount(of, np.broadcast_to(c[:, None], p.shape)[apart], minlength=len(keys))
    return np.stack(np.divmod(keys, K), axis=1), strength, border


class _SparseRows:
    """What `fit` needs of the rows of a node with K weights, most of which are zero.

    Parts of the rows have values (R, m) at columns (R, m).
    """

    def __init__(self, K: int, *parts: tuple[Array, Integers]) -> None:
        self.K, self.parts = K, parts
        values, columns = (np.concatenate([part[k].ravel() for part in parts]) for k in (0, 1))
        sizes = np.concatenate([np.full(len(part[0]), part[0].shape[1]) for part in parts])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.A = sparse.csr_array((values, columns, starts), shape=(len(sizes), K))
        self.At = self.A.T.tocsr()

    def margins(self, z: Array) -> Array:
        return (self.A @ z[0])[None]

    def forces(self, b: Array) -> Array:
        return (self.At @ b[0])[None]

    @cached_property
    def squares(self) -> tuple[sparse.csr_array, sparse.csc_array]:
        """S with the entries S(1/weight) of AᵀA/weight, and a matrix to put these into."""
        K, keys, products = self.K, [], []
        for values, columns in self.parts:
            keys.append((columns[:, :, None] * K + columns[:, None, :]).reshape(len(values), values.shape[1] ** 2))
            products.append((values[:, :, None] * values[:, None, :]).ravel())
        place, all_keys = np.zeros(K * K, dtype=np.int32), np.concatenate([key.ravel() for key in keys])
        place[all_keys] = 1
        there = np.flatnonzero(place)
        place[there] = np.arange(len(there))
        row = np.repeat(np.arange(self.A.shape[0]), np.concatenate([np.full(len(key), key.shape[1]) for key in keys]))
        entries = np.concatenate(products), (place[all_keys], row)
        starts = np.searchsorted(there, np.arange(K + 1) * K)
        pattern = sparse.csc_array((np.ones(len(there)), there % K, starts), shape=(K, K))
        return sparse.csr_array(entries, shape=(len(there), self.A.shape[0])), pattern

    def factorised(self, D: Array, weight: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
        check()
        S, H = self.squares
        H.data[:] = S @ (1 / weight[0])
        H.setdiag(H.diagonal() * (1 + TRACE) + D[0] + 1e-300)
        unit = 1 / np.sqrt(H.diagonal())
        H.data *= unit[H.indices] * np.repeat(unit, np.diff(H.indptr))
        try:
            factors = splu(H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:  # singular, by rounding
            return lambda h, rest: (np.full_like(rest, np.nan), np.full_like(h, np.nan))

        def solve(h: Array, rest: Array) -> tuple[Array, Array]:
            dz = (unit * factors.solve(unit * (rest - self.forces(h / weight))[0]))[None]
            return dz, -(self.margins(dz) + h) / weight

        return solve
