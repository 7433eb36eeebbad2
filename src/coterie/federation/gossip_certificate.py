"""What sums over all sites prove, where nobody has more than these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coterie.engines.arrays import SUM_ERROR
from coterie.federation.consistency import SLACK
from coterie.federation.loop import CONTRADICTED, FederationError
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.solver.bound import REFUTED, Bound
from coterie.solver.certificate import REACH, gap_unit
from coterie.solver.solution import Status


@dataclass(frozen=True)
class Known:
    """Sums over all sites of what each says of itself at the start, and the largest size of weights.

    `away` are the sites whose weights stay as they are.
    """

    sites: int
    mean: float  # of λA_e over all cut edges
    scale: float
    constant: float
    floor: float
    omega: float
    size: float
    away: tuple[str, ...] = ()

    def level(self, objective: float, floor: float) -> float:
        """What a site's own part of the objective can be at an optimum, if its own floor is this."""
        others = self.floor - floor if np.isfinite(self.floor) else -np.inf
        return min(objective, np.inf if self.away else self.scale) - others  # zero weights reach the scale

    def verdict(self, sums: Array, maxima: Array) -> Verdict:
        """What the sums of `Gossip.evidence` prove: the same at every site; what was proven before is not used.

        A site that was killed has forgotten that, and what it has on disk is no evidence.

        Raises
        ------
        FederationError
            When the bound is above the objective: somebody does not tell the truth.
        """
        objective, proven, charge, sizes = (float(x) for x in sums[:4])
        reach, largest = (float(x) for x in maxima)
        if not np.isfinite([objective, proven, charge]).all():
            return Verdict(objective, Bound(-np.inf, unconditional=False), np.inf, self.away)
        unconditional = bool(np.isfinite(reach))
        reach = max(reach, largest) if unconditional else REACH * max(largest, self.size)
        rounding = (SUM_ERROR + 2 * self.sites * EPS) * (sizes + reach * charge)
        bound = Bound(proven - reach * charge - rounding, unconditional, reach)
        unit = gap_unit(self.constant, objective)
        slack = min(SLACK * (sizes + abs(objective)), REFUTED * unit)
        if unconditional and bound.value > objective + slack:
            raise FederationError(CONTRADICTED)
        return Verdict(objective, bound, bound.gap(objective, unit), self.away)


@dataclass(frozen=True)
class Verdict:
    """What all sites know after a certificate: the objective that ŵ has together, and a bound on the optimum.

    Where sites are away, of the problem in which their weights stay as they are.
    """

    objective: float
    bound: Bound
    gap: float
    away: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        return Status.OPTIMAL if self.bound.unconditional and not self.away else Status.CONDITIONAL

    @property
    def condition(self) -> str:
        """What the bound rests on; empty where it rests on nothing."""
        held = f"the weights of {', '.join(self.away)} stay as they are" if self.away else ""
        return " and ".join(filter(None, [self.bound.condition, held]))
