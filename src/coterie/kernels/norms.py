"""The norm of the scaled incidence matrix, by Lanczos."""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import jit


@jit
def lanczos(ends, s, d, x, steps):
    """Return the tridiagonal (alpha, beta) of ½ T^½ Dᵀ diag(s) D T^½ with T = 1/d, from the starting vector x."""
    alpha, beta = np.zeros(steps), np.zeros(steps)
    root = 1.0 / np.sqrt(d)
    q = x / np.sqrt((x * x).sum())
    before = np.zeros_like(x)
    for k in range(steps):
        y = np.zeros_like(x)
        for e in range(len(ends)):
            i, j = ends[e, 0], ends[e, 1]
            t = 0.5 * s[e] * (q[i] * root[i] - q[j] * root[j])
            y[i] += t * root[i]
            y[j] -= t * root[j]
        alpha[k] = (q * y).sum()
        for i in range(len(y)):
            y[i] -= alpha[k] * q[i] + (beta[k - 1] * before[i] if k > 0 else 0.0)
        beta[k] = np.sqrt((y * y).sum())
        if beta[k] < 1e-12:
            return alpha[: k + 1], beta[: k + 1]
        before = q
        q = y / beta[k]
    return alpha, beta
