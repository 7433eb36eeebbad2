"""Nodes whose rows cost high_r·e for large e = y_r − ⟨x_r, z⟩ and low_r·e for small e: their duals, all nodes at once.

With D > 0 diagonal, the weights that minimise Σ_r ψ_r(e_r) + ½(z − c)ᵀD(z − c) are z = c + D⁻¹Xᵀb, where b minimises
½bᵀ(XD⁻¹Xᵀ + give)b − ⟨b, y − Xc⟩ over low ≤ b ≤ high: one coordinate after the other, and now and then all at once that
are not at a bound, as far as bounds let. ψ_r has a kink at zero where give is 0, and a parabola e²/(2 give) between its
straight lines else.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.blocks import blocks, by_node
from coterie.kernels.reference.cholesky import solve
from coterie.kernels.reference.ends import Array
from coterie.kernels.reference.exact import EPS, quiet
from coterie.kernels.reference.interior_point import Rows, fit

TRIES = 8  # of all that are not at a bound, each without those that have come to one in the try before
TRY_FREE = 3  # sweeps between two tries of all free duals at once
MOST_FREE, SPARE = 300, 2  # for which that is tried; times the columns, where rows have kinks: more are dependent
SINGULAR = 1e-12  # of the curvature of a row, added where rows are more than columns: these then go to where a bound is
LONG = 30  # rows of a node from which on sweeps, which go row by row here, take longer than interior points
AT_END = 1e-7  # of its range: how far from its bound a dual of interior points that is at it may be
ROUNDING = 16 * EPS  # of the largest term of a residual: no residual that is a sum of such is any smaller


@quiet
def parabolas(p, anchor, curvature, ridge):
    """D and c with ½(z − c)ᵀD(z − c) = ½ curvature ‖z − anchor‖² + Σ ridge_k z_k² − ⟨p, z⟩ + const, node by node."""
    D = curvature[:, None] + 2 * ridge
    return D, (p + curvature[:, None] * anchor) / D


@quiet
def box_ascent(room, X, y, starts, D, c, low, high, give, b, z, accuracy, max_sweeps):
    """b, z ← duals, from those given, and weights; return which nodes have settled."""
    all_settled = np.ones(len(z), dtype=bool)
    for nodes, rows, there in blocks(starts):
        x, labels = X[rows] * there[:, :, None], y[rows] * there
        S = x / D[nodes][:, None, :]
        bounds = np.where(there, low[rows], 0.0), np.where(there, high[rows], 0.0)  # some are infinite
        B = np.clip(b[rows] * there, *bounds)
        target = labels - by_node(x, c[nodes])
        scale = np.maximum(np.abs(target).max(axis=1), np.abs(labels).max(axis=1))
        given = x, S, give[rows] * there, target, bounds
        if x.shape[1] >= LONG and not give.any():
            B = _begun(given, B, accuracy * scale, D[nodes])
        B, all_settled[nodes] = _ascend(given, B, accuracy * scale, max_sweeps)
        b[rows[there]] = B[there]
        z[nodes] = c[nodes] + np.einsum("imk,im->ik", S, B)
    return all_settled


def _begun(given, B, enough, D):
    """Duals of long nodes to begin with: those of interior points, where it takes sweeps to make those given fit."""
    x, _, _, target, (low, high) = given
    bad = np.ones(len(B), dtype=bool)
    if ((low < B) & (high > B)).sum(axis=1).max() <= LONG:
        B, good = _tried(given, B, enough)
        bad = ~good
    x, target, low, high = x[bad], target[bad], low[bad], high[bad]
    if time_is_up() or not len(x) or not np.isfinite(high - low).all():
        return B
    there = high > low
    found = fit(Rows(x), target, np.where(there, low, -1.0), np.where(there, high, 1.0), D[bad])[1]
    B[bad] = at_ends(found, low, high)
    return B


def _tried(given, B, enough):
    """Duals after some tries of all that are not at a bound at once, and which nodes have settled."""
    x, S, give, target, (low, high) = given
    for _ in range(TRIES):
        tried, whole = as_far(B, _all_free(x, S, give, target, low, high, B), low, high)
        B = np.where(np.isfinite(tried).all(axis=1)[:, None], tried, B)
        if whole.all():
            break
    diagonal = np.einsum("imk,imk->im", x, S) + give
    return B, _fits(x, S, give, target, low, high, B, enough + _rounding(diagonal, B))


def _ascend(given, B, enough, max_sweeps):
    """Duals of nodes (k, m) that fit their targets, or are at their bounds; and which nodes have settled."""
    x, S, give, target, (low, high) = given
    diagonal, m = np.einsum("imk,imk->im", x, S) + give, x.shape[1]
    settled = np.zeros(len(B), dtype=bool)
    for sweep in range(max_sweeps):
        if time_is_up():
            break
        if sweep % TRY_FREE == 0:
            B, good = _tried(given, B, enough)
            if good.all():
                return B, good
            moved_to = np.einsum("imk,im->ik", S, B)
        furthest = np.zeros(len(B))
        for r in range(m):
            e = target[:, r] - (x[:, r] * moved_to).sum(axis=1) - give[:, r] * B[:, r]
            step = np.divide(e, diagonal[:, r], out=np.zeros_like(e), where=diagonal[:, r] > 0)
            step = np.where(diagonal[:, r] > 0, step, np.sign(e) * np.inf)
            new = np.clip(B[:, r] + np.where(e == 0, 0.0, step), low[:, r], high[:, r])
            step, B[:, r] = new - B[:, r], new
            moved_to += step[:, None] * S[:, r]
            furthest = np.maximum(furthest, np.abs(step) * diagonal[:, r])
        settled = furthest <= enough + _rounding(diagonal, B)
        if settled.all():
            break
    return B, settled


def _rounding(diagonal, B):
    """How far residuals of these duals may be off."""
    return ROUNDING * (diagonal * np.abs(B)).max(axis=1)


def as_far(before, after, low, high):
    """Points on the way to others: as far as bounds let, which is where one is reached; and which are these others."""
    step = after - before
    end = np.where(step > 0, high, low)
    ratio = np.divide(end - before, step, out=np.full_like(step, np.inf), where=step != 0)
    reach = np.minimum(ratio.min(axis=1, initial=np.inf), 1.0)[:, None]
    whole, there = ~(reach < 1), np.where(ratio <= reach, end, before + reach * step)
    return np.clip(np.where(whole, after, there), low, high), whole[:, 0]


def _all_free(x, S, give, target, low, high, B):
    """B with all duals that are not at a bound changed to what their targets ask for, at nodes with few of them."""
    free = (low < B) & (high > B)
    count = free.sum(axis=1)
    free &= (count <= np.where((give > 0).all(axis=1), MOST_FREE, SPARE * x.shape[2]))[:, None]
    count = int(free.sum(axis=1).max(initial=0))
    rest = target - by_node(x, np.einsum("imk,im->ik", S, np.where(free, 0.0, B)))
    if 2 * count > x.shape[1]:
        return np.where(free, _fitted(x, S, give, rest, free), B)
    first = np.argsort(~free, axis=1, kind="stable")[:, :count]  # those that are free, and others where they are fewer
    x, S = (np.take_along_axis(values, first[:, :, None], axis=1) for values in (x, S))
    give, rest, free, before = (np.take_along_axis(values, first, axis=1) for values in (give, rest, free, B))
    out = B.copy()
    np.put_along_axis(out, first, np.where(free, _fitted(x, S, give, rest, free), before), axis=1)
    return out


def _fitted(x, S, give, rest, free):
    """What free duals come to, together."""
    K = np.where(free[:, :, None] & free[:, None, :], x @ S.transpose(0, 2, 1), 0.0)
    diagonal = np.einsum("ikk->ik", K)
    dependent = free.sum(axis=1)[:, None] > x.shape[2]
    diagonal[...] += np.where(free, np.maximum(give, np.where(dependent, SINGULAR, 0.0) * diagonal), 1.0)
    return -solve(K, np.where(free, rest, 0.0))


def at_ends(b: Array, low: Array, high: Array) -> Array:
    """Duals of interior points, those that are next to a bound at it."""
    near = np.where(np.isfinite(high - low), AT_END * (high - low), 0.0)
    ends: Array = np.where(b <= low + near, low, np.where(b >= high - near, high, b))
    return ends


def _fits(x, S, give, target, low, high, B, enough):
    """Whether duals are in their bounds, residuals of free ones are zero, and those of others point outwards."""
    e = target - by_node(x, np.einsum("imk,im->ik", S, B)) - give * B
    inside = ((low <= B) & (high >= B)).all(axis=1)
    up, down = (e <= enough[:, None]) | (high <= B), (e >= -enough[:, None]) | (low >= B)
    return inside & (up & down).all(axis=1)
