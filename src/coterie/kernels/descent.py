"""Coordinate descent for ½ zᵀ(H + κ)z − ⟨target, z⟩ + Σ alpha|z|, node by node.

First, and every few sweeps, the problem is solved exactly on the present support; mostly that ends it. Otherwise a node
is done when no step changes its gradient by more than `accuracy`, relative to target. (Not to alpha: where a weight is
to stay at zero, that may be as good as infinite.)

Kernels stop when they have done some `work`, and say where: they can be interrupted there, and go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.cholesky import solve_in_place
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.interruption import WORK, time_is_up

TRY_SUPPORT = 4  # sweeps between two exact solves on the support
MOST_EXACT = 1500  # a larger system would take longer than that, and is left to the sweeps


def coordinate_descent(
    H: Any, target: Any, curvature: Any, alpha: Any, start: Any, accuracy: float, max_sweeps: int, of: Any = None
) -> Any:
    """Return the minimisers, from `start`; row i belongs to H[i], or to H[of[i]]."""
    return in_pieces(_coordinate_descent, H, target, curvature, alpha, start, accuracy, max_sweeps, of)


def in_pieces(kernel, matrices, target, curvature, alpha, start, accuracy, most, of):
    """Run a kernel to the end, or until the time is up: rows that it did not come to are those of `start` then."""
    z, alpha = start.copy(), np.ascontiguousarray(alpha)
    of = np.arange(len(z)) if of is None else of
    node = step = 0
    while node < len(z) and not time_is_up():
        node, step = kernel(matrices, of, target, curvature, alpha, z, node, step, accuracy, most, WORK)
    return z


@inline_llvm
def support_of(alpha, z, place):
    """place ← the coordinates that are not zero, or that cost nothing; return how many."""
    size = 0
    for k in range(len(z)):
        if z[k] != 0 or alpha[k] == 0:
            place[size] = k
            size += 1
    return size


@inline_llvm
def signs_agree(alpha, place, size, z, step):
    """Whether `step` on the support has the signs of z, where they count."""
    agree = True
    for a in range(size):
        agree = agree and (alpha[place[a]] == 0 or step[a] * z[place[a]] > 0)
    return agree


@inline_llvm
def none_missed(alpha, place, size, slope):
    """Whether no slope outside the support is above alpha."""
    at = 0
    for k in range(len(slope)):
        if at < size and place[at] == k:
            at += 1
        elif abs(slope[k]) > alpha[k]:
            return False
    return True


@inline_llvm
def shrunk(pull, alpha, diagonal):
    """The minimiser over one coordinate."""
    return (max(pull - alpha, 0.0) - max(-pull - alpha, 0.0)) / diagonal


@inline_llvm
def largest(x):
    """max |x|."""
    size = 0.0
    for k in range(len(x)):
        size = max(size, abs(x[k]))
    return size


@inline_llvm
def _on_support(H, target, curvature, alpha, z, size, place, slope, A, g, step):
    """Solve for the coordinates of the support, with their signs; keep it if nothing contradicts it."""
    for a in range(size):
        for b in range(size):
            A[a, b] = H[place[a], place[b]]
        A[a, a] += curvature
        g[a] = np.sign(z[place[a]]) * alpha[place[a]] - target[place[a]]
    solve_in_place(g[:size], A[:size, :size], g[:size], step[:size])
    if not signs_agree(alpha, place, size, z, step):
        return False
    for k in range(len(z)):
        slope[k] = target[k]
        for a in range(size):
            slope[k] -= H[k, place[a]] * step[a]
    if not none_missed(alpha, place, size, slope):
        return False
    for a in range(size):
        z[place[a]] = step[a]
    return True


@jit
def _coordinate_descent(H, of, target, curvature, alpha, z, node, sweep, accuracy, max_sweeps, work):
    """Go on with this node and sweep; return the node and the sweep to go on with."""
    n = z.shape[1]
    slope, g, step = np.empty(n), np.empty(n), np.empty(n)
    most = min(n, MOST_EXACT)
    A, place = np.empty((most, most)), np.empty(n, dtype=np.int64)
    for i in range(node, len(z)):
        if work <= 0:
            return i, 0
        Q, x, kappa, free = H[of[i]], z[i], curvature[i], alpha[i]
        enough = accuracy * largest(target[i])
        fresh = True
        for s in range(sweep, max_sweeps):
            if s % TRY_SUPPORT == 0:
                size = support_of(free, x, place)
                if size <= most:
                    work -= size * (size * size // 6 + n)
                    if _on_support(Q, target[i], kappa, free, x, size, place, slope, A, g, step):
                        break
                fresh = True
            if fresh:
                for k in range(n):
                    slope[k] = target[i, k] - kappa * x[k]
                    for q in range(n):
                        slope[k] -= Q[k, q] * x[q]
                work -= n * n
                fresh = False
            change = 0.0
            for k in range(n):
                diagonal = Q[k, k] + kappa
                new = shrunk(slope[k] + diagonal * x[k], free[k], diagonal)
                move = new - x[k]
                if move != 0:
                    x[k] = new
                    slope[k] -= kappa * move
                    for q in range(n):
                        slope[q] -= Q[k, q] * move
                    work -= n
                    change = max(change, abs(move) * diagonal)
            if change <= enough:
                break
            if work <= 0:
                return i, s + 1
        sweep = 0
    return len(z), 0
