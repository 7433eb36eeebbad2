"""Linear programs with kinks, or quadratic ones, on the clusters of a network: one value for each of K clusters.

Rows are those of nodes, whose coordinates k have the values z[at[i, k]], and after them borders, 0 ≈ z_p − z_q for each
of the pairs: so that an interior-point method knows nothing but rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from coterie.kernels.interruption import check
from coterie.kernels.reference.exact import quiet
from coterie.kernels.reference.interior_point import TRACE, fit

NEAR = 0.3  # of the objective, about: the gap of the point that steps begin from
FLOOR = 1e-6  # of the size of labels, where the objective is nothing
PART = 0.1  # of the way between their limits: so far inside are duals of rows without residuals


def minimise(
    X: Any,
    y: Any,
    starts: Any,
    at: Any,
    pairs: Any,
    low: Any,
    high: Any,
    D: Any,
    accuracy: float,
    z: Any,
    b: Any,
) -> None:
    """z (K), b (R + B) ← values and duals, from those given; low and high limit these, D is the curvature of values."""
    columns = at[np.repeat(np.arange(len(at)), np.diff(starts))]
    rows = _SparseRows(len(D), (X, columns), (np.tile([1.0, -1.0], (len(pairs), 1)), pairs))
    label = np.concatenate([y, np.zeros(len(pairs))])
    begin = z, *inside(label - rows.margins(z[None])[0], low, high, 0.5 * D @ z**2, b, scale(y))
    (z[:],), (b[:],) = fit(
        rows, label[None], low[None], high[None], D[None], accuracy, True, [part[None] for part in begin]
    )


def scale(y: Any) -> float:
    """The size of labels."""
    return max(float(np.abs(y).max(initial=0.0)), 1e-300)


@quiet
def inside(e: Any, low: Any, high: Any, curved: float, b: Any, size: float) -> tuple[Any, Any, Any]:
    """Duals near b, and u − v = e, about: where a method of interior points begins that knows residuals and duals.

    The products (high − b)u and (b − low)v are about the same, `mu`, where residuals and duals agree; elsewhere they
    are larger, which steps make up for.
    """
    width, cost = high - low, np.maximum(low * e, high * e).sum() + curved
    mu = 0.5 * (NEAR * cost + FLOOR * size * width.sum()) / len(e)
    u, v = np.maximum(e, 0.0) + mu / width, np.maximum(-e, 0.0) + mu / width
    upper, lower = (np.minimum(PART * width, mu / part) for part in (u, v))
    return np.clip(b, low + lower, high - upper), u, v


class _SparseRows:
    """What `fit` needs of the rows of a node with K weights, most of which are zero.

    Parts of the rows have values (R, m) at columns (R, m).
    """

    def __init__(self, K: int, *parts: tuple[Any, Any]) -> None:
        self.K = K
        values, columns = (np.concatenate([part[k].ravel() for part in parts]) for k in (0, 1))
        sizes = np.concatenate([np.full(len(part[0]), part[0].shape[1]) for part in parts])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self.A = sparse.csr_array((values, columns, starts), shape=(len(sizes), K))
        self.At = self.A.T.tocsr()

    def margins(self, z: Any) -> Any:
        return (self.A @ z[0])[None]

    def forces(self, b: Any) -> Any:
        return (self.At @ b[0])[None]

    def factorised(self, D: Any, weight: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
        check()
        H = (self.At @ sparse.diags_array(1 / weight[0]) @ self.A).tocsc()
        H.setdiag(H.diagonal() * (1 + TRACE) + D[0] + 1e-300)
        unit = sparse.diags_array(1 / np.sqrt(H.diagonal()))
        try:
            factors = splu(
                (unit @ H @ unit).tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:  # singular, by rounding
            return lambda h, rest: (np.full_like(rest, np.nan), np.full_like(h, np.nan))

        def solve(h: Any, rest: Any) -> tuple[Any, Any]:
            dz = (unit @ factors.solve(unit @ (rest - self.forces(h / weight))[0]))[None]
            return dz, -(self.margins(dz) + h) / weight

        return solve
