"""Directions that no row sees, exactly: a column of zeros, two equal columns, dummies that add up to the intercept.

Whether a product vanishes is decided without rounding. A column that is a multiple of another *up to rounding* is
not such a case: what rounding left is data, and weights large enough make use of it. But where rows have few values,
as all levels of a category have beside an intercept, they cannot be independent, whatever these values are.
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
NOTHING = 1e-8  # of the largest coefficient: smaller ones count as zero in choosing what is tried; no proof rests on it


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
    """Columns whose weights can be fixed at zero: the others make up for them at every row of these nodes, exactly,
    if those that are left are independent. (That is for the caller to prove.)

    Columns that C resolves are strong. Where there are no more different rows than strong columns, these make up for
    anything. Otherwise each weak column j of C is tried, whose entries after the j-th are zero, with the columns that
    have a part in its direction, of which all others must be strong, and none may have a ridge.
    """
    rows = np.repeat(nodes, np.diff(design.starts))
    X = design.X[rows]
    strong = columns & ~weak
    if not design.ridge[columns].any() and _rank_at_most(X[:, columns]) <= strong.sum():
        return [int(j) for j in np.flatnonzero(columns & weak)]
    found: list[tuple[int, Array]] = []
    for j in np.flatnonzero(columns & weak):
        direction = np.zeros(len(columns)) if C[j, j] == 0 else C[:, j] / C[j, j]
        direction[j] = 1.0
        for k, other in found:
            direction = direction - direction[k] * other
        if not np.isfinite(direction).all():
            continue
        used = np.abs(direction) > NOTHING * np.abs(direction).max()
        if design.ridge[used].any():
            continue
        whole = _whole(direction)
        if whole is not None and _vanishes(X, whole):
            found.append((int(j), whole / whole[j]))
        elif (used & ~strong).sum() == used[j] == 1 and _are_dependent(X, used, strong & (design.ridge == 0)):
            found.append((int(j), np.where(used, direction, 0.0) / direction[j]))  # about: it says what is tried next
    return [j for j, _ in found]


def _rank_at_most(X: Array) -> int:
    """A bound on the rank of X: how many of its rows are not zero, and differ by more than their sign."""
    return int(_lines(X)[0].max(initial=-1)) + 1


def _lines(X: Array) -> tuple[NDArray[np.int64], Array]:
    """A number for each row, the same for those that differ by their sign alone; −1 for zero; and their signs."""
    number = np.full(len(X), -1)
    if not X.shape[1]:
        return number, np.zeros(len(X))
    sign = np.sign(X[np.arange(len(X)), (X != 0).argmax(axis=1)])
    number[sign != 0] = np.unique((X * sign[:, None])[sign != 0], axis=0, return_inverse=True)[1].ravel()
    return number, sign


def _are_dependent(X: Array, used: NDArray[np.bool_], others: NDArray[np.bool_]) -> bool:
    """Whether rows differ too little for these columns to be independent, alone or together with all others that follow
    them: whose entries, up to the sign of the row, are the same wherever theirs are, and zero where theirs are zero. An
    intercept follows all levels of a category.
    """
    number, sign = _lines(X[:, used])
    lines = int(number.max(initial=-1)) + 1
    if lines < used.sum():
        return True
    first = np.zeros(lines + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(X))[::-1]
    signed = X * sign[:, None]
    follow = ((signed == signed[first[number]]) & ((number >= 0)[:, None] | (X == 0))).all(axis=0)
    return lines < (used | others & follow).sum()


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
