"""Quadratic models of losses whose primal update has no closed form, all nodes at once."""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.blocks import blocks, by_node
from coterie.kernels.reference.cholesky import solve
from coterie.kernels.reference.exact import quiet

EVERYWHERE = 1e300  # a way that leads anywhere


@quiet
def row_model(psi, room, X, y, share, starts, ridge, w, before, slope, H):
    """slope, H ← gradient and curvature at w_i of a quadratic that lies above L_i wherever no margin has moved further
    from w_i than it has come from `before`: there the bend of a row is at most `most_bend`.

    With an empty `before`, it lies above L_i everywhere. Return the longest way.
    """
    longest, n = 0.0, X.shape[1]
    for nodes, rows, there in blocks(starts):
        x, labels, direction = X[rows] * there[:, :, None], y[rows], psi.direction(y[rows])
        e, way = direction * by_node(x, w[nodes]) + psi.shift(labels), EVERYWHERE
        if len(before):
            way = np.abs(by_node(x, w[nodes] - before[nodes]))
            longest = max(longest, float(way.max(initial=0.0)))
        pull = there * share[rows] * direction * psi.slope(e, labels)
        bend = there * share[rows] * psi.most_bend(e, labels, way)
        slope[nodes] = 2 * ridge * w[nodes] + np.einsum("imk,im->ik", x, pull)
        H[nodes] = 2 * ridge * np.eye(n) + (x * bend[:, :, None]).transpose(0, 2, 1) @ x
    return longest


@quiet
def model_fall(room, H, pull):
    """Return Σ ½⟨pull_i, H_i⁻¹ pull_i⟩: by how much linear terms lower the minima of models."""
    return -0.5 * float((pull * solve(H, pull)).sum())
