"""Systems of one unknown for each cluster, whose matrix is the sum of what nodes have: (Σ_i PᵢᵀHᵢPᵢ + ridge) x = right.

Pᵢ picks the values x[at[i]] of node i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.gradients import ConjugateGradients
from coterie.kernels.reference.ends import Array, Integers, by_group


def multiply(room: Any, H: Array, at: Integers, ridge: Array, x: Array, out: Array) -> None:
    """out ← (Σ_i PᵢᵀHᵢPᵢ + ridge) x."""
    products = np.einsum("ikm,im->ik", H, x[at])
    out[:] = by_group(at.ravel(), products.reshape(-1, 1), len(out))[:, 0] + ridge * x


def solve(
    H: Array, at: Integers, ridge: Array, diagonal: Array, right: Array, size: Array, most: int, accuracy: float
) -> Array | None:
    """x, by conjugate gradients that know the diagonal; None where so many steps do not find it.

    What is left is relative to `right`, or to `size`, where that is larger. Right and diagonal are used up.
    """
    descent = ConjugateGradients(lambda x, out: multiply(None, H, at, ridge, x, out), right, diagonal)
    descent.first = max(descent.first, float((size * descent.inverse * size).sum()))
    x: Array = descent.run(most, accuracy)
    return x if descent.rz <= accuracy * descent.first else None
