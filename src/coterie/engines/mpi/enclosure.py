"""Where a minimiser lies, by the rows that all ranks know; what a dual point costs there is added up over ranks."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.engines.mpi.components import Components
from coterie.engines.mpi.outline import Outline
from coterie.engines.mpi.part import Part
from coterie.problem.arrays import Array
from coterie.proofs.ellipsoids import Ellipsoids
from coterie.proofs.enclosure import Enclosure


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
    def _own_can_help(self) -> bool:
        """Nodes one by one are not looked at: repair goes on until the charge of components is small enough."""
        return False

    def _row_cap(self, level: float) -> float:
        here = self.part.problem
        return self.part.crew.most(Enclosure(here)._row_cap(level) if len(here.M) else 0.0)

    def separating_weights(self) -> None:
        """None are looked for."""
