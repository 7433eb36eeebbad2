"""Sums over nodes behind a charge: see `coterie.kernels.charge`. group[i] < 0: left out.

Added up in pairs, sums lose less than half of the second-order terms that are charged (`sums`).
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.exact import EPS, FAINT, quiet, two_product, two_sum
from coterie.kernels.reference.sums import grouped, sum_columns_exactly, sum_rows, sum_rows_exactly


@quiet
def gather(rho, rounding_bound, w, group, centre, first, lost, total, slack, size):
    """Group by group: first ← Σ ⟨ρ_i, centre − w_i⟩ and lost ← its error; total ← Σ ρ_i and slack ← its error.

    size ← Σ (|ρ_i| + doubt_i), entry by entry.
    """
    n, (order, starts) = centre.shape[1], grouped(group, len(centre))
    r, d = rho[order], rounding_bound[order]
    far = np.where((r != 0) | (d != 0), centre[group[order]] - w[order], 0.0)
    each, error = sum_columns_exactly(*two_product(r, far))
    hi, lo = sum_rows_exactly(starts, np.column_stack([each, r]), np.column_stack([error, np.zeros_like(r)]))
    first[:], total[:] = hi[:, 0] + lo[:, 0], hi[:, 1:] + lo[:, 1:]
    lost[:] = sum_rows(starts, (np.abs(far) * (d + EPS * np.abs(r))).sum(axis=1)) + EPS * np.abs(first) + FAINT
    size[:] = sum_rows(starts, np.abs(r) + d)
    rounding = ((n + 2) * np.diff(starts)[:, None] * EPS) ** 2 * size
    slack[:] = sum_rows(starts, d) + (EPS * np.abs(total) + rounding)


@quiet
def least(rho, rounding_bound, w, group, low, high, out):
    """out ← Σ min ⟨ρ_i, z − w_i⟩ over low ≤ z ≤ high, by groups, for any ρ within the rounding bound, less rounding."""
    order, starts = grouped(group, len(out))
    g, r, d = group[order], rho[order], rounding_bound[order]
    below, above = low[g] - w[order], high[g] - w[order]
    best = np.where(r > 0, r * below, np.where(r < 0, r * above, 0.0))
    far = np.maximum(np.abs(below), np.abs(above))
    unsure = np.where((r != 0) | (d != 0), (d + 4 * EPS * np.abs(r)) * (1 + 4 * EPS) * far, 0.0)
    total, rest = sum_rows_exactly(starts, *sum_columns_exactly(*two_sum(best, -unsure)))
    out[:] = np.where(total > -np.inf, total + rest - 2 * EPS * np.abs(total) - FAINT, total)
