"""The norm of the scaled incidence matrix, by Lanczos."""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.ends import Array, Integers


def lanczos(ends: Integers, s: Array, d: Array, x: Array, steps: int) -> tuple[Array, Array]:
    """Return the tridiagonal (alpha, beta) of ½ T^½ Dᵀ diag(s) D T^½ with T = 1/d, from the starting vector x."""
    alpha, beta = np.zeros(steps), np.zeros(steps)
    (i, j), root, V = ends.T, 1.0 / np.sqrt(d), len(x)
    before, q = np.zeros_like(x), x / np.sqrt((x * x).sum())
    for k in range(steps):
        scaled = q * root
        t = 0.5 * s * (scaled[i] - scaled[j])
        y = root * (np.bincount(i, t, minlength=V) - np.bincount(j, t, minlength=V))
        alpha[k] = (q * y).sum()
        y -= alpha[k] * q + (beta[k - 1] * before if k > 0 else 0.0)
        beta[k] = np.sqrt((y * y).sum())
        if beta[k] < 1e-12:
            return alpha[: k + 1], beta[: k + 1]
        before, q = q, y / beta[k]
    return alpha, beta
