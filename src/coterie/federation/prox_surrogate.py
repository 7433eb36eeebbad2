"""A surrogate of the sites' proximal maps, learnt from their replies.

The reply ŵ(v) to a centre v is a proximal map: in the metric 1/τ its Jacobian J is symmetric with 0 ≼ J ≼ 1. Three
things are known of it.

* Boundary nodes that share a cluster have exactly equal weights in the reply, and move together: J = Z K Zᵀ, with
  orthonormal columns of Z, one per cluster and coordinate.
* Each round shows K along one more direction: Zᵀ Δŵ = K Zᵀ Δv. Symmetric rank-one updates learn from that.
* Before any is known, all nodes of a site are taken to move half as far as they are pulled when they are pulled
  together, and a tenth as far when they are pulled apart: their data and inner edges hold them.

J itself would have (boundary × n)² entries for a site, so it is kept in factors, and applied by them; where most sites
are so small that J has fewer entries than its factors, they are multiplied out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

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
    part : array of int
        The site of each boundary node, ascending.
    free : array of bool
        Boundary nodes that move; the others keep their weights whatever is asked: J is 0 there.
    """

    def __init__(
        self, replies: Sequence[tuple[Array, Array]], tau: Array, part: NDArray[np.int64], free: NDArray[np.bool_]
    ) -> None:
        self.w, g = replies[-1]
        self.v = self.w + tau[:, None] * g
        self.root = np.sqrt(tau)[:, None]
        nodes = np.flatnonzero(free)
        Z, starts = _clusters(self.w, self.root, nodes, part[nodes])
        together, steps = self._seen(csr_array(Z.T), replies[-MEMORY:], nodes, part[nodes])
        Q, K = _learn(together, steps, starts)
        out, back = (diags_array(np.repeat(scale, self.w.shape[1])) for scale in (self.root[:, 0], 1 / self.root[:, 0]))
        factors = [(out @ (APART * Z), Z.T @ back), (out @ (Z @ Q) @ K, (Z @ Q).T @ back)]
        entries = (self.w.shape[1] * np.bincount(part[nodes])) ** 2
        small = entries.sum() <= sum(left.nnz + right.nnz for left, right in factors)
        terms = [(sum(left @ right for left, right in factors),)] if small else factors
        self.J = [tuple(map(csr_array, term)) for term in terms]

    def __call__(self, v: Array) -> Array:
        x = (v - self.v).ravel()
        moved = sum(reduce(lambda y, factor: factor @ y, reversed(term), x) for term in self.J)
        return self.w + moved.reshape(v.shape)

    def _seen(
        self, Zt: csr_array, replies: Sequence[tuple[Array, Array]], nodes: NDArray[np.int64], part: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """In the basis Z: all nodes of a site moving together, (C, n), and past steps (Δŵ, Δv), (C, pairs, 2)."""
        B, n = self.w.shape
        site = np.unique(part, return_inverse=True)[1]
        length = 1.0 / self.root[nodes, 0]
        alike = np.zeros((B, n, n))
        alike[nodes] = (length / np.sqrt(np.bincount(site, length**2))[site])[:, None, None] * np.eye(n)
        w = Zt @ np.stack([(w / self.root).ravel() for w, _ in replies], axis=1)
        g = Zt @ np.stack([(g * self.root).ravel() for _, g in replies], axis=1)
        dw, dg = np.diff(w, axis=1), np.diff(g, axis=1)
        return Zt @ alike.reshape(B * n, n), np.stack([dw, dw + dg], axis=2)


def _clusters(
    w: Array, root: Array, nodes: NDArray[np.int64], part: NDArray[np.int64]
) -> tuple[csr_array, NDArray[np.int64]]:
    """Orthonormal columns, (Bn, clusters of all sites and coordinates): one cluster moves, the others stay.

    Columns go site by site; the second is where those of each site start, and where all end.
    """
    n = w.shape[1]
    row = (nodes[:, None] * n + np.arange(n)).ravel()
    site, coordinate, value = np.repeat(part, n), np.tile(np.arange(n), len(nodes)), w[nodes].ravel()
    order = np.lexsort((value, coordinate, site))
    keys = site[order], coordinate[order], value[order]
    new = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    column = np.concatenate([[0], np.cumsum(new)]) if len(order) else order
    count = int(column[-1]) + 1 if len(order) else 0
    entry = 1.0 / root[row[order] // n, 0]
    entry = entry / np.sqrt(np.bincount(column, entry**2, minlength=count))[column]
    first = np.flatnonzero(np.diff(keys[0], prepend=-1))
    return csr_array((entry, (row[order], column)), shape=(w.size, count)), np.append(column[first], count)


def _learn(together: Array, steps: Array, starts: NDArray[np.int64]) -> tuple[csr_array, csr_array]:
    """Return, in blocks of sites, a basis Q of what has been learnt, and K − APART in it; elsewhere, K is APART.

    Sites with equally many clusters are learnt at once.
    """
    (C, n), width = together.shape, np.diff(starts)
    columns = np.concatenate([together, steps.reshape(C, 2 * steps.shape[1])], axis=1)
    size = np.minimum(width, columns.shape[1])  # of each basis
    first = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    bases, maps = _Blocks(), _Blocks()
    for c in np.unique(width):
        sites = np.flatnonzero(width == c)
        rows = starts[sites, None] + np.arange(c)
        at = first[sites, None] + np.arange(size[sites[0]])
        seen = columns[rows]
        Q = np.linalg.qr(seen)[0] if c > seen.shape[2] else np.broadcast_to(np.eye(c), (len(sites), c, c))
        inside = Q.transpose(0, 2, 1) @ seen
        start = inside[:, :, :n]
        K = APART * np.eye(Q.shape[2]) + (TOGETHER - APART) * start @ start.transpose(0, 2, 1)
        for k in range(n, inside.shape[2], 2):
            K = _update(K, inside[:, :, k], inside[:, :, k + 1])
        bases.add(rows, at, Q)
        maps.add(at, at, K - APART * np.eye(Q.shape[2]))
    return bases.matrix((C, int(first[-1]))), maps.matrix((int(first[-1]), int(first[-1])))


def _update(K: Array, dw: Array, dv: Array) -> Array:
    """The symmetric rank-one changes after which K dv = dw, clipped to 0 ≼ K ≼ 1; one K per site."""
    miss = dw - np.einsum("sij,sj->si", K, dv)
    along = np.einsum("si,si->s", miss, dv)
    live = np.abs(along) > DEGENERATE * np.linalg.norm(miss, axis=1) * np.linalg.norm(dv, axis=1)
    if not live.any():
        return K
    K, miss = K.copy(), miss[live]
    values, vectors = np.linalg.eigh(K[live] + miss[:, :, None] * miss[:, None, :] / along[live, None, None])
    K[live] = (vectors * np.clip(values, 0.0, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return K


class _Blocks:
    """Entries of a sparse matrix, added in stacks of dense blocks: block s has the rows[s] and the columns[s]."""

    def __init__(self) -> None:
        self.entries: list[tuple[Array, Array, Array]] = []

    def add(self, rows: NDArray[np.int64], columns: NDArray[np.int64], values: Array) -> None:
        i, j = np.broadcast_arrays(rows[:, :, None], columns[:, None, :])
        keep = values != 0
        self.entries.append((values[keep], i[keep], j[keep]))

    def matrix(self, shape: tuple[int, int]) -> csr_array:
        if not self.entries:
            return csr_array(shape)
        values, i, j = (np.concatenate(one) for one in zip(*self.entries, strict=True))
        return csr_array((values, (i, j)), shape=shape)
