"""The operations of dual repair on the part of a rank: see `coterie.engines.corrections`, whose operations these are.

Vectors have zeros in the halo wherever they are added up, and what the peers have there wherever edges look at them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coterie.engines.corrections import Corrections
from coterie.engines.mpi.crew import Crew
from coterie.engines.mpi.part import Part
from coterie.kernels.gradients import ConjugateGradients
from coterie.kernels.interruption import GRACE, agree
from coterie.problem.arrays import Array


class PartCorrections(Corrections):
    """Corrections of the duals of a part, with sums and the largest numbers of all parts."""

    def __init__(self, part: Part) -> None:
        super().__init__(part.problem, threads=1)
        problem, crew = part.problem, part.crew
        self.part, self.crew = part, crew
        joined = crew.any(problem.graph.n_edges > 0) or problem.f.l1_box is not None
        unseen = crew.any(len(problem.M) < part.own or not problem.f.sees_all)
        self.needs_repair = joined and unseen
        self.largest_strength = crew.most(self.largest_strength)
        self.scales = not crew.any(not self.scales)

    def keep_flat(self, x: Array) -> None:
        super().keep_flat(x)
        x[self.part.own :] = 0.0

    def residual(self, u: Array, s: Array | None) -> float:
        agree(GRACE)
        return self.crew.most(super().residual(u, s))

    def stretch(self, u: Array, s: Array | None, descent: Any) -> float:
        return self.crew.most(super().stretch(u, s, descent))

    def _gradients(self, product: Callable[[Array, Array], None]) -> ConjugateGradients:
        def told(x: Array, out: Array) -> None:
            self.part.halo(x)
            product(x, out)
            out[self.part.own :] = 0.0

        return PartGradients(self.crew, told, self.rest, self.diagonal, self._seen)


class PartGradients(ConjugateGradients):
    """Conjugate gradients with inner products over all parts. x is right in the halo, too."""

    def __init__(self, crew: Crew, *given: Any) -> None:
        self.crew = crew
        super().__init__(*given)

    def _inner(self, a: Array, b: Array) -> float:
        return self.crew.sum(float(super()._inner(a, b)))
