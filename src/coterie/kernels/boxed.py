"""Coordinate descent with bounds, node by node: `reference.boxed`."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import finite
from coterie.kernels.cholesky import solve_in_place
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.descent import MOST_EXACT, TRY_SUPPORT, in_pieces, largest, shrunk
from coterie.kernels.reference.boxed import TRIES


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
    start = np.clip(start, lower, upper)
    given = H, finite(lower), finite(upper)
    return in_pieces(_boxed_descent, given, target, curvature, alpha, start, accuracy, max_sweeps, None)


@inline_llvm
def _free_places(alpha, lower, upper, z, place):
    """place ← the coordinates that are neither at a bound nor at a kink; return how many."""
    size = 0
    for k in range(len(z)):
        if lower[k] < z[k] < upper[k] and (z[k] != 0 or alpha[k] == 0):
            place[size] = k
            size += 1
    return size


@inline_llvm
def _end(z, aim, alpha, lower, upper):
    """The bound or kink on the way from z to `aim`, and beyond."""
    if aim > z:
        return min(upper, 0.0) if alpha > 0 and z < 0 else upper
    return max(lower, 0.0) if alpha > 0 and z > 0 else lower


@inline_llvm
def _on_free_coordinates(H, target, curvature, alpha, lower, upper, z, size, place, x, A, g, step):
    """Solve for the free coordinates, with their signs, and go there, or to where one is no longer free.

    Return whether that is all the way, and whether nothing contradicts it: a bound or a kink that had to be left.
    """
    n = len(z)
    for k in range(n):
        x[k] = z[k]
    for a in range(size):
        x[place[a]] = 0.0
    for a in range(size):
        p = place[a]
        for b in range(a + 1):
            A[a, b] = H[p, place[b]]
        A[a, a] += curvature
        g[a] = np.sign(z[p]) * alpha[p] - target[p]
        for q in range(n):
            g[a] += H[p, q] * x[q]
    solve_in_place(g[:size], A[:size, :size], g[:size], step[:size])
    reach = 1.0
    for a in range(size):
        p = place[a]
        end = _end(z[p], step[a], alpha[p], lower[p], upper[p])
        g[a] = (end - z[p]) / (step[a] - z[p]) if step[a] != z[p] else 2.0
        reach = min(reach, g[a])
    agrees = whole = reach >= 1
    for a in range(size):
        p = place[a]
        if whole:
            x[p] = step[a]
        elif g[a] <= reach:
            x[p] = _end(z[p], step[a], alpha[p], lower[p], upper[p])
        else:
            x[p] = min(max(z[p] + reach * (step[a] - z[p]), lower[p]), upper[p])
    for a in range(size):
        p = place[a]
        agrees = agrees and lower[p] <= x[p] <= upper[p] and (alpha[p] == 0 or x[p] * z[p] > 0)
        z[p] = x[p]
    at = 0
    for k in range(n):
        if at < size and place[at] == k:
            at += 1
            continue
        slope = target[k] - curvature * x[k]
        for q in range(n):
            slope -= H[k, q] * x[q]
        if x[k] > lower[k] and slope < (alpha[k] if x[k] > 0 else -alpha[k]):
            return whole, False
        if x[k] < upper[k] and slope > (alpha[k] if x[k] >= 0 else -alpha[k]):
            return whole, False
    return whole, agrees


@jit
def _boxed_descent(given, of, target, curvature, alpha, z, node, sweep, accuracy, max_sweeps, work):
    """Go on with this node and sweep; return the node and the sweep to go on with. `given` is H and the bounds."""
    H, lower, upper = given
    n = z.shape[1]
    slope, g, step = np.empty(n), np.empty(n), np.empty(n)
    most = min(n, MOST_EXACT)
    A, place = np.empty((most, most)), np.empty(n, dtype=np.int64)
    for i in range(node, len(z)):
        if work <= 0:
            return i, 0
        Q, x, kappa, costs = H[of[i]], z[i], curvature[i], alpha[i]
        enough = accuracy * largest(target[i])
        for s in range(sweep, max_sweeps):
            if s % TRY_SUPPORT == 0:
                agrees = False
                for _ in range(TRIES):
                    size = _free_places(costs, lower, upper, x, place)
                    if size > most:
                        break
                    work -= size * (size * size // 6 + n) + n * n
                    whole, agrees = _on_free_coordinates(
                        Q, target[i], kappa, costs, lower, upper, x, size, place, slope, A, g, step
                    )
                    if whole:
                        break
                if agrees:
                    break
            change = 0.0
            for k in range(n):
                pull = target[i, k]
                for q in range(n):
                    pull -= Q[k, q] * x[q] if q != k else 0.0
                diagonal = Q[k, k] + kappa
                new = min(max(shrunk(pull, costs[k], diagonal), lower[k]), upper[k])
                change = max(change, abs(new - x[k]) * diagonal)
                x[k] = new
            work -= n * n
            if change <= enough:
                break
            if work <= 0:
                return i, s + 1
        sweep = 0
    return len(z), 0
