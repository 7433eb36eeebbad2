"""Exact elimination on a forest: (H + DᵀΘD) x = b, one n × n block per node, from the leaves to the roots.

``order`` lists parents before their children; ``parent`` and ``via`` (−1 at a root) are the node above and the edge to
it; ``place[i]`` is the row of node i in arrays of labelled nodes, or −1. Θ (E, n) is positive.
"""

from __future__ import annotations

from coterie.kernels.compiling import jit
from coterie.kernels.invert import invert, scratch

RIDGE = 1e-13  # of the diagonal of a root, along directions that no node sees


@jit
def eliminate(room, order, parent, via, place, H, theta, S):
    """S_i ← (A_i + Θ)⁻¹, where A_i is H_i and what the children of i have left: A_i += Θ − Θ S_j Θ of each child j."""
    n, free = len(room), scratch(len(room))
    for i in range(len(order)):
        row = place[i]
        for p in range(n):
            for q in range(n):
                S[i, p, q] = H[row, p, q] if row >= 0 else 0.0
    for at in range(len(order) - 1, -1, -1):
        i = order[at]
        e, above = via[i], parent[i]
        for p in range(n):
            S[i, p, p] += theta[e, p] if e >= 0 else RIDGE * S[i, p, p] + 1e-300
        invert(room, free, S[i])
        if e >= 0:
            for p in range(n):
                for q in range(n):
                    S[above, p, q] -= theta[e, p] * S[i, p, q] * theta[e, q]
                S[above, p, p] += theta[e, p]


@jit
def substitute(order, parent, via, theta, S, b, x):
    """x ← the solution for the right-hand side b, which is used up."""
    n = b.shape[1]
    for at in range(len(order) - 1, -1, -1):
        i = order[at]
        e, above = via[i], parent[i]
        for p in range(n):
            x[i, p] = 0.0
        for q in range(n):
            t = b[i, q]
            for p in range(n):
                x[i, p] += S[i, q, p] * t
        if e >= 0:
            for p in range(n):
                b[above, p] += theta[e, p] * x[i, p]
    for at in range(len(order)):
        i = order[at]
        e, above = via[i], parent[i]
        if e >= 0:
            for q in range(n):
                t = theta[e, q] * x[above, q]
                for p in range(n):
                    x[i, p] += S[i, q, p] * t
