"""Quadratics in spectral form, H_i = V_iᵀ diag(h_i) V_i, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.reference.ends import Array


def multiply(vector_buffer: Any, V: Array, factors: Array, x: Array, out: Array) -> None:
    """out_i ← V_iᵀ diag(factors_i) V_i x_i."""
    out[:] = np.einsum("irk,ir->ik", V, factors * np.einsum("irk,ik->ir", V, x))


def conjugate(
    vector_buffer: Any, V: Array, h: Array, centre: Array, floor: Array, p: Array, q: Array, out: Array
) -> None:
    """q_i ← the part of p_i in the range of H_i, out_i ← ⟨q_i, ŵ_i⟩ + ½ q_iᵀH_i⁺q_i − floor_i."""
    seen = h > 0
    coordinates = np.einsum("irk,ik->ir", V, p) * seen
    inverse = np.divide(1.0, h, out=np.zeros_like(h), where=seen)
    q[:] = np.einsum("irk,ir->ik", V, coordinates)
    out[:] = np.einsum("ik,ik->i", q, centre) + 0.5 * np.einsum("ir,ir->i", inverse, coordinates**2) - floor
