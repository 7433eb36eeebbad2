"""What all ranks know of a problem of which each holds a part: its sizes, and the rows of some nodes.

A minimiser is enclosed by rows that all ranks have. Losses are never negative, so that what holds for the losses of all
nodes together, that they are at most an objective that was reached, holds for those of some: a proof that looks at some
rows is a proof, and its ellipsoids are wider the fewer these are. Few networks have so few rows that all are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.engines.mpi.components import Components
from coterie.engines.mpi.part import BoundPart, Integers, Part
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows

ROWS = 20_000  # that all ranks know, about, of a component that has as many


@dataclass(frozen=True, eq=False)
class Sizes(EmpiricalGraph):
    """A graph of which only the sizes are known."""

    E: int = 0

    @classmethod
    def of(cls, n_nodes: int, n_edges: int) -> Sizes:
        return cls(n_nodes, np.empty((0, 2), dtype=np.int64), np.empty(0), E=n_edges)

    @property
    def n_edges(self) -> int:
        return self.E


@dataclass(frozen=True, eq=False)
class Outline(BoundPart):
    """A problem of which M and f are those of the nodes whose rows all ranks know.

    Attributes
    ----------
    without_label : array of int
        Own nodes of this rank that no label reaches.
    name : str
        What its checkpoints are known by.
    constant : float
        The loss of the best constant model, at most.
    """

    name: str
    constant: float

    @property
    def constant_loss(self) -> float:
        return self.constant


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows of some nodes of every rank, the same at all ranks.

    Attributes
    ----------
    rows : LabelledRows
    nodes, component : arrays of int
        What each node is called, and its component.
    complete : bool
        They are those of all nodes.
    """

    rows: LabelledRows
    nodes: Integers
    component: Integers
    complete: bool

    @classmethod
    def of(cls, rows: LabelledRows, part: Part, components: Components) -> KnownRows:
        """Each rank tells the rows of some of its nodes; `rows` are those of `part.problem.M`, in its order."""
        crew, group = part.crew, components.of[part.problem.M]
        which = _chosen(rows, group, max(ROWS // crew.size, 2 * rows.X.shape[1]))
        some = rows.of_nodes(which)

        def all_have(values: Array) -> Array:
            return np.concatenate(list(crew.in_turn(values)))

        offset = None if some.offset is None else all_have(some.offset)
        m, X, y, weights = map(all_have, (some.m, some.X, some.y, some.weights))
        known = LabelledRows(np.arange(len(m)), m, X, y, weights, offset)
        nodes, of = part.nodes[part.problem.M][which], group[which]
        return cls(known, all_have(nodes), all_have(of), not crew.any(len(which) < len(rows.M)))


def _chosen(rows: LabelledRows, group: Integers, most: int) -> Integers:
    """Nodes of every component, by chance, until they have so many rows; and those with the largest of each column."""
    if rows.m.sum() <= most:
        return np.arange(len(rows.m))
    order = np.random.default_rng(0).permutation(len(group))
    order = order[np.argsort(group[order], kind="stable")]
    before = np.cumsum(rows.m[order]) - rows.m[order]
    first = np.searchsorted(group[order], group[order])
    chosen = order[before - before[first] < most]
    largest = np.searchsorted(rows.starts, np.abs(rows.X).argmax(axis=0), side="right") - 1
    return np.unique(np.concatenate([chosen, largest]))
