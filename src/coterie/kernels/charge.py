"""Sums over nodes behind a charge: Σ ⟨ρ_i, w*_i − w_i⟩ at the worst w* that is possible. group[i] < 0: left out."""

from __future__ import annotations

import numpy as np

from coterie.kernels.exact import EPS, FAINT, add, add_product, strict


@strict
def gather(rho, rounding_bound, w, group, centre, first, lost, total, slack, size):
    """Group by group: first ← Σ ⟨ρ_i, centre − w_i⟩ and lost ← its error; total ← Σ ρ_i and slack ← its error.

    size ← Σ (|ρ_i| + doubt_i), entry by entry.
    """
    G, n = centre.shape
    first_low, total_low, count = np.zeros(G), np.zeros((G, n)), np.zeros(G)
    for i in range(len(rho)):
        g = group[i]
        if g < 0:
            continue
        count[g] += 1
        for k in range(n):
            r, d = rho[i, k], rounding_bound[i, k]
            if r == 0 and d == 0:
                continue
            far = centre[g, k] - w[i, k]
            first[g], first_low[g] = add_product(first[g], first_low[g], r, far)
            lost[g] += abs(far) * (d + EPS * abs(r))
            total[g, k], total_low[g, k] = add(total[g, k], total_low[g, k], r)
            slack[g, k] += d
            size[g, k] += abs(r) + d
    for g in range(G):
        first[g] += first_low[g]
        lost[g] += EPS * abs(first[g]) + FAINT
        for k in range(n):
            total[g, k] += total_low[g, k]
            slack[g, k] += EPS * abs(total[g, k]) + ((n + 2) * count[g] * EPS) ** 2 * size[g, k]


@strict
def least(rho, rounding_bound, w, group, low, high, out):
    """out ← Σ min ⟨ρ_i, z − w_i⟩ over low ≤ z ≤ high, by groups, for any ρ within the rounding bound, less rounding."""
    rest = np.zeros(len(out))
    for i in range(len(rho)):
        g = group[i]
        if g < 0:
            continue
        for k in range(rho.shape[1]):
            r, d = rho[i, k], rounding_bound[i, k]
            if r == 0 and d == 0:
                continue
            below, above = low[g, k] - w[i, k], high[g, k] - w[i, k]
            if r != 0:
                out[g], rest[g] = add(out[g], rest[g], r * below if r > 0 else r * above)
            far = max(abs(below), abs(above))
            out[g], rest[g] = add(out[g], rest[g], -(d + 4 * EPS * abs(r)) * (1 + 4 * EPS) * far)
    for g in range(len(out)):
        if out[g] > -np.inf:
            out[g] = out[g] + rest[g] - 2 * EPS * abs(out[g]) - FAINT
