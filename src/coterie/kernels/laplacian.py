"""The weighted Laplacian of dual repair, DᵀSD, with S (E, n) a weight for each edge and coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import any_n, blocks, is_wide
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.edges import BEGIN
from coterie.kernels.forms import knows_n
from coterie.kernels.prefetch import AHEAD, prefetch_node
from coterie.kernels.reference.laplacian import NO_GROUND
from coterie.kernels.vector import at, put

__all__ = ["NO_GROUND", "add_rows", "apply", "diagonal"]


@inline_llvm
def _begin(ground, x, out):
    for i in range(len(x)):
        for k in range(x.shape[1]):
            out[i, k] = ground[i, k] * x[i, k] if len(ground) > 0 else 0.0


@inline_llvm
def _row(zeros, far, e, start, ends, S, x, out):
    """Add some coordinates of all edges that begin where edge e does; return the edge that comes next."""
    n, i = len(zeros), ends[e, 0]
    own, total = zeros, zeros
    for k in range(n):
        own = put(own, k, x[i, at(start, k)])
    while e < len(ends) and ends[e, 0] == i:
        if len(far) > 0:
            later = ends[min(e + AHEAD, len(ends) - 1), 1]
            prefetch_node(zeros, x, later)
            prefetch_node(zeros, out, later)
        j = ends[e, 1]
        t = zeros
        for k in range(n):
            t = put(t, k, S[e, at(start, k)] * (own[k] - x[j, at(start, k)]))
        for k in range(n):
            total = put(total, k, total[k] + t[k])
        for k in range(n):
            out[j, at(start, k)] -= t[k]
        e += 1
    for k in range(n):
        out[i, at(start, k)] += total[k]
    return e


@jit
def _apply(zeros, far, ends, S, ground, x, out):
    _begin(ground, x, out)
    e = len(ends) - len(ends)
    while e < len(ends):
        e = _row(zeros, far, e, BEGIN, ends, S, x, out)


@jit
def _apply_wide(blocks, far, ends, S, ground, x, out):
    block, tail, n_blocks = blocks
    _begin(ground, x, out)
    e = len(ends) - len(ends)
    while e < len(ends):
        for m in range(n_blocks):
            _row(block, far, e, np.uint64(m * len(block)), ends, S, x, out)
        e = _row(tail, far, e, np.uint64(n_blocks * len(block)), ends, S, x, out)


def apply(far: Any, ends: Any, S: Any, ground: Any, x: Any, out: Any) -> None:
    """out ← (DᵀSD + ground)x; ground (V, n) weighs an edge from each node to a node of weight zero.

    While edges begin at the same node, its x and its sum stay in registers.
    """
    n = x.shape[1]
    kernel = (_apply_wide if is_wide(n) else _apply) if knows_n() else any_n.apply
    kernel(blocks(n), far, ends, S, ground, x, out)


@jit
def diagonal(ends, S, ground, out):
    """out ← the diagonal of DᵀSD + ground."""
    for i in range(len(out)):
        for k in range(out.shape[1]):
            out[i, k] = ground[i, k] if len(ground) > 0 else 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        for k in range(S.shape[1]):
            out[i, k] += S[e, k]
            out[j, k] += S[e, k]


@jit
def add_rows(room, X, starts, nodes, G, x, out):
    """out ← out + XᵀGXx: rows with weights G, each an edge from its node to a node of weight zero."""
    n, total = len(room), room
    for i in range(len(nodes)):
        node = nodes[i]
        for k in range(n):
            total = put(total, k, out[node, k])
        for r in range(starts[i], starts[i + 1]):
            margin = 0.0
            for k in range(n):
                margin += X[r, k] * x[node, k]
            margin *= G[r]
            for k in range(n):
                total = put(total, k, total[k] + margin * X[r, k])
        for k in range(n):
            out[node, k] = total[k]
