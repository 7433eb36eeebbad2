"""A surrogate of the sites' proximal maps, learnt from their replies.

The reply ŵ(v) to a centre v is a proximal map: in the metric 1/τ its Jacobian J is symmetric with 0 ≼ J ≼ 1. Three
things are known of it.

* Boundary nodes that share a cluster have exactly equal weights in the reply, and move together: J = Z K Zᵀ, with
  orthonormal columns of Z, one per cluster and coordinate.
* Each round shows K along one more direction: Zᵀ Δŵ = K Zᵀ Δv. Symmetric rank-one updates learn from that.
* Before any is known, all nodes of a site are taken to move half as far as they are pulled when they are pulled
  together, and a tenth as far when they are pulled apart: their data and inner edges hold them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import block_diag, csr_array

from coterie.problem.arrays import Array

TOGETHER, APART = 0.5, 0.1
MEMORY = 20  # replies of the past; older ones come from other pieces of the map
DEGENERATE = 1e-10  # relative: a pair that says nothing


class ProxSurrogate:
    """ŵ(v) ≈ ŵ + J (v − v̂) for all sites together, around their latest replies.

    Parameters
    ----------
    replies : sequence of (ŵ, g), arrays of shape (B, n)
        What all sites have replied, oldest first, to the centres ŵ + τg; a site that missed a round repeats itself.
    tau : array of shape (B,)
    sites : sequence of slice
        Where the boundary nodes of each site stand.
    held : set of int
        Sites that keep their weights whatever is asked: J is 0 there.
    """

    def __init__(
        self, replies: Sequence[tuple[Array, Array]], tau: Array, sites: Sequence[slice], held: set[int]
    ) -> None:
        self.w, g = replies[-1]
        self.v = self.w + tau[:, None] * g
        self.root = np.sqrt(tau)[:, None]
        free = [at for k, at in enumerate(sites) if k not in held and at.stop > at.start]
        learnt = [_learn(replies[-MEMORY:], self.root, at) for at in free]
        Z = _stacked([Z for Z, _, _ in learnt], free, self.w.shape)
        J = APART * Z @ Z.T
        if learnt:
            ZQ = Z @ csr_array(block_diag([Q for _, Q, _ in learnt], format="csr"))
            K = csr_array(block_diag([K - APART * np.eye(len(K)) for _, _, K in learnt], format="csr"))
            J = J + ZQ @ K @ ZQ.T
        self.J = csr_array(J)

    def __call__(self, v: Array) -> Array:
        moved = self.J @ ((v - self.v) / self.root).ravel()
        return self.w + self.root * moved.reshape(v.shape)


def _learn(replies: Sequence[tuple[Array, Array]], root: Array, at: slice) -> tuple[Array, Array, Array]:
    """Return Z of one site, a basis Q of what has been learnt, and K in that basis; elsewhere, K is APART."""
    Z = _clusters(replies[-1][0][at], root[at])
    past = [(Z.T @ (w[at] / root[at]).ravel(), Z.T @ (g[at] * root[at]).ravel()) for w, g in replies]
    pairs = [(w1 - w0, w1 - w0 + g1 - g0) for (w0, g0), (w1, g1) in pairwise(past)]
    n = replies[0][0].shape[1]
    length = 1.0 / root[at]
    together = Z.T @ np.kron(length / np.linalg.norm(length), np.eye(n))
    columns = np.stack([*together.T, *(x for pair in pairs for x in pair)], axis=1)
    Q = np.eye(len(columns)) if columns.shape[1] >= len(columns) else np.linalg.qr(columns)[0]
    start = Q.T @ together
    K = APART * np.eye(Q.shape[1]) + (TOGETHER - APART) * start @ start.T
    for dw, dv in pairs:
        K = _update(K, Q.T @ dw, Q.T @ dv)
    return Z, Q, K


def _clusters(w: Array, root: Array) -> Array:
    """Orthonormal columns (bn, clusters of all coordinates): one cluster moves, the others stay."""
    b, n = w.shape
    columns = []
    for k in range(n):
        label = np.unique(w[:, k], return_inverse=True)[1]
        moves = np.zeros((b, n, int(label.max()) + 1))
        moves[np.arange(b), k, label] = 1.0 / root[:, 0]
        columns.append(moves.reshape(b * n, -1))
    Z = np.concatenate(columns, axis=1)
    return Z / np.linalg.norm(Z, axis=0)


def _update(K: Array, dw: Array, dv: Array) -> Array:
    """The symmetric rank-one change after which K dv = dw, clipped to 0 ≼ K ≼ 1."""
    miss = dw - K @ dv
    along = float(miss @ dv)
    if abs(along) <= DEGENERATE * float(np.linalg.norm(miss) * np.linalg.norm(dv)):
        return K
    values, vectors = np.linalg.eigh(K + np.outer(miss, miss) / along)
    return (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T


def _stacked(blocks: Sequence[Array], at: Sequence[slice], shape: tuple[int, ...]) -> csr_array:
    """Blocks side by side, each in the rows of its site."""
    n = shape[1]
    width = np.concatenate([[0], np.cumsum([Z.shape[1] for Z in blocks])]).astype(np.int64)
    rows, columns, values = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for Z, where, first in zip(blocks, at, width, strict=False):
        i, j = np.nonzero(Z)
        rows.append(i + where.start * n)
        columns.append(j + first)
        values.append(Z[i, j])
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return csr_array(entries, shape=(shape[0] * n, int(width[-1])))
