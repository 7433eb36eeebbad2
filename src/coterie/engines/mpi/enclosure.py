"""Where a minimiser lies, by the rows that all ranks know; what a dual point costs there is added up over ranks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.components import Components
from coterie.engines.mpi.outline import Outline
from coterie.engines.mpi.part import Part
from coterie.kernels.choice import Either
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.proofs.charges import beyond, ends
from coterie.proofs.ellipsoids import Ellipsoids
from coterie.proofs.enclosure import Enclosure, Shares

kernels = Either("charge")

OWN = 1 << 22  # numbers: the matrices of own nodes that a rank makes, at most


class PartEnclosure(Enclosure):
    """Bounds on minimisers of a problem of which this rank holds a part.

    Nodes are the own ones of this rank, and after them those whose rows all ranks know: M of the outline.
    """

    def __init__(self, outline: Outline, part: Part, components: Components, group: NDArray[np.int64], complete: bool):
        super().__init__(outline, shift=complete)  # what some rows do not see, others may
        self.part, self.components, self.group = part, components, group

    @cached_property
    def _labelled_component(self) -> NDArray[np.int64]:
        return np.concatenate([self.components.of[: self.part.own], self.group])

    @cached_property
    def _pooled(self) -> Ellipsoids:
        G, columns = len(self.components.sizes), self._columns
        cappable = self._cappable[columns.origin]
        return Ellipsoids.of(columns.design, self.group, G, cappable, self.shift, columns.apart)

    @cached_property
    def _edges_of_components(self) -> tuple[Array, Array]:
        return self.problem.lam * self.components.weakest, self.components.sizes - 1.0

    @cached_property
    def _mine(self) -> Enclosure | None:
        """What the rows of own nodes say of these; None where there are none."""
        return Enclosure(self.part.problem) if len(self.part.problem.M) else None

    @cached_property
    def _own_can_help(self) -> bool:
        """Nodes one by one are looked at where there is room for what is known of each."""
        problem, crew = self.part.problem, self.part.crew
        fits = crew.most(len(problem.M) * problem.n_features**2) <= OWN
        return fits and crew.any(self._mine is not None and self._mine._some_node_sees())

    def _node_by_node(self, rest: Any, level: float, caps: Array) -> Array:
        """Every rank adds up its own nodes: by themselves where their own rows allow it, the rest in the box of all."""
        crew, G, M, mine = self.part.crew, len(self.components.sizes), self.part.problem.M, self._mine
        group, charge = self.components.of[: self.part.own], np.empty(0)
        floors = np.empty(0) if mine is None else mine._own.floors
        shares = self._shares_of_all(level, floors, group[M])
        by_component, (centre, width) = self._by_component(rest, shares, caps)
        if mine is not None:
            charge = mine._own_charges(rest.own, shares, caps)
        kept, others, here = np.isfinite(charge), group.copy(), np.zeros(G)
        others[M[kept]] = -1
        kernels.least(*rest.own, others, *ends(centre, width, caps), here)
        here += np.bincount(group[M[kept]], charge[kept] - len(M) * EPS * np.abs(charge[kept]), minlength=G)
        added, size = crew.added(np.stack([here, np.abs(here)]))
        return np.maximum(by_component, added - crew.size * EPS * size)

    def _shares_of_all(self, level: float, floors: Array, group: NDArray[np.int64]) -> Shares:
        """As `_share_of`, with the floors of all ranks; the loss of each node is that of an own one."""
        crew, G = self.part.crew, len(self.components.sizes)
        nodes, floor = crew.sums(len(floors), float(floors.sum()))
        over = beyond(level, floor, nodes + crew.size + self.problem.n_features)
        return Shares(over, over + crew.added(np.bincount(group, floors, minlength=G)), over + floors)

    def _row_cap(self, level: float) -> float:
        return self.part.crew.most(0.0 if self._mine is None else self._mine._row_cap(level))

    def separating_weights(self) -> None:
        """None are looked for."""
