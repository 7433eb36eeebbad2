"""Inverses of positive definite matrices of a few dozen rows, in place. (A threaded BLAS is slower at these sizes.)"""

from __future__ import annotations

import numpy as np

from coterie.kernels import UNROLL_UP_TO
from coterie.kernels.compiling import inline_llvm

WIDTH = 4  # pivots at a time, in larger matrices


@inline_llvm
def scratch(n):
    """Room for `invert`, which is used again for every matrix."""
    return np.empty((2 * WIDTH, n)), np.empty((WIDTH, WIDTH))


@inline_llvm
def _jordan(A, n):
    """A ← A⁻¹ by Gauss and Jordan, one pivot after the other."""
    for p in range(n):
        pivot = 1 / A[p, p]
        A[p, p] = 1.0
        for q in range(n):
            A[p, q] *= pivot
        for r in range(n):
            if r != p:
                factor = A[r, p]
                A[r, p] = 0.0
                for q in range(n):
                    A[r, q] -= factor * A[p, q]


@inline_llvm
def _sweep(A, C, B, p, width):
    """Sweep the pivots p … p + width out of the lower half of A: with B the inverse of their block and C their rows,
    A ← A − CᵀBC elsewhere, BC in their place and −B where they meet."""
    n = A.shape[1]
    for x in range(WIDTH):
        for q in range(n):
            C[x, q] = 0.0 if x >= width else (A[p + x, q] if q <= p + x else A[q, p + x])
    for x in range(WIDTH):
        for y in range(WIDTH):
            B[x, y] = C[x, p + y] if x < width and y < width else (1.0 if x == y else 0.0)
    _jordan(B, WIDTH)
    for x in range(WIDTH):
        for q in range(n):
            C[WIDTH + x, q] = B[x, 0] * C[0, q] + B[x, 1] * C[1, q] + B[x, 2] * C[2, q] + B[x, 3] * C[3, q]
    for r in range(n):
        a, b, c, d = C[0, r], C[1, r], C[2, r], C[3, r]
        for q in range(r + 1):
            A[r, q] -= a * C[4, q] + b * C[5, q] + c * C[6, q] + d * C[7, q]
    for x in range(width):
        for q in range(p):
            A[p + x, q] = C[WIDTH + x, q]
        for y in range(x + 1):
            A[p + x, p + y] = -B[x, y]
        for q in range(p + width, n):
            A[q, p + x] = C[WIDTH + x, q]


@inline_llvm
def invert(room, free, A):
    """A ← A⁻¹. The length of `room` is n, known to the compiler where it is a tuple; `free` comes from `scratch`."""
    n = len(room)
    if n <= UNROLL_UP_TO:
        _jordan(A, n)
        return
    C, B = free
    for p in range(0, n, WIDTH):
        _sweep(A, C, B, p, min(WIDTH, n - p))
    for r in range(n):
        for q in range(r + 1):
            A[r, q] = -A[r, q]
            A[q, r] = A[r, q]
