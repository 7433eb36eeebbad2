"""Coordinate descent for ½ zᵀ(H + κ)z − ⟨target, z⟩ + Σ alpha|z|, all nodes at once: see `coterie.kernels.descent`.

First, and every few sweeps, the problem is solved exactly on the present support; mostly that ends it. Otherwise a node
is done when no step changes its gradient by more than `accuracy`, relative to target.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.blocks import by_node
from coterie.kernels.reference.cholesky import solve
from coterie.kernels.reference.exact import quiet

TRY_SUPPORT = 4  # sweeps between two exact solves on the support


def support_of(alpha, z):
    """The coordinates that are not zero, or that cost nothing."""
    return (z != 0) | (alpha == 0)


def soft(c, alpha):
    """The soft threshold."""
    return np.maximum(c - alpha, 0.0) - np.maximum(-c - alpha, 0.0)


def is_stationary(alpha, support, z, step, slope):
    """Nodes where `step` has the signs of z on the support, and no slope outside is above alpha."""
    agrees = (alpha == 0) | (step * z > 0)
    return np.where(support, agrees, np.abs(slope) <= alpha).all(axis=1)


def compress(support):
    """Support coordinates of every node in front, as many as the largest support has, and which of these are some."""
    front = np.argsort(~support, axis=1, kind="stable")[:, : support.sum(axis=1).max(initial=0)]
    return front, np.take_along_axis(support, front, axis=1)


@quiet
def coordinate_descent(H, target, curvature, alpha, start, accuracy, max_sweeps, of=None):
    """Return the minimisers, from `start`; row i belongs to H[i], or to H[of[i]]."""
    out, nodes = start.copy(), np.arange(len(start))
    Q, c, kappa, free, z = H if of is None else H[of], target, curvature[:, None], alpha, start.copy()
    for sweep in range(max_sweeps):
        if not len(nodes) or time_is_up():
            break
        done = np.zeros(len(nodes), dtype=bool)
        if sweep % TRY_SUPPORT == 0:
            z, done = _on_support(Q, c, kappa, free, z)
        if not done.all():
            moved, change = _sweep(Q, c, kappa, free, z)
            z = np.where(done[:, None], z, moved)
            done |= change <= accuracy * np.abs(c).max(axis=1)
        out[nodes] = z
        if done.any():
            nodes, Q, c, kappa, free, z = (part[~done] for part in (nodes, Q, c, kappa, free, z))
    return out


def _on_support(H, target, kappa, alpha, z):
    """Solve for the coordinates of the support, with their signs; keep it at nodes where nothing contradicts it."""
    support = support_of(alpha, z)
    front, there = compress(support)
    A = np.take_along_axis(np.take_along_axis(H, front[:, :, None], axis=1), front[:, None, :], axis=2)
    A = np.where(there[:, :, None] & there[:, None, :], A, 0.0)
    np.einsum("ikk->ik", A)[...] += np.where(there, kappa, 1.0)
    g = np.where(support, np.sign(z) * alpha, 0.0) - target
    step = np.zeros_like(z)
    np.put_along_axis(step, front, solve(A, np.where(there, np.take_along_axis(g, front, axis=1), 0.0)), axis=1)
    agrees = is_stationary(alpha, support, z, step, target - by_node(H, step))
    return np.where(agrees[:, None], step, z), agrees


def _sweep(H, target, kappa, alpha, z):
    """Minimise over one coordinate after the other; return the weights, and the largest change of a gradient."""
    x, slope, change = z.copy(), target - kappa * z - by_node(H, z), np.zeros(len(z))
    for k in range(z.shape[1]):
        diagonal = H[:, k, k] + kappa[:, 0]
        move = soft(slope[:, k] + diagonal * x[:, k], alpha[:, k]) / diagonal - x[:, k]
        x[:, k] += move
        slope[:, k] -= kappa[:, 0] * move
        slope -= H[:, k] * move[:, None]
        change = np.maximum(change, np.abs(move) * diagonal)
    return x, change
