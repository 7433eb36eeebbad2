"""Newton steps of a sum over rows where nodes have fewer rows than columns: see `coterie.kernels.few_rows`.

With D > 0 diagonal, R = √bend and K = X D⁻¹ Xᵀ (Woodbury):

    (D + Xᵀ R² X)⁻¹ = D⁻¹ − D⁻¹ Xᵀ R (1 + R K R)⁻¹ R X D⁻¹.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels import is_wide
from coterie.kernels.reference.blocks import by_node
from coterie.kernels.reference.cholesky import solve


def are_few(rows, n):
    """Whether so many rows of n columns are worth it."""
    return is_wide(n) and 2 * rows <= n


def inner_products(X, diagonal):
    """K = X D⁻¹ Xᵀ of every node; X is (V, m, n)."""
    return (X / diagonal[:, None, :]) @ X.transpose(0, 2, 1)


def step_by_rows(X, diagonal, K, bend, g):
    """−(D + Xᵀ diag(bend) X)⁻¹ g of every node."""
    root = np.sqrt(bend)
    A = root[:, :, None] * K * root[:, None, :] + np.eye(K.shape[1])
    share = solve(A, root * by_node(X, g / diagonal))
    return (-g - np.einsum("imk,im->ik", X, root * share)) / diagonal
