"""The best model of one node whose neighbours are held still."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from coterie.problem.arrays import Array
from coterie.problem.losses import LocalLosses
from coterie.problem.penalties import Penalty, SquaredVariation, TotalVariation
from coterie.problem.penalties.by_column import ByColumn

OPTIMALITY = 1e-10  # of the optimality conditions, relative to the strengths and to the spread of the neighbours
MAX_ITER = 10_000
CHECK_EVERY = 10
UNEVEN = 3.0  # two residuals that differ by this factor call for another balance of the steps
SMALL = 1e-6  # a slope to accept where rounding hides anything smaller
WEISZFELD, NEWTON = 20, 50  # slow and sure steps, then quick ones

DualStep = Callable[[Array, Array], Array]
"""From u + σ(2w' − w) and σ, of shape (·, 1), to the next u."""


def fit_given_neighbours(at: Array, c: Array, penalty: Penalty, f: LocalLosses | None = None) -> Array:
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
    if isinstance(penalty, TotalVariation):
        return _median(at, c) if f is None else _iterate(at, c, f, *_all_at_once(at, c))
    quick = _geometric_median(at, c) if f is None else None
    return _iterate(at, c, f, *_one_by_one(at, c, penalty)) if quick is None else quick


def fit_by_column(at: Array, c: Array, penalty: ByColumn, f: LocalLosses | None = None) -> Array:
    """The same with a strength per column: tied ones have the neighbours' mean, and free ones without a loss, too."""
    mean = np.average(at, axis=0, weights=c if c.any() else None)
    tied, held, at = penalty.tied, penalty.held, np.where(penalty.tied, mean, at)
    if f is None:
        w, t = mean, penalty.unit[held]
        if held.any():
            w[held] = fit_given_neighbours(at[:, held] * t, c, penalty.plain) / t
        return w
    if not c.any():  # the neighbours do not count, but for tied columns
        c, penalty = np.ones_like(c), replace(penalty, strength=tuple(np.where(tied, np.inf, 0.0)))
    return np.where(tied, mean, _iterate(at, c, f, *_one_by_one(at, c, penalty)))


def _median(at: Array, c: Array) -> Array:
    """The weighted median of each coordinate; the middle of the two where a whole interval is optimal."""
    order = np.argsort(at, axis=0)
    values, below = np.take_along_axis(at, order, axis=0), np.cumsum(c[order], axis=0)
    half, tiny = 0.5 * c.sum(), 1e-12 * c.sum()
    low, high = (below >= half - tiny).argmax(axis=0), (below > half + tiny).argmax(axis=0)
    columns = np.arange(at.shape[1])
    return 0.5 * (values[low, columns] + values[high, columns])


def _geometric_median(at: Array, c: Array) -> Array | None:
    """argmin Σ_j c_j ‖w − at_j‖₂: one of the points where their pull allows it, else Newton's method between them.

    None where that does not settle, as very near a point.
    """
    points, of = np.unique(at, axis=0, return_inverse=True)
    c = np.bincount(of.ravel(), c)
    away = points[:, None] - points
    length = np.linalg.norm(away, axis=2)
    pull = np.linalg.norm(np.einsum("j,ij,ijk->ik", c, _inverse(length), away), axis=1)
    if (pull <= c * (1 + OPTIMALITY)).any():
        return points[np.argmax(c - pull)]
    w = c @ points / c.sum()
    for t in range(WEISZFELD + NEWTON):
        away = w - points
        r = np.linalg.norm(away, axis=1)
        near = c * _inverse(r)
        slope = near @ away
        if np.linalg.norm(slope) <= OPTIMALITY * c.sum():
            break
        if t < WEISZFELD:
            w = w - slope / near.sum()
            continue
        unit = away * _inverse(r)[:, None]
        H = near.sum() * np.eye(len(w)) - np.einsum("j,jk,jl->kl", near, unit, unit)
        step = np.linalg.lstsq(H, slope, rcond=None)[0]
        now, reach = c @ r, 1.0
        while c @ np.linalg.norm(w - reach * step - points, axis=1) > now and reach > OPTIMALITY:
            reach *= 0.5
        if reach <= OPTIMALITY:
            break
        w = w - reach * step
    return w if np.linalg.norm(slope) <= SMALL * c.sum() else None


def _inverse(lengths: Array) -> Array:
    """1/r, and 0 where r is 0."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _all_at_once(at: Array, c: Array) -> tuple[DualStep, Array]:
    """One dual vector for Σ_j c_j‖w − at_j‖₁, whose proximal map is a median of 2k + 1 numbers in each coordinate."""
    order = np.argsort(at, axis=0)
    below = np.concatenate([np.zeros((1, at.shape[1])), np.cumsum(c[order], axis=0)])
    values, pull = np.take_along_axis(at, order, axis=0), c.sum() - 2 * below

    def dual_step(u: Array, sigma: Array) -> Array:
        return u - sigma * np.median(np.concatenate([values, (u + pull) / sigma]), axis=0)

    return dual_step, np.ones(1)


def _one_by_one(at: Array, c: Array, penalty: Penalty) -> tuple[DualStep, Array]:
    """One dual vector for each neighbour, with steps in proportion to the strengths."""

    def dual_step(u: Array, sigma: Array) -> Array:
        return penalty.dual_step(u - sigma * at, c, sigma[:, 0])

    return dual_step, c / c.sum()


def _iterate(at: Array, c: Array, f: LocalLosses | None, dual_step: DualStep, share: Array) -> Array:
    """The paper's Algorithm 1 on a star whose leaves do not move, with its two steps kept in balance.

    1/τ = Σσ, and σ is shared out among the duals.
    """
    middle, u = _median(at, c)[None], np.zeros((len(share), at.shape[1]))
    w = middle
    spread = float(np.abs(at - w).max()) or float(np.abs(at).max()) or 1.0
    total, patience, changed = c.sum() / spread, CHECK_EVERY, 0
    for t in range(1, MAX_ITER + 1):
        tau, sigma = np.array([1.0 / total]), (total * share)[:, None]
        v = w - tau * u.sum(axis=0)
        w_next = v if f is None else f.prox(v, tau, w)
        u_next = dual_step(u + sigma * (2 * w_next - w), sigma)
        dw, du = w - w_next, u - u_next
        w, u = w_next, u_next
        if t % CHECK_EVERY == 0:
            stationarity = np.abs(total * dw - du.sum(axis=0)).max() / c.sum()
            feasibility = np.abs(du / sigma - dw).max() / spread
            if max(stationarity, feasibility) <= OPTIMALITY:
                break
            uneven = feasibility / max(stationarity, np.finfo(float).tiny)
            if len(share) == 1:  # the two are one and the same: by how far weights and duals have come
                uneven = np.abs(u).max() / max(total * np.abs(w - middle).max(), np.finfo(float).tiny)
            if t >= changed + patience and not 1 / UNEVEN <= uneven <= UNEVEN:
                total *= np.clip(np.sqrt(uneven), 0.2, 5.0)
                changed, patience = t, patience * 4 // 3  # ever more rarely, so that it converges
    return w[0]
