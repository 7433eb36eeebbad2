"""Newton steps of a sum over rows where a node has fewer rows than columns: systems of as many unknowns as rows.

With D > 0 diagonal, R = √bend and K = X D⁻¹ Xᵀ (Woodbury):

    (D + Xᵀ R² X)⁻¹ = D⁻¹ − D⁻¹ Xᵀ R (1 + R K R)⁻¹ R X D⁻¹.

Where D is small the difference loses digits, so that a step is good to some of them: Newton's method makes up for it.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels import UNROLL_UP_TO
from coterie.kernels.cholesky import dot, solve_in_place
from coterie.kernels.compiling import inline_llvm


@inline_llvm
def are_few(rows, n):
    """Whether so many rows of n columns are worth it. (Few columns are held in registers: nothing is faster.)"""
    return n > UNROLL_UP_TO and 2 * rows <= n


@inline_llvm
def inner_products(X, first, last, diagonal, scaled, K):
    """K ← the lower half of X D⁻¹ Xᵀ over the rows from first to last."""
    for a in range(last - first):
        for k in range(len(diagonal)):
            scaled[k] = X[first + a, k] / diagonal[k]
        for b in range(a + 1):
            K[a, b] = dot(scaled, X[first + b])


@inline_llvm
def step_by_rows(X, first, last, diagonal, K, bend, g, step, A, pull, share):
    """step ← −(D + Xᵀ diag(bend) X)⁻¹ g; A, pull and share are room for a matrix and two vectors, one row each."""
    n, m = len(diagonal), last - first
    for k in range(n):
        step[k] = g[k] / diagonal[k]
    for a in range(m):
        for b in range(a + 1):
            A[a, b] = np.sqrt(bend[a]) * K[a, b] * np.sqrt(bend[b])
        A[a, a] += 1.0
        pull[a] = np.sqrt(bend[a]) * dot(X[first + a], step)
    solve_in_place(pull[:m], A[:m, :m], pull[:m], share[:m])
    for k in range(n):
        step[k] = -g[k]
    for a in range(m):
        t = np.sqrt(bend[a]) * share[a]
        for k in range(n):
            step[k] -= t * X[first + a, k]
    for k in range(n):
        step[k] /= diagonal[k]
