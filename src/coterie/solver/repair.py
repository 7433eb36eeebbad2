"""Dual repair: the feasible edge flow nearest to u that leaves nothing where nothing may be left."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.engines.base import Duals, Prover
from coterie.kernels.interruption import time_is_up

CG_ACCURACY = 0.03  # of each correction: clipping spoils more than that anyway
LAST_STEPS = 150  # of a correction that is not clipped
CLEAN = 4e-16  # of the largest strength: a rest that small is rounding


@dataclass(frozen=True)
class Enough:
    """When to end: the part of the present rest that may be left, and by how much the domain may be stretched."""

    left: float
    stretch: float


@dataclass(frozen=True)
class Repair:
    """Moves duals to where N Dᵀu is small; N keeps the directions in which the loss of a node is flat.

    Each round moves u by a least-squares correction, found by a few conjugate-gradient steps, and clips the result.
    What is left shrinks by a steady factor, about 3, a round. When a correction would leave the domain by very little,
    it is completed, and u is scaled back into the domain instead of being clipped: then nothing is left.
    """

    prover: Prover

    def rounds(self, u: Duals, n_rounds: int, s: Duals | None = None, enough: Enough | None = None) -> bool:
        """Improve u in place; return whether anything is left to do.

        With s, the duals of a loss's ℓ1 term, both move, and it is N(Dᵀu + s) that is made small.
        """
        for _ in range(n_rounds):
            if time_is_up() or self.prover.residual(u, s) <= CLEAN * self.prover.largest_strength:
                return False
            self.prover.weigh(u)
            if self._correct(u, s, enough):
                return False
        return True

    def _correct(self, u: Duals, s: Duals | None, enough: Enough | None) -> bool:
        """Clipped, unless a stretch of the domain that is small enough holds the result: then scaled, and True."""
        prover = self.prover
        descent, factor, complete = prover.descent(s), 1.0, False
        descent.run(prover.cg_steps, CG_ACCURACY)
        if enough is not None and prover.scales and descent.steps_to(enough.left) <= LAST_STEPS:
            complete = prover.stretch(u, s, descent) <= enough.stretch
        if enough is not None and complete:
            descent.run(2 * LAST_STEPS, enough.left)
            factor = prover.stretch(u, s, descent)
            if factor > enough.stretch:
                factor, complete = 1.0, False
        prover.correct(u, s, descent, factor)
        return complete
