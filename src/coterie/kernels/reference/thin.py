"""The minimisers that coordinate descent finds, where H = BBᵀ has few columns: see `coterie.kernels.thin`.

With ρ = Bᵀz, the minimiser of ½ zᵀ(BBᵀ + κ)z − ⟨target, z⟩ + Σ alpha|z| is z = S(target − Bρ)/κ, S the soft threshold
of alpha, and ρ minimises the convex, piecewise quadratic φ(ρ) = ½‖ρ‖² + ‖S(target − Bρ)‖²/(2κ). A Newton step of φ is
the exact solve on the support of z, with its signs. All nodes take their steps side by side.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.blocks import by_node
from coterie.kernels.reference.cholesky import solve
from coterie.kernels.reference.descent import compress, is_stationary, soft, support_of
from coterie.kernels.reference.exact import quiet

SUM_ERROR = 1e-13  # of a sum of n terms, relative to their sizes
SHORTEST = 1e-6  # part of a Newton step
MOST_STEPS = 200  # a few do, but where rounding hides which weights are zero


@quiet
def thin_newton(B, target, curvature, alpha, start, accuracy, max_steps, of=None):
    """Return the minimisers, from `start`; row i belongs to B[i] (n, r), or to B[of[i]]."""
    out, nodes = start.copy(), np.arange(len(start))
    B, c, kappa, free, z = B if of is None else B[of], target, curvature[:, None], alpha, start.copy()
    rho = _by_column(B, z)
    for step in range(min(max_steps, MOST_STEPS)):
        if not len(nodes) or time_is_up():
            break
        support = support_of(free, z)
        on = _on_support(B, np.where(support, np.sign(z) * free - c, 0.0), kappa, support)
        d, slope = _by_column(B, on) - rho, c - by_node(B, rho)
        e = by_node(B, d)  # not a difference of slopes: that would be mostly rounding in the end
        done = is_stationary(free, support, z, on, slope - e)
        length = np.zeros((len(z), 1))  # the start is no S(target − Bρ)/κ, and its support no direction
        if step > 0:
            done |= np.abs(e).max(axis=1) <= accuracy * np.abs(c).max(axis=1)
            length = _best_length(rho, d, slope, e, free, kappa)
        kept = np.where((free == 0) | (on * z > 0), on, 0.0)
        z = np.where(done[:, None], kept, soft(slope - length * e, free) / kappa)
        rho = rho + length * d
        out[nodes] = z
        if done.any():
            nodes, B, c, kappa, free, z, rho = (part[~done] for part in (nodes, B, c, kappa, free, z, rho))
    return out


def _by_column(B, x):
    """B_iᵀx_i of every node."""
    return np.einsum("ikr,ik->ir", B, x)


def _on_support(B, g, kappa, support):
    """−(BBᵀ + κ)⁻¹g on the support, and zero elsewhere: in as many unknowns as it has, or as there are columns in B."""
    few, step = support.sum(axis=1) <= B.shape[2], np.zeros_like(g)
    if few.any():
        step[few] = _by_support(B[few], g[few], kappa[few], support[few])
    if not few.all():
        step[~few] = _by_rank(B[~few] * support[~few, :, None], g[~few], kappa[~few])
    return step


def _by_support(B, g, kappa, support):
    front, there = compress(support)
    rows = np.take_along_axis(B, front[:, :, None], axis=1) * there[:, :, None]
    A, step = rows @ rows.transpose(0, 2, 1), np.zeros_like(g)
    np.einsum("ikk->ik", A)[...] += np.where(there, kappa, 1.0)
    np.put_along_axis(step, front, solve(A, np.where(there, np.take_along_axis(g, front, axis=1), 0.0)), axis=1)
    return step


def _by_rank(B, g, kappa):
    """(BBᵀ + κ)⁻¹g = (g − B (BᵀB + κ)⁻¹ Bᵀg)/κ, once more for what rounding left. B is zero outside the support."""
    A, step = B.transpose(0, 2, 1) @ B + kappa[:, :, None] * np.eye(B.shape[2]), np.zeros_like(g)
    for _ in range(2):
        left = g + kappa * step + by_node(B, _by_column(B, step))
        step = step - (left + by_node(B, solve(A, _by_column(B, left)))) / kappa
    return step


def _falls(length, rho, d, slope, e, alpha, kappa):
    """Nodes where φ falls at ρ + length · d (slopes are slope − length · e there), or rounding hides that it rises."""
    along, across = (rho + length * d) * d, soft(slope - length * e, alpha) * e / kappa
    size = np.abs(along).sum(axis=1) + np.abs(across).sum(axis=1)
    return along.sum(axis=1) - across.sum(axis=1) <= SUM_ERROR * size


def _best_length(rho, d, slope, e, alpha, kappa):
    """Where φ is least along d, at most 1: a full Newton step where φ still falls there. (V, 1)."""
    low, high = np.zeros((2, len(d), 1))
    high += 1.0
    open_ended = ~_falls(1.0, rho, d, slope, e, alpha, kappa)
    given = rho, d, slope, e, alpha, kappa
    while (searching := np.flatnonzero(open_ended & ((high - low > 0.1 * high) & (high > SHORTEST))[:, 0])).size:
        middle = 0.5 * (low + high)[searching]
        falls = _falls(middle, *(part[searching] for part in given))[:, None]
        low[searching] = np.where(falls, middle, low[searching])
        high[searching] = np.where(falls, high[searching], middle)
    return high
