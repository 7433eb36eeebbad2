"""Conjugate gradients on node vectors, with the compiled passes of `flow.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.kernels import flow


def conjugate_gradients(
    apply: Callable[[Any, Any], None],
    rest: Any,
    diagonal: Any,
    keep: Callable[[Any], None],
    steps: int,
    accuracy: float,
) -> Any:
    """A few Jacobi-preconditioned steps on a (projected) Laplacian, all coordinates at once; `rest` is overwritten.

    ``apply(x, out)`` writes the product, ``keep(x)`` projects in place; `accuracy` is relative.
    """
    inverse = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    x, r, Ap = np.zeros_like(rest), rest, np.empty_like(rest)
    z = inverse * r
    keep(z)
    p, rz = z.copy(), flow.inner(r, z)
    enough = accuracy**2 * rz
    for _ in range(steps):
        if rz <= enough:
            break
        apply(p, Ap)
        curvature = flow.inner(p, Ap)
        if curvature <= 0:
            break
        flow.descend(rz / curvature, p, Ap, inverse, x, r, z)
        keep(z)
        rz, before = flow.inner(r, z), rz
        flow.turn(rz / before, z, p)
    return x
