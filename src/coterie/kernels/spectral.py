"""Quadratics in spectral form, H_i = V_iᵀ diag(h_i) V_i, node by node."""

from __future__ import annotations

from coterie.kernels.compiling import jit
from coterie.kernels.vector import put


@jit
def multiply(vector_buffer, V, factors, x, out):
    """out_i ← V_iᵀ diag(factors_i) V_i x_i."""
    n = len(vector_buffer)
    for i in range(len(V)):
        t = vector_buffer
        for k in range(n):
            t = put(t, k, 0.0)
        for r in range(V.shape[1]):
            d = 0.0
            for k in range(n):
                d += V[i, r, k] * x[i, k]
            d *= factors[i, r]
            for k in range(n):
                t = put(t, k, t[k] + d * V[i, r, k])
        for k in range(n):
            out[i, k] = t[k]


@jit
def conjugate(vector_buffer, V, h, centre, floor, p, q, out):
    """q_i ← the part of p_i in the range of H_i, out_i ← ⟨q_i, ŵ_i⟩ + ½ q_iᵀH_i⁺q_i − floor_i."""
    n = len(vector_buffer)
    for i in range(len(V)):
        t, total = vector_buffer, -floor[i]
        for k in range(n):
            t = put(t, k, 0.0)
        for r in range(V.shape[1]):
            if h[i, r] > 0:
                d = 0.0
                for k in range(n):
                    d += V[i, r, k] * p[i, k]
                total += 0.5 * d * d / h[i, r]
                for k in range(n):
                    t = put(t, k, t[k] + d * V[i, r, k])
        for k in range(n):
            q[i, k] = t[k]
        for k in range(n):
            total += t[k] * centre[i, k]
        out[i] = total
