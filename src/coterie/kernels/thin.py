"""The minimisers that coordinate descent finds, where H = BBᵀ has few columns: Newton's method in as many unknowns.

With ρ = Bᵀz, the minimiser of ½ zᵀ(BBᵀ + κ)z − ⟨target, z⟩ + Σ alpha|z| is z = S(target − Bρ)/κ, S the soft threshold
of alpha, and ρ minimises the convex, piecewise quadratic φ(ρ) = ½‖ρ‖² + ‖S(target − Bρ)‖²/(2κ). A Newton step of φ is
the exact solve on the support of z, with its signs. A step costs n r + (support) r², and nothing of size n × n is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.cholesky import dot, factorise, solve_in_place, substitute
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.descent import in_pieces, largest, none_missed, signs_agree, support_of

SUM_ERROR = 1e-13  # of a sum of n terms, relative to their sizes
SHORTEST = 1e-6  # part of a Newton step
MOST_STEPS = 200  # a few do, but where rounding hides which weights are zero


def thin_newton(
    B: Any, target: Any, curvature: Any, alpha: Any, start: Any, accuracy: float, max_steps: int, of: Any = None
) -> Any:
    """Return the minimisers, from `start`; row i belongs to B[i] (n, r), or to B[of[i]]."""
    kept = B, np.empty(B.shape[2])
    return in_pieces(_thin_newton, kept, target, curvature, alpha, start, accuracy, min(max_steps, MOST_STEPS), of)


@inline_llvm
def _soft(c, alpha):
    return max(c - alpha, 0.0) - max(-c - alpha, 0.0)


@inline_llvm
def _combine(B, place, size, x, out):
    """out ← Σ x_a B_a over the support."""
    for j in range(len(out)):
        out[j] = 0.0
    for a in range(size):
        row = B[place[a]]
        for j in range(len(out)):
            out[j] += x[a] * row[j]


@inline_llvm
def _system(B, curvature, place, size, A):
    """A ← the lower half of B_S B_Sᵀ + κ or, where the support S is larger than the rank, B_SᵀB_S + κ; its order."""
    rank = B.shape[1]
    if size <= rank:
        for a in range(size):
            for b in range(a + 1):
                A[a, b] = dot(B[place[a]], B[place[b]])
            A[a, a] += curvature
        return size
    for j in range(rank):
        for q in range(j + 1):
            A[j, q] = 0.0
        A[j, j] = curvature
    for a in range(size):
        row = B[place[a]]
        for j in range(rank):
            t = row[j]
            for q in range(j + 1):
                A[j, q] += t * row[q]
    return rank


@inline_llvm
def _on_support(B, target, curvature, alpha, z, size, place, A, g, step, left, rho, t):
    """step ← the minimiser on the support of z, with its signs.

    (BBᵀ + κ)⁻¹g = (g − B (BᵀB + κ)⁻¹ Bᵀg)/κ where that is the smaller system, once more for what rounding left.
    """
    for a in range(size):
        g[a] = np.sign(z[place[a]]) * alpha[place[a]] - target[place[a]]
    order = _system(B, curvature, place, size, A)
    if order == size:
        solve_in_place(g[:size], A[:size, :size], g[:size], step[:size])
        return
    for a in range(size):
        step[a] = 0.0
    factorise(rho, A, t)
    for _ in range(2):
        _combine(B, place, size, step, rho)
        for a in range(size):
            left[a] = g[a] + curvature * step[a] + dot(B[place[a]], rho)
        _combine(B, place, size, left, rho)
        substitute(rho, A, rho, t)
        for a in range(size):
            step[a] -= (left[a] + dot(B[place[a]], t)) / curvature


@inline_llvm
def _falls(length, rho, d, slope, e, alpha, curvature):
    """Whether φ falls at ρ + length · d, where the slopes are slope − length · e; or rounding hides that it rises."""
    total, size = 0.0, 0.0
    for j in range(len(d)):
        term = (rho[j] + length * d[j]) * d[j]
        total += term
        size += abs(term)
    for k in range(len(e)):
        term = _soft(slope[k] - length * e[k], alpha[k]) * e[k] / curvature
        total -= term
        size += abs(term)
    return total <= SUM_ERROR * size


@inline_llvm
def _best_length(rho, d, slope, e, alpha, curvature):
    """Where φ is least along d, at most 1: a full Newton step where φ still falls there."""
    if _falls(1.0, rho, d, slope, e, alpha, curvature):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > 0.1 * high and high > SHORTEST:
        middle = 0.5 * (low + high)
        if _falls(middle, rho, d, slope, e, alpha, curvature):
            low = middle
        else:
            high = middle
    return high


@jit
def _thin_newton(kept, of, target, curvature, alpha, z, node, step, accuracy, max_steps, work):
    """Go on with this node and step; return the node and the step to go on with. `kept` is B, and ρ in between."""
    B, rho = kept
    n, rank = B.shape[1], B.shape[2]
    slope, e, there, g, on, left = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    d, t, A = np.empty(rank), np.empty(rank), np.empty((rank, rank))
    place = np.empty(n, dtype=np.int64)
    for i in range(node, len(z)):
        if work <= 0:
            return i, 0
        Q, x, kappa, free = B[of[i]], z[i], curvature[i], alpha[i]
        enough = accuracy * largest(target[i])
        for s in range(step, max_steps):
            size = support_of(free, x, place)
            if s == 0:
                for a in range(size):
                    on[a] = x[place[a]]
                _combine(Q, place, size, on, rho)
            _on_support(Q, target[i], kappa, free, x, size, place, A, g, on, left, d, t)
            least = min(size, rank)
            work -= least * least * (least // 6 + max(size, rank)) + 2 * n * rank
            _combine(Q, place, size, on, d)
            for j in range(rank):
                d[j] -= rho[j]
            for k in range(n):
                slope[k] = target[i, k] - dot(Q[k], rho)
                e[k] = dot(Q[k], d)  # not a difference of slopes: that would be mostly rounding in the end
                there[k] = slope[k] - e[k]
            done = signs_agree(free, place, size, x, on) and none_missed(free, place, size, there)
            if done or (s > 0 and largest(e) <= enough):
                for a in range(size):
                    agrees = free[place[a]] == 0 or on[a] * x[place[a]] > 0
                    x[place[a]] = on[a] if agrees else 0.0
                break
            length = 0.0  # the start is no S(target − Bρ)/κ, and its support no direction
            if s > 0:
                length = _best_length(rho, d, slope, e, free, kappa)
                for j in range(rank):
                    rho[j] += length * d[j]
            for k in range(n):
                x[k] = _soft(slope[k] - length * e[k], free[k]) / kappa
            if work <= 0:
                return i, s + 1
        step = 0
    return len(z), 0
