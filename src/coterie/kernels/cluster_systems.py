"""Systems of one unknown for each cluster: `reference.cluster_systems`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import vector_buffer
from coterie.kernels.compiling import jit
from coterie.kernels.conjugate import descend, inner, turn
from coterie.kernels.interruption import WORK, time_is_up
from coterie.kernels.vector import put


def solve(H: Any, at: Any, ridge: Any, diagonal: Any, right: Any, size: Any, most: int, accuracy: float) -> Any:
    """x, by conjugate gradients that know the diagonal; None where so many steps do not find it.

    Steps are compiled together, and taken in pieces, between which limits are noticed.
    """
    inverse = np.divide(1.0, diagonal, out=diagonal, where=diagonal > 0)
    z, room = inverse * right, vector_buffer(at.shape[1])
    x, p, Ap, rz = np.zeros_like(z), z.copy(), np.empty_like(z), inner(right, z)
    first, many, done = max(rz, inner(size, inverse * size)), max(WORK // H.size, 1), False
    vectors = inverse, right, x, z, p, Ap
    while most > 0 and not (done or time_is_up()):
        rz, done = _take_steps(room, H, at, ridge, *vectors, rz, accuracy**2 * first, min(most, many))
        most -= many
    return x if rz <= accuracy * first else None


@jit
def _take_steps(room, H, at, ridge, inverse, r, x, z, p, Ap, rz, enough, most):
    """So many steps, or fewer; return the size of what is left, and whether there are to be no more."""
    for _ in range(most):
        if rz <= enough:
            return rz, True
        multiply(room, H, at, ridge, p, Ap)
        curvature = inner(p, Ap)
        if curvature <= 0:
            return rz, True
        descend(rz / curvature, p, Ap, inverse, x, r, z)
        before, rz = rz, inner(r, z)
        turn(rz / before, z, p)
    return rz, False


@jit
def multiply(room, H, at, ridge, x, out):
    """out ← (Σ_i PᵢᵀHᵢPᵢ + ridge) x."""
    n, values = len(room), room
    for k in range(len(x)):
        out[k] = ridge[k] * x[k]
    for i in range(len(H)):
        for k in range(n):
            values = put(values, k, x[at[i, k]])
        for k in range(n):
            total = 0.0
            for m in range(n):
                total += H[i, k, m] * values[m]
            out[at[i, k]] += total
