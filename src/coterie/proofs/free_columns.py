"""Free columns, of strength 0, as tied ones: one for each labelled node, which its rows alone have.

A coefficient that every node has for itself is a coefficient of a column that is zero in the rows of all others, and
whoever shares that does not matter. So rows *unfolded* like that, in which nothing is rounded, enclose the minimisers
of the whole: see docs/certificate.md. Nodes without labels have ρ = 0 in free columns, exactly, and cost nothing there.

Where that would make too many columns, the rows of some nodes are unfolded: what they prove of shared columns holds for
all nodes, and with these capped, a few rows of its own enclose what a node has for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design
from coterie.problem.penalties.by_column import ByColumn
from coterie.proofs.rest import Rest

MOST_COLUMNS = 400  # after unfolding: ellipsoids take the square of that in memory, and its cube in time
MOST_NUMBERS = 10_000_000  # in rows, in weights of nodes, and in ellipsoids, after unfolding


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
        design, penalty, every = problem.f.below, problem.by_column, np.arange(problem.n_features)
        assert design is not None
        as_it_is = np.broadcast_to(every, (len(group), len(every)))
        if penalty is None or not penalty.free.any():
            return cls(design, as_it_is, every, None if penalty is None else penalty.apart)
        place = _places(group)
        if place.max() >= _most_nodes(problem, group):
            return cls(design, as_it_is, every, None, complete=False)
        return cls._unfolded(design, penalty, place)

    @classmethod
    def of_some(cls, problem: BoundProblem, group: NDArray[np.int64]) -> tuple[Unfolded, NDArray[np.int64]]:
        """The same for as many nodes of each component as there is room for, those with the most rows; and which."""
        design, penalty = problem.f.below, problem.by_column
        assert design is not None
        assert penalty is not None
        place = _places(group, -np.diff(design.starts))
        nodes = np.flatnonzero(place < _most_nodes(problem, group))
        return cls._unfolded(design.of_nodes(nodes), penalty, place[nodes]), nodes

    @classmethod
    def _unfolded(cls, design: Design, penalty: ByColumn, place: NDArray[np.int64]) -> Unfolded:
        """Free columns of a node come after shared ones, at its place among the nodes of its component."""
        shared, free = np.flatnonzero(~penalty.free), np.flatnonzero(penalty.free)
        K, most = len(place), int(place.max()) + 1
        column = np.empty((K, len(penalty.free)), dtype=np.int64)
        column[:, shared] = np.arange(len(shared))
        column[:, free] = len(shared) + place[:, None] * len(free) + np.arange(len(free))
        X = np.zeros((len(design.X), len(shared) + len(free) * most))
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


def _most_nodes(problem: BoundProblem, group: NDArray[np.int64]) -> int:
    """How many nodes of a component can be unfolded; one at least."""
    assert problem.by_column is not None
    assert problem.f.below is not None
    free, rows = int(problem.by_column.free.sum()), len(problem.f.below.X)
    width = min(MOST_COLUMNS, MOST_NUMBERS // max(rows, problem.graph.n_nodes))
    width = min(width, int(np.sqrt(MOST_NUMBERS / (group.max() + 1))))  # the matrices C of all components
    return max((width - (problem.n_features - free)) // free, 1)


def _places(group: NDArray[np.int64], by: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """The place of each labelled node among those of its component, in their order or by a number that they have."""
    order = np.argsort(group, kind="stable") if by is None else np.lexsort((by, group))
    first = np.searchsorted(group[order], group[order])
    place = np.empty_like(group)
    place[order] = np.arange(len(group)) - first
    return place
