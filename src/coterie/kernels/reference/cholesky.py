"""Small positive definite systems, one for each node, all at once."""

from __future__ import annotations

import numpy as np


def solve(H, g):
    """−H_i⁻¹g_i of every node, by L diag(d) Lᵀ; a pivot that is only rounding counts as a little curvature.

    The lower halves of H (V, n, n) are read. Nodes come last inside, where loops over them are short steps in memory.
    """
    n, A, step = g.shape[1], H.transpose(1, 2, 0).copy(), -g.T
    least = np.maximum(1e-14 * np.einsum("kki->ki", A), 1e-300)
    d = np.empty_like(least)
    for k in range(n):
        d[k] = np.maximum(A[k, k], least[k])
        below = A[k + 1 :, k] / d[k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * below
        A[k + 1 :, k] = below
        step[k + 1 :] -= below * step[k]
    step /= d
    for k in range(n - 1, 0, -1):
        step[:k] -= A[k, :k] * step[k]
    return step.T
