"""Exact elimination on a forest: (H + DᵀΘD) x = b, one n × n block per node, from the leaves to the roots.

The arrays are those of the compiled `coterie.kernels.tree`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.reference.ends import Array, Integers

RIDGE = 1e-13  # of the diagonal of a root, along directions that no node sees


def eliminate(
    room: Any, order: Integers, parent: Integers, via: Integers, place: Integers, H: Array, theta: Array, S: Array
) -> None:
    """S_i ← (A_i + Θ)⁻¹, where A_i is H_i and what the children of i have left: A_i += Θ − Θ S_j Θ of each child j."""
    S[:] = np.where((place >= 0)[:, None, None], H[place] if len(H) else 0.0, 0.0)
    diagonal = np.arange(S.shape[1])
    for i in order[::-1]:
        e, above = via[i], parent[i]
        S[i, diagonal, diagonal] += theta[e] if e >= 0 else RIDGE * S[i, diagonal, diagonal] + 1e-300
        S[i] = _inverse(S[i])
        if e >= 0:
            S[above] -= theta[e][:, None] * S[i] * theta[e]
            S[above, diagonal, diagonal] += theta[e]


def _inverse(A: Array) -> Array:
    """A⁻¹; nan where A is singular in floating point, as dividing by a pivot of zero would give."""
    try:
        return np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return np.full_like(A, np.nan)


def substitute(order: Integers, parent: Integers, via: Integers, theta: Array, S: Array, b: Array, x: Array) -> None:
    """x ← the solution for the right-hand side b, which is used up."""
    for i in order[::-1]:
        x[i] = b[i] @ S[i]
        if via[i] >= 0:
            b[parent[i]] += theta[via[i]] * x[i]
    for i in order:
        if via[i] >= 0:
            x[i] += (theta[via[i]] * x[parent[i]]) @ S[i]
