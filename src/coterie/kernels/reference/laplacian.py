"""The weighted Laplacian of dual repair, DᵀSD, with S (E, n) a weight for each edge and coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.reference.ends import Array, Integers, at_ends, by_group
from coterie.kernels.reference.flow import differences

NO_GROUND = np.empty((0, 0))


def apply(far: Any, ends: Integers, S: Array, ground: Array, x: Array, out: Array) -> None:
    """out ← (DᵀSD + ground)x; ground (V, n) weighs an edge from each node to a node of weight zero."""
    out[:] = at_ends(ends, S * differences(ends, x), len(x))
    if len(ground):
        out += ground * x


def diagonal(ends: Integers, S: Array, ground: Array, out: Array) -> None:
    """out ← the diagonal of DᵀSD + ground."""
    out[:] = sum(by_group(ends[:, side].astype(np.int64), S, len(out)) for side in (0, 1))
    if len(ground):
        out += ground


def add_rows(room: Any, X: Array, starts: Integers, nodes: Integers, G: Array, x: Array, out: Array) -> None:
    """out ← out + XᵀGXx: rows with weights G, each an edge from its node to a node of weight zero."""
    margins = np.einsum("rk,rk->r", X, x[np.repeat(nodes, np.diff(starts))])
    out[nodes] += np.add.reduceat((G * margins)[:, None] * X, starts[:-1], axis=0)
