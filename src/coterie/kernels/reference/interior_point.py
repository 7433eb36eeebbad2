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
        Z, B = fit(Rows(x), y[rows] * there - by_node(x, c[nodes]), *bounds, D[nodes])
        b[rows[there]], z[nodes] = B[there], c[nodes] + Z


@quiet
def fit(X, y, low, high, D, enough=ENOUGH, ahead=False, begin=None):
    """Weights (k, n) from zero, where c is, and duals (k, m); X has the rows, and the equations of steps on them.

    Others to begin from are z, b, u, v, all strictly inside their limits.

    A look ahead (Mehrotra) tells how much of the complementarity a step can do without: half as many of them, and duals
    that are further from the middle of those that are as good.
    """
    width, size = high - low, np.maximum(np.abs(y).max(axis=1), 1e-300)[:, None]
    if begin is None:
        begin = np.zeros_like(D), 0.5 * (low + high), np.maximum(y, 0.0) + 0.1 * size, np.maximum(-y, 0.0) + 0.1 * size
    z, b, u, v = begin
    for _ in range(STEPS):
        upper, lower = high - b, b - low
        solve, miss, rest = X.factorised(D, u / upper + v / lower), u - v - (y - X.margins(z)), X.forces(b) - D * z

        def step(plus, minus):
            """Towards (high − b)u = plus and (b − low)v = minus, to first order; and how far that goes."""
            dz, db = solve(miss + (plus / upper - u) - (minus / lower - v), rest)  # noqa: B023
            du, dv = (plus + u * db) / upper - u, (minus - v * db) / lower - v  # noqa: B023
            pairs = (u, du), (v, dv), (upper, -db), (lower, db)  # noqa: B023
            return dz, db, du, dv, np.min([_room(*pair) for pair in pairs], axis=0)[:, None]

        now, plus, minus = (upper * u + lower * v).sum(axis=1)[:, None], 0.0, 0.0
        aim = 0.5 * CENTRING * now / y.shape[1]
        if ahead:
            _, db, du, dv, length = step(0.0, 0.0)
            left = (upper - length * db) * (u + length * du) + (lower + length * db) * (v + length * dv)
            aim, plus, minus = 0.5 * left.sum(axis=1)[:, None] ** 3 / now**2 / y.shape[1], du * db, -dv * db
        dz, db, du, dv, length = step(aim + plus, aim + minus)
        moved = [old + length * way for old, way in ((z, dz), (b, db), (u, du), (v, dv))]
        fine = np.isfinite(np.concatenate(moved, axis=1)).all(axis=1)[:, None]
        z, b, u, v = (np.where(fine, new, old) for new, old in zip(moved, (z, b, u, v), strict=True))
        gap, terms = (upper * u + lower * v).sum(axis=1), (width * (u + v + ENOUGH * size)).sum(axis=1)
        terms += 0.5 * (D * z * z).sum(axis=1)  # where rows cost nothing, the curvature alone does
        if ((gap <= enough * terms) | ~fine[:, 0]).all():
            break
    return z, b


class Rows:
    """Rows (k, m, n) of small nodes."""

    def __init__(self, X):
        self.X, self.Xt = X, X.transpose(0, 2, 1)

    def margins(self, z):
        return by_node(self.X, z)

    def forces(self, b):
        return by_node(self.Xt, b)

    def factorised(self, D, weight):
        """What finds dz and db with D dz − Xᵀdb = rest and X dz + weight db = −h, by a system of rows or of columns."""
        X, Xt = self.X, self.Xt
        if X.shape[1] <= X.shape[2] and (D > 0).all():
            K = (X / D[:, None, :]) @ Xt
            np.einsum("ikk->ik", K)[...] += weight

            def by_rows(h, rest):
                db = -_solve(K, h + by_node(X, rest / D))
                return (rest + by_node(Xt, db)) / D, db

            return by_rows
        A = (X / weight[:, :, None]).transpose(0, 2, 1) @ X
        np.einsum("ikk->ik", A)[...] *= 1 + TRACE
        np.einsum("ikk->ik", A)[...] += D + 1e-300

        def by_columns(h, rest):
            dz = _solve(A, rest - by_node(Xt, h / weight))
            return dz, -(by_node(X, dz) + h) / weight

        return by_columns


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
