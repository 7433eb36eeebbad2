"""Rows of several classes, compiled: what Newton's method and models need of the rows of a node.

The weights of a node are one vector, those of class 0 first: n columns make K n weights. The curvature of a row is
share (diag p − ppᵀ) in its scores, p its chances: K² numbers, one row of it after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels import vector_buffer
from coterie.kernels.compiling import inline_llvm, jit
from coterie.kernels.vector import another, put

FAR = 50.0  # a way along which curvature can become anything


@inline_llvm
def _scores(X, r, z, out):
    """out ← ⟨x_r, z_k⟩ of every class."""
    n = X.shape[1]
    for k in range(len(out)):
        total = 0.0
        for j in range(n):
            total += X[r, j] * z[k * n + j]
        out[k] = total


@inline_llvm
def _ends(scores):
    """The smallest and the largest; a loop is several times faster than NumPy's functions on few numbers."""
    least, most = scores[0], scores[0]
    for k in range(1, len(scores)):
        least, most = min(least, scores[k]), max(most, scores[k])
    return least, most


@inline_llvm
def _chances(scores):
    """Scores become chances, in place where they are an array."""
    (_, most), total = _ends(scores), 0.0
    for k in range(len(scores)):
        scores = put(scores, k, np.exp(scores[k] - most))
        total += scores[k]
    for k in range(len(scores)):
        scores = put(scores, k, scores[k] / total)
    return scores


@inline_llvm
def _spread(scores):
    """How far the largest is from the smallest."""
    least, most = _ends(scores)
    return most - least


@inline_llvm
def _others(chance, k):
    """What the other chances add up to, also where one less this one would be rounding."""
    total = 0.0
    for j in range(len(chance)):
        if j != k:
            total += chance[j]
    return total


@inline_llvm
def _bend(share, chance, out):
    """out ← share (diag p − ppᵀ)."""
    K = len(chance)
    for k in range(K):
        for j in range(K):
            out[k * K + j] = share * chance[k] * (_others(chance, k) if j == k else -chance[j])


@inline_llvm
def _add_curvature(X, r, bend, line, half, H):
    """H ← H + bend ⊗ x_r x_rᵀ, of which half will do where one is asked for; `line` is room for K n numbers."""
    n = X.shape[1]
    K = len(line) // n
    for k in range(K):
        last = (k + 1 if half else K) * n
        for j in range(K):
            for b in range(n):
                line[j * n + b] = bend[k * K + j] * X[r, b]
        for a in range(n):
            x = X[r, a]
            for q in range(last):
                H[k * n + a, q] += x * line[q]


@inline_llvm
def _put_directions(x, factor, chance, line, Z):
    """Rows of Z, from `line` on, ← the K − 1 directions of a row x: factor (diag p − ppᵀ) ⊗ xxᵀ is their ZᵀZ.

    diag p − ppᵀ = BBᵀ with the K − 1 columns B_j of which B_kj = 0 for k < j, B_jj = √(p_j t_j/(p_j + t_j)) and
    B_kj = −B_jj p_k/t_j for k > j, t_j the sum of the p_k with k > j: nothing overflows, however small chances are.
    """
    n, K = len(x), len(chance)
    tail = chance[K - 1]
    for q in range(K - 1):
        j = K - 2 - q
        own = np.sqrt(factor * chance[j] * (tail / (chance[j] + tail))) if tail > 0 else 0.0
        for k in range(K):
            pull = own if k == j else 0.0
            if k > j and own > 0:
                pull = -own * (chance[k] / tail)
            for a in range(n):
                Z[line + j, k * n + a] = pull * x[a]
        tail += chance[j]


@jit
def objective(X, y, share, first, last, z):
    """Σ_r share_r log Σ_k e^{e_k} over the rows from first to last, e_k what class k has more than the row's own."""
    K = len(z) // X.shape[1]
    scores, total = np.empty(K), 0.0
    for r in range(first, last):
        _scores(X, r, z, scores)
        top = scores.argmax()
        others = 0.0
        for k in range(K):
            if k != top:
                others += np.exp(scores[k] - scores[top])
        total += share[r] * (scores[top] - scores[int(y[r])] + np.log1p(others))
    return total


@jit
def gradient(X, y, share, first, last, z, g, size, chances):
    """Add the gradient of that to g, and what it is made of, in absolute value, to size; chances ← those of rows."""
    n, K = X.shape[1], len(z) // X.shape[1]
    for r in range(first, last):
        chance = chances[(r - first) * K : (r - first + 1) * K]
        _scores(X, r, z, chance)
        chance = _chances(chance)
        for k in range(K):
            pull = share[r] * (-_others(chance, k) if k == int(y[r]) else chance[k])
            for j in range(n):
                g[k * n + j] += pull * X[r, j]
                size[k * n + j] += abs(pull * X[r, j])


@jit
def add_hessian(X, share, first, last, chances, H):
    """Add the curvature of the rows from first to last to the lower half of H."""
    K = len(H) // X.shape[1]
    line, bend = np.empty(len(H)), np.empty(K * K)
    for r in range(first, last):
        _bend(share[r], chances[(r - first) * K : (r - first + 1) * K], bend)
        _add_curvature(X, r, bend, line, True, H)


@jit
def put_directions(X, share, first, last, chances, Z):
    """Z ← rows whose ZᵀZ is that curvature, K − 1 for each row."""
    K, x = Z.shape[1] // X.shape[1], np.empty(X.shape[1])
    for r in range(first, last):
        chance = chances[(r - first) * K : (r - first + 1) * K]
        _put_directions(_row(x, X, r), share[r], chance, (r - first) * (K - 1), Z)


@jit
def way(X, first, last, step):
    """How much curvature can change along a step, as a logarithm."""
    scores, longest = np.empty(len(step) // X.shape[1]), 0.0
    for r in range(first, last):
        _scores(X, r, step, scores)
        longest = max(longest, _spread(scores))
    return longest


@inline_llvm
def _row(x, X, r):
    """Row r of X."""
    for j in range(len(x)):
        x = put(x, j, X[r, j])
    return x


@inline_llvm
def _scores_and_moves(x, i, w, before, known, scores, moved):
    """⟨x, w_ik⟩ of every class, and by how much they are more than at `before`, if that is known."""
    n = len(x)
    for k in range(len(scores)):
        total, way = 0.0, 0.0
        for j in range(n):
            at = w[i, k * n + j]
            total += x[j] * at
            if known:
                way += x[j] * (at - before[i, k * n + j])
        scores, moved = put(scores, k, total), put(moved, k, way)
    return scores, moved


@inline_llvm
def _touch(x, own, share, i, w, before, known, chance, moved, slope):
    """Add the slope of a row of class `own` at w_i to slope_i; return c, p and s: its curvature is at most
    c (diag p − ppᵀ) on the way from `before`, where scores move by s apart. Where no point before is known, that is so
    everywhere.

    Along a line, |ψ‴| is at most ψ″ times the spread of what scores change by: curvature grows by no more than e to
    that. It is at most ½(I − 11ᵀ/K) (Böhning), which is taken where that is less.
    """
    n, K = len(x), len(chance)
    chance, moved = _scores_and_moves(x, i, w, before, known, chance, moved)
    chance = _chances(chance)
    far = _spread(moved) if known else FAR
    trace = 0.0
    for k in range(K):
        others = _others(chance, k)
        trace += chance[k] * others
        pull = share * (-others if k == own else chance[k])
        for j in range(n):
            slope[i, k * n + j] += pull * x[j]
    factor = np.exp(min(far, FAR))
    if far < FAR and factor * trace < 0.5 * (K - 1):  # the traces of both
        return share * factor, chance, far
    for k in range(K):
        chance = put(chance, k, 1 / K)
    return 0.5 * K * share, chance, far


@jit
def model(X, y, share, starts, ridge, w, before, slope, H):
    """slope, H ← gradient and curvature at w_i of a quadratic that lies above L_i as far as w_i is from `before`, or
    everywhere without it. Return the largest spread of what the scores of a row have moved by since.
    """
    size, longest, known = len(ridge), 0.0, len(before) > 0
    K = size // X.shape[1]
    x, chance, moved = np.empty(X.shape[1]), np.empty(K), np.empty(K)
    line, bend = np.empty(size), np.empty(K * K)
    for i in range(len(w)):
        for k in range(size):
            slope[i, k] = 2 * ridge[k] * w[i, k]
            H[i, k, :] = 0.0
            H[i, k, k] = 2 * ridge[k]
        for r in range(starts[i], starts[i + 1]):
            x = _row(x, X, r)
            factor, chance, far = _touch(x, int(y[r]), share[r], i, w, before, known, chance, moved, slope)
            longest = max(longest, far) if known else longest
            _bend(factor, chance, bend)
            _add_curvature(X, r, bend, line, False, H[i])
    return longest


def thin_model(X: Any, y: Any, share: Any, starts: Any, ridge: Any, w: Any, before: Any, slope: Any, Z: Any) -> Any:
    """The same with the curvature 2 diag(ridge) + ZᵀZ, Z_i of K − 1 rows for each of node i, and zeros after them."""
    n = X.shape[1]
    return _thin_model(
        vector_buffer(n), vector_buffer(len(ridge) // n), X, y, share, starts, ridge, w, before, slope, Z
    )


@jit
def _thin_model(x, chance, X, y, share, starts, ridge, w, before, slope, Z):
    n, K, moved = len(x), len(chance), another(chance)
    longest, known = 0.0, len(before) > 0
    for i in range(len(w)):
        rows = Z[i]  # once: references to arrays are counted
        rows[(starts[i + 1] - starts[i]) * (K - 1) :] = 0.0
        for k in range(K * n):
            slope[i, k] = 2 * ridge[k] * w[i, k]
        for r in range(starts[i], starts[i + 1]):
            x = _row(x, X, r)
            factor, chance, far = _touch(x, int(y[r]), share[r], i, w, before, known, chance, moved, slope)
            longest = max(longest, far) if known else longest
            _put_directions(x, factor, chance, (r - starts[i]) * (K - 1), rows)
    return longest
