"""Free columns, of strength 0, as tied ones: one for each labelled node, which its rows alone have.

A coefficient that every node has for itself is a coefficient of a column that is zero in the rows of all others, and
whoever shares that does not matter. So rows *unfolded* like that, in which nothing is rounded, enclose the minimisers
of the whole: see docs/certificate.md. Nodes without labels have ρ = 0 in free columns, exactly, and cost nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design
from coterie.proofs.rest import Rest

MOST_COLUMNS = 400  # after unfolding: ellipsoids take the square of that in memory, and its cube in time
MOST_NUMBERS = 10_000_000  # in rows, and in weights of nodes, after unfolding


@dataclass(frozen=True, eq=False)
class Unfolded:
    """Rows with one column for each labelled node of a component in the place of each free column.

    Attributes
    ----------
    design : Design
        The rows (N, n′), without the ridge of free columns, which only adds to a loss.
    column : array of shape (|M|, n)
        Where the weights of each labelled node have gone.
    origin : array of shape (n′,)
        Where columns have come from.
    apart : array of shape (n′,), or None
        How far apart two nodes can be in each column, where the spread is 1; None: 1.
    complete : bool
        False where there would be too many columns: then nothing is unfolded.
    """

    design: Design
    column: NDArray[np.int64]
    origin: NDArray[np.int64]
    apart: Array | None
    complete: bool = True

    @classmethod
    def of(cls, problem: BoundProblem, group: NDArray[np.int64]) -> Unfolded:
        """Unfold the rows of components that have the numbers `group` (|M|,), where some column is free."""
        design, penalty, K, n = problem.f.below, problem.by_column, len(problem.M), problem.n_features
        assert design is not None
        if penalty is None or not penalty.free.any():
            every = np.arange(n)
            return cls(design, np.broadcast_to(every, (K, n)), every, None if penalty is None else penalty.apart)
        shared, free, place = np.flatnonzero(~penalty.free), np.flatnonzero(penalty.free), _places(group)
        most = int(place.max()) + 1
        width = len(shared) + len(free) * most
        if width > MOST_COLUMNS or max(len(design.X), problem.graph.n_nodes) * width > MOST_NUMBERS:
            every = np.arange(n)
            return cls(design, np.broadcast_to(every, (K, n)), every, None, complete=False)
        column = np.empty((K, n), dtype=np.int64)
        column[:, shared] = np.arange(len(shared))
        column[:, free] = len(shared) + place[:, None] * len(free) + np.arange(len(free))
        X = np.zeros((len(design.X), width))
        np.put_along_axis(X, column[np.repeat(np.arange(K), np.diff(design.starts))], design.X, axis=1)
        origin = np.concatenate([shared, np.tile(free, most)])
        apart = np.where(penalty.free, 0.0, penalty.apart)[origin]
        ridge = np.where(penalty.free, 0.0, design.ridge)[origin]
        return cls(replace(design, X=X, ridge=ridge), column, origin, apart)

    def unfold(self, rest: Rest, problem: BoundProblem) -> Rest:
        """ρ, with the weights that it was computed at, in these columns."""
        if problem.by_column is None or not problem.by_column.free.any() or not self.complete:
            return rest
        return Rest(*(self._in_columns(x, problem.M, problem.by_column.free) for x in rest.here))

    def _in_columns(self, x: Array, M: NDArray[np.int64], free: NDArray[np.bool_]) -> Array:
        out = np.zeros((len(x), len(self.origin)))
        out[:, : int((~free).sum())] = x[:, ~free]
        out[M[:, None], self.column[:, free]] = x[M][:, free]
        return out

    def at_nodes(self, values: Array, group: NDArray[np.int64]) -> Array:
        """Values (G, n′) as labelled nodes have them, (|M|, n)."""
        return values[group[:, None], self.column]


def _places(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each labelled node among those of its component."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    place = np.empty_like(group)
    place[order] = np.arange(len(group)) - first
    return place
