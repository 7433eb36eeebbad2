"""The norm of the scaled incidence matrix across ranks, by Lanczos: see `kernels.reference.norms`."""

from __future__ import annotations

import numpy as np

from coterie.engines.mpi.part import Part
from coterie.problem.arrays import Array


def lanczos(part: Part, s: Array, d: Array, steps: int) -> tuple[Array, Array]:
    """Return the tridiagonal (alpha, beta) of ½ T^½ Dᵀ diag(s) D T^½ with T = 1/d, from a vector by chance."""
    alpha, beta, own = np.zeros(steps), np.zeros(steps), slice(part.own)
    (i, j), root, V = part.problem.graph.edges.T, 1.0 / np.sqrt(d), len(d)

    def inner(a: Array, b: Array) -> float:
        return part.crew.sum(float((a[own] * b[own]).sum()))

    x = part.told(np.random.default_rng(part.crew.rank).standard_normal(V))
    before, q = np.zeros(V), x / np.sqrt(inner(x, x))
    for k in range(steps):
        scaled = q * root
        t = 0.5 * s * (scaled[i] - scaled[j])
        y = root * (np.bincount(i, t, minlength=V) - np.bincount(j, t, minlength=V))
        alpha[k] = inner(q, y)
        y -= alpha[k] * q + (beta[k - 1] * before if k > 0 else 0.0)
        beta[k] = np.sqrt(inner(y, y))
        if beta[k] < 1e-12:
            return alpha[: k + 1], beta[: k + 1]
        before, q = q, part.told(y / beta[k])
    return alpha, beta
