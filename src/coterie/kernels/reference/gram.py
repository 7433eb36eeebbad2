"""Gram matrices of rows in coordinates of their own, with bounds on their rounding: see `coterie.kernels.gram`.

The bounds count operations, and hold for any order of additions: a sum of m products of three numbers is within
(m + 1)u Σ|terms| of the truth, u = EPS/2, and (m + 4) EPS Σ|terms| are charged. What belongs to a group's nodes alone
(ridge, b) is added up over the nodes first, which makes fewer terms, not more.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.reference.exact import EPS, quiet
from coterie.kernels.reference.sums import grouped, node_of_rows, sum_rows


class _Groups:
    """The rows and nodes of each group. group[i] is that of node i."""

    def __init__(self, starts, group, n_groups):
        self.of_rows, self.nodes = group[node_of_rows(starts)], np.bincount(group, minlength=n_groups)
        self._rows, self._members = grouped(self.of_rows, n_groups), grouped(group, n_groups)
        self.rows = np.diff(self._rows[1])

    def over_rows(self, values):
        order, starts = self._rows
        return sum_rows(starts, values[order])

    def over_nodes(self, values):
        order, starts = self._members
        return sum_rows(starts, values[order])


def _rows_in(X, C, of_rows):
    """z_r = Cᵀx_r of every row, and a bound on its error, entry by entry."""
    if len(C) == 1:
        return X @ C[0], (X.shape[1] + 1) * EPS * (np.abs(X) @ np.abs(C[0]))
    z, rounding_bound = np.zeros((2, *X.shape))
    for k in range(X.shape[1]):
        t = X[:, k, None] * C[of_rows, k]
        z += t
        rounding_bound += np.abs(t)
    return z, (X.shape[1] + 1) * EPS * rounding_bound


def _squares(groups, h, z):
    """Σ_r h_r z_r z_rᵀ, group by group."""
    if len(groups.rows) == 1:
        return ((h[:, None] * z).T @ z)[None]
    return np.stack([groups.over_rows((h * column)[:, None] * z) for column in z.T], axis=1)


@quiet
def gram(X, h, starts, ridge, group, C, G, rounding_bound, spoilt, longest):
    """G ← Σ_r h_r z_r z_rᵀ + Σ_i Cᵀ diag(ridge) C; rounding_bound ← how far it is from the truth (Frobenius norm).

    spoilt ← Σ_r h_r |error of z_r|², column by column; longest ← the largest |z_r|, or a little more.
    """
    groups = _Groups(starts, group, len(G))
    z, dz = _rows_in(X, C, groups.of_rows)
    zz, dd = (z * z).sum(axis=1), (dz * dz).sum(axis=1)
    penalty = groups.nodes[:, None] * ridge
    G[:] = _squares(groups, h, z) + (penalty[:, :, None] * C).transpose(0, 2, 1) @ C
    below = np.tril_indices(X.shape[1], -1)
    G[:, below[1], below[0]] = G[:, below[0], below[1]]
    spoilt[:] = groups.over_rows(h[:, None] * dz * dz)
    longest[:] = 0.0
    np.maximum.at(longest, groups.of_rows, np.sqrt(zz) + np.sqrt(dd))
    size, lost = groups.over_rows(np.column_stack([h * zz, h * (2 * np.sqrt(zz * dd) + dd)])).T
    size = size + (penalty[:, :, None] * C * C).sum(axis=(1, 2))
    terms = groups.rows + groups.nodes * np.count_nonzero(ridge)
    rounding_bound[:] = lost + (terms + 4) * EPS * size


@quiet
def lengths(X, h, starts, ridge, group, out):
    """out ← √(Σ_r h_r x_rk² + ridge_k), column by column and group by group."""
    groups = _Groups(starts, group, len(out))
    out[:] = np.sqrt(groups.nodes[:, None] * ridge + groups.over_rows(h[:, None] * X * X))


@quiet
def orthonormalise(G, spoilt, C, weak):
    """C ← C L⁻ᵀ with G = LLᵀ: in the new coordinates, Gram matrices are closer to the identity.

    A pivot that rounding may have made is raised to what rounding can make; its column is marked as weak. A row of G
    whose diagonal is zero is left as it is. All groups at once, column by column.
    """
    n, L = G.shape[1], G.copy()
    diagonal = np.einsum("gjj->gj", G)
    least = np.maximum(8 * n * EPS * diagonal, 4 * spoilt)
    L[diagonal == 0] = 0.0
    for j in range(n):
        pivot, empty = L[:, j, j], diagonal[:, j] == 0
        weak[:, j] = empty | (pivot < 4 * least[:, j])
        root = np.where(empty, 1.0, np.sqrt(np.maximum(pivot, least[:, j])))
        below = L[:, j + 1 :, j] / root[:, None]
        L[:, j + 1 :, j + 1 :] -= below[:, :, None] * below[:, None, :]
        C[:, :, j] /= root[:, None]
        C[:, :, j + 1 :] -= C[:, :, j, None] * below[:, None, :]


@quiet
def project(X, starts, group, C, a, da, b, out, rounding_bound):
    """out ← Cᵀ Σ (Σ_r a_r x_r + b_i), by groups, where a_r is known within da_r; rounding_bound ← its error."""
    groups = _Groups(starts, group, len(out))
    z, dz = _rows_in(X, C, groups.of_rows)
    zz, dd = np.sqrt((z * z).sum(axis=1)), np.sqrt((dz * dz).sum(axis=1))
    out[:] = groups.over_rows(a[:, None] * z)
    lost, size = groups.over_rows(np.column_stack([np.abs(a) * dd + da * (zz + dd), np.abs(a) * zz])).T
    force, reach, count = groups.over_nodes(np.stack([b, np.abs(b), (b != 0).astype(float)], axis=1)).transpose(1, 0, 2)
    out += (force[:, :, None] * C).sum(axis=1)
    size = size + (reach[:, :, None] * np.abs(C)).sum(axis=(1, 2))
    rounding_bound[:] = 2 * (lost + (groups.rows + count.sum(axis=1) + 4) * EPS * size)


@quiet
def stretch(X, s, starts, group, size, squares, sums):
    """squares ← Σ_r s_r (Σ_k |x_rk| size_k)², sums ← Σ_r s_r Σ_k |x_rk| size_k: what weights that are off cost.

    size (G, n) says how far the weights of each group are off.
    """
    groups = _Groups(starts, group, len(size))
    t = (np.abs(X) * size[groups.of_rows]).sum(axis=1)
    squares[:], sums[:] = groups.over_rows(np.column_stack([s * t * t, s * t])).T
