"""Coordinate descent for ½ zᵀ(H + κ)z − ⟨target, z⟩ + Σ alpha|z| with lower ≤ z ≤ upper, all nodes at once.

First, and every few sweeps, the problem is solved exactly for coordinates that are neither at a bound nor at a kink, as
far as these let; mostly that ends it. Otherwise a node is done when no step changes its gradient by more than
`accuracy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.blocks import by_node
from coterie.kernels.reference.cholesky import solve
from coterie.kernels.reference.descent import TRY_SUPPORT, soft
from coterie.kernels.reference.exact import quiet
from coterie.kernels.reference.kinks import as_far

TRIES = 8  # of an exact solve, each without the coordinates that have become fixed in the one before


@quiet
def boxed_descent(
    H: Any,
    target: Any,
    curvature: Any,
    alpha: Any,
    lower: Any,
    upper: Any,
    start: Any,
    accuracy: float,
    max_sweeps: int,
) -> Any:
    """Return the minimisers, from `start`; alpha has the shape of it, lower and upper are (n,)."""
    lower, upper = np.broadcast_to(lower, start.shape), np.broadcast_to(upper, start.shape)
    z = np.clip(start, lower, upper)
    out, nodes = z.copy(), np.arange(len(z))
    given = H, target, curvature[:, None], alpha, lower, upper
    for sweep in range(max_sweeps):
        if not len(nodes) or time_is_up():
            break
        done = np.zeros(len(nodes), dtype=bool)
        if sweep % TRY_SUPPORT == 0:
            for _ in range(TRIES):
                z, done, whole = _on_free_coordinates(*given, z)
                if whole.all():
                    break
        if not done.all():
            moved, change = _sweep(*given, z)
            z = np.where(done[:, None], z, moved)
            done |= change <= accuracy * np.abs(given[1]).max(axis=1)
        out[nodes] = z
        if done.any():
            nodes, z, given = nodes[~done], z[~done], tuple(part[~done] for part in given)
    return out


def _on_free_coordinates(H, target, kappa, alpha, lower, upper, z):
    """Solve for the free coordinates, with their signs, and go there, or to where one is no longer free.

    Return the weights, at which nodes nothing contradicts them (a bound or a kink that had to be left), and which have
    come all the way.
    """
    free = (lower < z) & (z < upper) & ((z != 0) | (alpha == 0))
    A = np.where(free[:, :, None] & free[:, None, :], H, 0.0)
    np.einsum("ikk->ik", A)[...] += np.where(free, kappa, 1.0)
    held = np.where(free, 0.0, z)
    g = np.where(free, np.sign(z) * alpha - target + by_node(H, held), 0.0)
    low = np.where(z * alpha > 0, np.maximum(lower, 0.0), lower)
    high = np.where(z * alpha < 0, np.minimum(upper, 0.0), upper)
    x, whole = as_far(z, held + np.where(free, solve(A, g), 0.0), low, high)
    inside = (lower <= x) & (x <= upper) & ((alpha == 0) | (x * z > 0))
    slope = target - kappa * x - by_node(H, x)
    least = np.where(x <= lower, -np.inf, np.where(x > 0, alpha, -alpha))
    most = np.where(x >= upper, np.inf, np.where(x >= 0, alpha, -alpha))
    agrees = np.where(free, inside, (least <= slope) & (slope <= most)).all(axis=1) & whole
    return np.where(np.isfinite(x).all(axis=1)[:, None], x, z), agrees, whole


def _sweep(H, target, kappa, alpha, lower, upper, z):
    """Minimise over one coordinate after the other; return the weights, and the largest change of a gradient."""
    x, slope, change = z.copy(), target - kappa * z - by_node(H, z), np.zeros(len(z))
    for k in range(z.shape[1]):
        diagonal = H[:, k, k] + kappa[:, 0]
        best = soft(slope[:, k] + diagonal * x[:, k], alpha[:, k]) / diagonal
        move = np.clip(best, lower[:, k], upper[:, k]) - x[:, k]
        x[:, k] = np.clip(x[:, k] + move, lower[:, k], upper[:, k])
        slope[:, k] -= kappa[:, 0] * move
        slope -= H[:, k] * move[:, None]
        change = np.maximum(change, np.abs(move) * diagonal)
    return x, change
