"""Sums over the rows of nodes and groups, plain and in twice the precision, all nodes at once.

In twice the precision, numbers are added in pairs, then pairs of those, and so on: L = ⌈log₂ m⌉ levels for m numbers.
With u the unit roundoff, what the additions of one level lose adds up to u S, S = Σ|a_r b_r|, and the products lose
u S before. These errors are exact, and gathering them rounds each 2L times at most. So hi + lo is within
2L(L + 1)u² S of the truth (and terms of order u³), which is less than half of (m eps)² S = 4m²u² S for every m.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.exact import two_sum


def node_of_rows(starts):
    """The node of every row; rows of node i are those from starts[i] to starts[i + 1]."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def grouped(group, n_groups):
    """An order in which the members of a group follow each other, and where each group starts; negative: left out."""
    order = np.argsort(group, kind="stable")
    size = np.bincount(group[group >= 0], minlength=n_groups)
    order = order[len(order) - int(size.sum()) :]
    return order, np.concatenate([[0], np.cumsum(size)])


def sum_rows(starts, values):
    """Σ of the values of each node's rows, in plain floating point; zero where there are none."""
    out, some = np.zeros((len(starts) - 1, *values.shape[1:])), np.diff(starts) > 0
    if some.any():
        out[some] = np.add.reduceat(values, starts[:-1][some], axis=0)
    return out


def sum_rows_exactly(starts, hi, lo):
    """Σ of hi + lo over each node's rows, as hi + lo; both are used up."""
    m = np.diff(starts)
    while (m > 1).any():
        half = (m + 1) // 2
        pairs = m - half
        first = np.cumsum(pairs) - pairs
        left = np.repeat(starts[:-1] - first, pairs) + np.arange(pairs.sum())
        right = left + np.repeat(half, pairs)
        hi[left], error = two_sum(hi[left], hi[right])
        lo[left] += lo[right] + error
        m = half
    some = np.diff(starts) > 0
    out = np.zeros((2, len(m), *hi.shape[1:]))
    out[0, some], out[1, some] = hi[starts[:-1][some]], lo[starts[:-1][some]]
    return out[0], out[1]


def sum_columns_exactly(hi, lo):
    """Σ of hi + lo over the columns of each row, as hi + lo; both are used up."""
    width = hi.shape[1]
    while width > 1:
        half = (width + 1) // 2
        left, right = np.s_[:, : width - half], np.s_[:, half:width]
        hi[left], error = two_sum(hi[left], hi[right])
        lo[left] += lo[right] + error
        width = half
    return hi[:, 0], lo[:, 0]
