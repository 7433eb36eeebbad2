"""The best model of one node whose neighbours are held still."""

from __future__ import annotations

import numpy as np

from coterie.problem.arrays import Array
from coterie.problem.losses import LocalLosses
from coterie.problem.penalties import Penalty, SquaredVariation, TotalVariation

ACCURACY = 1e-10  # of the optimality conditions, relative to the strengths and to the spread of the neighbours
MAX_ITER = 100_000
CHECK_EVERY = 25
WEISZFELD, NEWTON = 20, 50  # slow and sure steps, then quick ones


def between(at: Array, c: Array, penalty: Penalty, f: LocalLosses | None = None) -> Array:
    """Minimise L(w) + Σ_j c_j φ(w − at_j): the best model of a node whose k neighbours are held still.

    Parameters
    ----------
    at : array of shape (k, n)
    c : array of shape (k,)
        λA of the edges.
    f : LocalLosses of one node, optional
        L; without it, the weighted median (ℓ1), geometric median (ℓ2) or mean (squared) of `at`.
    """
    if isinstance(penalty, SquaredVariation):
        mean = c @ at / c.sum()
        return mean if f is None else f.prox(mean[None], np.array([0.5 / c.sum()]), mean[None])[0]
    if f is None:
        return _median(at, c) if isinstance(penalty, TotalVariation) else _geometric_median(at, c)
    return _algorithm1_at_one_node(at, c, penalty, f)


def _median(at: Array, c: Array) -> Array:
    """The weighted median of each coordinate; the middle of the two where a whole interval is optimal."""
    order = np.argsort(at, axis=0)
    values, below = np.take_along_axis(at, order, axis=0), np.cumsum(c[order], axis=0)
    half, tiny = 0.5 * c.sum(), 1e-12 * c.sum()
    low, high = (below >= half - tiny).argmax(axis=0), (below > half + tiny).argmax(axis=0)
    columns = np.arange(at.shape[1])
    return 0.5 * (values[low, columns] + values[high, columns])


def _geometric_median(at: Array, c: Array) -> Array:
    """argmin Σ_j c_j ‖w − at_j‖₂: one of the points where their pull allows it, else Newton's method between them."""
    points, of = np.unique(at, axis=0, return_inverse=True)
    c = np.bincount(of.ravel(), c)
    away = points[:, None] - points
    length = np.linalg.norm(away, axis=2)
    pull = np.linalg.norm(np.einsum("j,ij,ijk->ik", c, _inverse(length), away), axis=1)
    if (pull <= c * (1 + ACCURACY)).any():
        return points[np.argmax(c - pull)]
    w = c @ points / c.sum()
    for t in range(WEISZFELD + NEWTON):
        away = w - points
        r = np.linalg.norm(away, axis=1)
        near = c * _inverse(r)
        slope = near @ away
        if np.linalg.norm(slope) <= ACCURACY * c.sum():
            break
        if t < WEISZFELD:
            w = w - slope / near.sum()
            continue
        unit = away * _inverse(r)[:, None]
        H = near.sum() * np.eye(len(w)) - np.einsum("j,jk,jl->kl", near, unit, unit)
        step = np.linalg.lstsq(H, slope)[0]
        now, reach = c @ r, 1.0
        while c @ np.linalg.norm(w - reach * step - points, axis=1) > now and reach > ACCURACY:
            reach *= 0.5
        if reach <= ACCURACY:
            break
        w = w - reach * step
    return w


def _inverse(lengths: Array) -> Array:
    """1/r, and 0 where r is 0."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _algorithm1_at_one_node(at: Array, c: Array, penalty: Penalty, f: LocalLosses) -> Array:
    """The paper's Algorithm 1 on a star whose leaves do not move, with its two steps kept in balance."""
    k = len(at)
    w, u = _median(at, c)[None], np.zeros_like(at)
    spread = float(np.abs(at - w).max()) or float(np.abs(at).max()) or 1.0
    s = spread / float(c.max())
    for t in range(1, MAX_ITER + 1):
        tau, sigma = np.array([s / k]), np.full(k, 1.0 / s)
        v = w - tau * u.sum(axis=0)
        w_next = f.prox(v, tau, w)
        u_next = penalty.dual_step(u + sigma[:, None] * (2 * w_next - w - at), c, sigma)
        if t % CHECK_EVERY == 0:
            stationarity = np.abs((w - w_next) / tau - (u - u_next).sum(axis=0)).max() / c.max()
            feasibility = np.abs((u - u_next) / sigma[:, None] - (w - w_next)).max() / spread
            if max(stationarity, feasibility) <= ACCURACY:
                return w_next[0]
            if t <= 40 * CHECK_EVERY:
                s *= 2.0 if feasibility > 4 * stationarity else 0.5 if stationarity > 4 * feasibility else 1.0
        w, u = w_next, u_next
    return w[0]
