"""Dual steps on matchings: edges that share no node, so that each of them can be solved by itself.

Arrays: ``ends`` (E, 2) node numbers, matching after matching; ``strength`` (E, 2) holds c_e and σ_e side by side, or
(1, 2) where they are the same for all edges; ``x`` (V) the weights that go with the duals; ``ease`` (V) is 1/h_i.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.compiling import jit


@jit
def matchings(ends, V):
    """The matching of every edge: the first in which both its ends are free.

    With up to 32 edges at a node 63 matchings are always enough, one bit of a number for each.
    """
    taken, matching = np.zeros(V, dtype=np.uint64), np.empty(len(ends), dtype=np.uint8)
    one = np.uint64(1)
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        k, rest = 0, taken[i] | taken[j]
        while rest & one:
            k, rest = k + 1, rest >> one
        bit = one << np.uint64(k)
        taken[i] |= bit
        taken[j] |= bit
        matching[e] = k
    return matching


@jit
def pair_pass(ends, strength, ease, x, u, u0, momentum):
    """Minimise exactly over the dual of each edge of a (part of a) matching; return Σ|du|²/σ.

    x follows at both ends. u₀ ← û, u ← û + momentum · (û − û of the last pass).
    """
    pace, total = min(len(strength) - 1, 1), 0.0
    for e in range(len(ends)):
        i, j = ends[e, 0], ends[e, 1]
        c, sigma = strength[e * pace, 0], strength[e * pace, 1]
        t = min(max(u[e] + sigma * (x[i] - x[j]), -c), c)
        du = t - u[e]
        back, forth = ease[i] * du, ease[j] * du
        x[i] -= back
        x[j] += forth
        u[e] = t + momentum * (t - u0[e])
        u0[e] = t
        total += du * (back + forth)
    return total


@jit
def go_on(x, x0, momentum):
    """x₀ ← x, x ← x + momentum · (x − x₀): the weights that go with duals that have moved on like this."""
    for i in range(len(x)):
        reached = x[i]
        x[i] = reached + momentum * (reached - x0[i])
        x0[i] = reached
