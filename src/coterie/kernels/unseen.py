"""Directions that rows do not see, for conjugate gradients: see `coterie.kernels.reference.unseen`."""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.reference.unseen import DEPENDENT
from coterie.kernels.vector import put


@inline_llvm
def _size(vector, inverse, i):
    total = 0.0
    for k in range(len(vector)):
        total += vector[k] * vector[k] * inverse[i, k]
    return total


@jit
def factorise(vector_buffer, nodes, rows, inverse, F):
    """F ← what `leave` takes, of rows at these nodes, some of which may be zero, and the inverses of D, (V, n)."""
    n = len(vector_buffer)
    for q in range(len(nodes)):
        i = nodes[q]
        for a in range(rows.shape[1]):
            t = vector_buffer
            for k in range(n):
                t = put(t, k, rows[q, a, k])
            before = _size(t, inverse, i)
            for b in range(a):
                share = 0.0
                for k in range(n):
                    share += t[k] * inverse[i, k] * F[q, b, k]
                for k in range(n):
                    t = put(t, k, t[k] - share * F[q, b, k])
            size = _size(t, inverse, i)
            scale = 1 / np.sqrt(size) if size > DEPENDENT * before else 0.0
            for k in range(n):
                F[q, a, k] = scale * t[k]
        for a in range(rows.shape[1]):
            for k in range(n):
                F[q, a, k] *= inverse[i, k]


@jit
def leave(vector_buffer, nodes, F, r, z):
    """z_i ← z_i − FᵀFr_i at these nodes; r and z may be the same."""
    n = len(vector_buffer)
    for q in range(len(nodes)):
        i, t = nodes[q], vector_buffer
        for k in range(n):
            t = put(t, k, z[i, k])
        for a in range(F.shape[1]):
            share = 0.0
            for k in range(n):
                share += F[q, a, k] * r[i, k]
            for k in range(n):
                t = put(t, k, t[k] - share * F[q, a, k])
        for k in range(n):
            z[i, k] = t[k]
