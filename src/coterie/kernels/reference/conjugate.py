"""The steps of conjugate gradients on node vectors."""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.ends import Array


def inner(a: Array, b: Array) -> float:
    """⟨a, b⟩."""
    return float(np.einsum("i,i->", a.ravel(), b.ravel()))


def descend(alpha: float, p: Array, Ap: Array, inverse: Array, x: Array, r: Array, z: Array) -> None:
    """One step of preconditioned conjugate gradients: x ← x + αp, r ← r − αAp, z ← r · inverse."""
    x += alpha * p
    r -= alpha * Ap
    np.multiply(inverse, r, out=z)


def turn(beta: float, z: Array, p: Array) -> None:
    """The next direction: p ← z + βp."""
    p *= beta
    p += z
