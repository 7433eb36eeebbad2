"""Directions that no row sees, exactly: a column of zeros, two equal columns, dummies that add up to the intercept.

Whether a product vanishes is decided without rounding. A column that is a multiple of another *up to rounding* is
not such a case: what rounding left is data, and weights large enough make use of it.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum, lcm

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from coterie.kernels.interruption import aside
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design

LARGEST = 64  # denominator of the coefficients that are tried
ALIKE = 1e-4  # how far a coefficient may be from such a fraction: what is tried is checked anyway


def independent_columns(design: Design, nodes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark as many columns as these nodes have different rows, if those columns look independent; otherwise all.

    If they are (which is for others to prove), they can make up for whatever weights the others have.
    """
    X = np.unique(design.X[np.repeat(nodes, np.diff(design.starts))], axis=0)
    X = X[X.any(axis=1)]
    if not len(X):
        return np.zeros(X.shape[1], dtype=bool)
    size = np.abs(X).max(axis=0)
    scaled = X / np.where(size > 0, size, 1.0)
    R, order = aside(lambda: qr(scaled, mode="r", pivoting=True), X.size)
    diagonal = np.abs(np.diagonal(R))
    if len(X) > X.shape[1] or (diagonal <= ALIKE * diagonal[:1]).any():
        return np.ones(X.shape[1], dtype=bool)
    mask = np.zeros(X.shape[1], dtype=bool)
    mask[order[: len(X)]] = True
    return mask


def null_columns(
    design: Design, nodes: NDArray[np.bool_], columns: NDArray[np.bool_], C: Array, weak: NDArray[np.bool_]
) -> list[int]:
    """Columns whose weights can be fixed at zero: the others make up for them at every row of these nodes, exactly.

    Where there are no more different rows than columns that C resolves, those columns can make up for anything.
    Otherwise candidates are the weak columns j of C, whose entries after the j-th are zero.
    """
    rows = np.repeat(nodes, np.diff(design.starts))
    X = design.X[rows]
    strong = int((columns & ~weak).sum())
    X = X[X[:, columns].any(axis=1)]
    if not design.ridge[columns].any() and len(np.unique(X[:, columns], axis=0)) <= strong:
        return [int(j) for j in np.flatnonzero(columns & weak)]
    found: list[tuple[int, Array]] = []
    for j in np.flatnonzero(columns & weak):
        direction = np.zeros(len(columns)) if C[j, j] == 0 else C[:, j] / C[j, j]
        direction[j] = 1.0
        for k, other in found:
            direction = direction - direction[k] * other
        whole = _whole(direction)
        if whole is not None and not design.ridge[whole != 0].any() and _vanishes(X, whole):
            found.append((int(j), whole / whole[j]))
    return [j for j, _ in found]


def _whole(direction: Array) -> Array | None:
    """The direction in whole numbers, or None where it does not look like it."""
    near = [Fraction(float(x)).limit_denominator(LARGEST) for x in direction]
    if any(abs(float(f) - x) > ALIKE * max(1.0, abs(x)) for f, x in zip(near, direction, strict=True)):
        return None
    scale = lcm(*(f.denominator for f in near))
    whole = np.array([float(f * scale) for f in near])
    return whole if np.abs(whole).max() < 2**20 else None


def _vanishes(X: Array, whole: Array) -> bool:
    """Whether Xv = 0, exactly; v holds whole numbers below 2²⁰, so that each product is two floats."""
    used = np.flatnonzero(whole)
    if len(used) == 1:
        return not X[:, used[0]].any()
    high = _upper_half(X[:, used])
    terms = np.concatenate([high * whole[used], (X[:, used] - high) * whole[used]], axis=1)
    return not np.abs(terms.sum(axis=1)).max(initial=0.0) > 1e-9 * np.abs(terms).max(initial=0.0) and not any(
        fsum(row) for row in terms
    )


def _upper_half(x: Array) -> Array:
    """x with the lower half of its mantissa cleared: its product with 20 bits is exact, and so is that of the rest."""
    t = 134217729.0 * x
    return t - (t - x)
