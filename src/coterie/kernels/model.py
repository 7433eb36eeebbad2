"""Quadratic models of losses whose primal update has no closed form, node by node."""

from __future__ import annotations

import numpy as np

from coterie.kernels import psi
from coterie.kernels.cholesky import solve_in_place
from coterie.kernels.compiling import jit
from coterie.kernels.invert import invert, scratch
from coterie.kernels.psi import for_families

EVERYWHERE = 1e300  # a way that leads anywhere


@for_families
@jit
def row_model(kind, c, room, X, y, share, starts, ridge, w, before, slope, H):
    """slope, H ← gradient and curvature at w_i of a quadratic that lies above L_i wherever no margin has moved further
    from w_i than it has come from `before`: there the bend of a row is at most `most_bend`.

    With an empty `before`, it lies above L_i everywhere. Return the longest way.
    """
    n, longest = len(room), 0.0
    for i in range(len(w)):
        for k in range(n):
            slope[i, k] = 2 * ridge[k] * w[i, k]
            for q in range(n):
                H[i, k, q] = 0.0
            H[i, k, k] = 2 * ridge[k]
        for r in range(starts[i], starts[i + 1]):
            margin, way = 0.0, 0.0
            for k in range(n):
                margin += X[r, k] * w[i, k]
                if len(before) > 0:
                    way += X[r, k] * (w[i, k] - before[i, k])
            longest = max(longest, abs(way))
            e = psi.argument(kind, y[r], margin, 0.0)
            pull = share[r] * psi.direction(kind, y[r]) * psi.slope(kind, c, e, y[r])
            bend = share[r] * psi.most_bend(kind, c, e, y[r], abs(way) if len(before) > 0 else EVERYWHERE)
            for k in range(n):
                slope[i, k] += pull * X[r, k]
                for q in range(n):
                    H[i, k, q] += bend * X[r, k] * X[r, q]
    return longest


@jit
def model_share(room, tau, H, R):
    """R_i ← (I + τH)⁻¹: what the primal update of a model keeps of the way from its centre."""
    n, free = len(room), scratch(len(room))
    for i in range(len(H)):
        for p in range(n):
            for q in range(n):
                R[i, p, q] = tau[i] * H[i, p, q]
            R[i, p, p] += 1.0
        invert(room, free, R[i])


@jit
def model_fall(room, H, pull):
    """Return Σ ½⟨pull_i, H_i⁻¹ pull_i⟩: by how much linear terms lower the minima of models. H is used up."""
    n, total, step = len(room), 0.0, np.empty(len(room))
    for i in range(len(H)):
        solve_in_place(room, H[i], pull[i], step)
        for k in range(n):
            total -= 0.5 * pull[i, k] * step[k]
    return total
