"""Small positive definite systems. (A threaded BLAS is slower at these sizes.)"""

from __future__ import annotations

from coterie.kernels.compiling import fastmath, inline_llvm

LONG = 32  # rows from which on sums in any order, several terms at a time, are faster


@fastmath
def dot(a, b):
    """⟨a, b⟩, in the precision of both."""
    total = a.dtype.type(0)
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@inline_llvm
def factorise(room, H, row):
    """H ← L diag(d) Lᵀ, ones on the diagonal of L; `row` is room for one. The lower half of H is read and written.

    Below the diagonal, L diag(d) is kept, and on it 1/d, so that n divisions are all there are, and no roots. A pivot
    that is only rounding counts as a little curvature. The length of `room` is n, known to the compiler where it is
    a tuple.
    """
    n = len(room)
    for k in range(n):
        least = max(1e-14 * H[k, k], 1e-300)
        for q in range(k):
            row[q] = H[k, q] * H[q, q]
            H[k, k] -= H[k, q] * row[q]
        H[k, k] = 1 / max(H[k, k], least)
        if n > LONG:
            for r in range(k + 1, n):
                H[r, k] -= dot(H[r, :k], row[:k])
            continue
        for r in range(k + 1, n):
            for q in range(k):
                H[r, k] -= H[r, q] * row[q]


@inline_llvm
def substitute(room, H, g, step):
    """step ← −H⁻¹g with those factors."""
    n = len(room)
    for k in range(n):
        t = -g[k]
        for q in range(k):
            t -= H[k, q] * step[q]
        step[k] = t * H[k, k]
    for k in range(n - 1, -1, -1):
        t = 0.0
        for q in range(k + 1, n):
            t += H[q, k] * step[q]
        step[k] -= t * H[k, k]


@inline_llvm
def solve_in_place(room, H, g, step):
    """step ← −H⁻¹g; H is overwritten by its factors."""
    factorise(room, H, step)
    substitute(room, H, g, step)
