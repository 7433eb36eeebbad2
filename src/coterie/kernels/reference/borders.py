"""Borders between clusters: which of these share edges, and how strong the edges are together."""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.ends import Array, Integers


def borders(ends: Integers, unknown: Integers, c: Array, u: Array, K: int) -> tuple[Integers, Array, Array]:
    """The pairs of clusters that share edges, (B, 2) and in order, how strong these are together, and their dual.

    unknown (V, n) says which of the K clusters each coordinate of each node belongs to.
    """
    one, other = unknown[ends[:, 0]], unknown[ends[:, 1]]
    e, k = np.nonzero(one != other)
    p, q = one[e, k], other[e, k]
    keys, of = np.unique(np.minimum(p, q) * K + np.maximum(p, q), return_inverse=True)
    strength, dual = (np.bincount(of, of_edge, minlength=len(keys)) for of_edge in (c[e], np.sign(p - q) * u[e, k]))
    return np.stack(np.divmod(keys, K), axis=1), strength, dual
