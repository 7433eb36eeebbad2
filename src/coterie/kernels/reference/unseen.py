"""Directions that rows do not see, for conjugate gradients.

With D > 0 diagonal and rows Q, the z with Qz = 0 that is best for ½⟨z, Dz⟩ − ⟨r, z⟩ is D⁻¹r − FᵀFr, where F = PD⁻¹
and the rows of P are those of Q made orthonormal in ⟨·, D⁻¹·⟩. What r has in directions that rows see does not count.
"""

from __future__ import annotations

from typing import Any

DEPENDENT = 1e-24  # of the square of a row: what is left of it, when others are taken off, is rounding


def factorise(vector_buffer: Any, nodes: Any, rows: Any, inverse: Any, F: Any) -> None:
    """F ← what `leave` takes, of rows at these nodes, some of which may be zero, and the inverses of D, (V, n).

    It asks for no library: tensors on a device are arrays as well.
    """
    inverse = inverse[nodes]
    for a in range(F.shape[1]):
        before, row = F[:, :a], rows[:, a]
        share = (before * (row * inverse)[:, None]).sum(2)
        left = row - (before * share[:, :, None]).sum(1)
        size = (left * left * inverse).sum(1)
        counts = size > DEPENDENT * (row * row * inverse).sum(1)
        F[:, a] = left * (counts / (size + ~counts) ** 0.5)[:, None]
    F *= inverse[:, None]


def leave(vector_buffer: Any, nodes: Any, F: Any, r: Any, z: Any) -> None:
    """z_i ← z_i − FᵀFr_i at these nodes; r and z may be the same."""
    z[nodes] -= (F * (F * r[nodes][:, None]).sum(2)[:, :, None]).sum(1)
