"""Small quadratic programs with kinks, all nodes at once, by a primal-dual interior-point method.

It minimises Σ_r max(low_r e_r, high_r e_r) + ½(z − c)ᵀD(z − c) with e = y − Xz and D ≥ 0 diagonal, node by node. With
e = u − v, u, v ≥ 0, and the duals b of that equation, optimal points have D(z − c) = Xᵀb, (high − b)u = 0 = (b − low)v.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.blocks import blocks, by_node
from coterie.kernels.reference.exact import quiet

STEPS = 80
CENTRING = 0.1  # of the mean complementarity, which the next step aims at
BACK = 0.995  # of the way to where a number that must be positive would be zero
ENOUGH = 1e-14  # of the sizes that were added up: a gap that is left
TRACE = 1e-13  # of the curvature of a column: for directions that no row sees


@quiet
def interior_point(X, y, starts, D, c, low, high, b, z):
    """b, z ← duals strictly between low and high, and weights."""
    for nodes, rows, there in blocks(starts):
        if not there.any():
            z[nodes] = c[nodes]
            continue
        x = X[rows] * there[:, :, None]
        bounds = np.where(there, low[rows], -1.0), np.where(there, high[rows], 1.0)
        Z, B = _fit(x, y[rows] * there - by_node(x, c[nodes]), *bounds, D[nodes])
        b[rows[there]], z[nodes] = B[there], c[nodes] + Z


def _fit(X, y, low, high, D):
    """Weights (k, n), from c, and duals (k, m)."""
    width, size = high - low, np.maximum(np.abs(y).max(axis=1), 1e-300)[:, None]
    z, b = np.zeros_like(D), 0.5 * (low + high)
    u, v = np.maximum(y, 0.0) + 0.1 * size, np.maximum(-y, 0.0) + 0.1 * size
    for _ in range(STEPS):
        upper, lower = high - b, b - low
        aim = 0.5 * CENTRING * (upper * u + lower * v).mean(axis=1)[:, None]
        weight = u / upper + v / lower
        h = (u - v - (y - by_node(X, z))) + (aim / upper - u) - (aim / lower - v)
        dz, db = _step(X, D, weight, h, by_node(X.transpose(0, 2, 1), b) - D * z)
        du, dv = (aim + u * db) / upper - u, (aim - v * db) / lower - v
        pairs = (u, du), (v, dv), (upper, -db), (lower, db)
        length = np.min([_room(*pair) for pair in pairs], axis=0)[:, None]
        moved = [now + length * step for now, step in ((z, dz), (b, db), (u, du), (v, dv))]
        fine = np.isfinite(np.concatenate(moved, axis=1)).all(axis=1)[:, None]
        z, b, u, v = (np.where(fine, then, now) for then, now in zip(moved, (z, b, u, v), strict=True))
        gap, terms = (upper * u + lower * v).sum(axis=1), (width * (u + v + ENOUGH * size)).sum(axis=1)
        terms += 0.5 * (D * z * z).sum(axis=1)  # where rows cost nothing, the curvature alone does
        if ((gap <= ENOUGH * terms) | ~fine[:, 0]).all():
            break
    return z, b


def _step(X, D, weight, h, rest):
    """dz and db with D dz − Xᵀdb = rest and X dz + weight db = −h, by a system of rows or of columns."""
    if X.shape[1] <= X.shape[2] and (D > 0).all():
        K = (X / D[:, None, :]) @ X.transpose(0, 2, 1)
        np.einsum("ikk->ik", K)[...] += weight
        db = -_solve(K, h + by_node(X, rest / D))
        return (rest + by_node(X.transpose(0, 2, 1), db)) / D, db
    A = (X / weight[:, :, None]).transpose(0, 2, 1) @ X
    np.einsum("ikk->ik", A)[...] *= 1 + TRACE
    np.einsum("ikk->ik", A)[...] += D + 1e-300
    dz = _solve(A, rest - by_node(X.transpose(0, 2, 1), h / weight))
    return dz, -(by_node(X, dz) + h) / weight


def _solve(A, g):
    """A⁻¹g, in units of the diagonal."""
    unit = 1 / np.sqrt(np.einsum("ikk->ik", A))
    try:
        return unit * np.linalg.solve(A * unit[:, :, None] * unit[:, None, :], (unit * g)[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return np.full_like(g, np.nan)


def _room(x, step):
    """How far x > 0 can go along a step, node by node."""
    ratio = np.where(step < 0, x / -step, np.inf).min(axis=1)
    return np.minimum(1.0, BACK * ratio)
