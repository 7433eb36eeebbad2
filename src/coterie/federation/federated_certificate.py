"""What the sites' scalars prove: an objective that was reached, and a bound that none lies below.

From its latest reply (ŵ, g) each site knows F_s(w) ≥ bound + ⟨g, w⟩ − left·max|w|, for every w. The cut edges have
g(Dw) ≥ ⟨u, Dw⟩ − g*(u), for any u. So the optimum is at least

    Σ_s bound_s − g*(u) + Σ_i ⟨g_i + (Dᵀu)_i, w*_i⟩ − max|w*| · Σ_s left_s.

max|w*| is bounded as in `proofs/enclosure.py`: F_s at an optimum is at most the objective reached less what all other
sites need at least, which bounds the weights of labelled nodes; unlabelled ones can be kept in their hull. Answers
may be old: what they prove holds for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie.engines.arrays import SUM_ERROR
from coterie.federation.consistency import SLACK
from coterie.federation.messages import Introduction, ProxReply, ProxRequest
from coterie.federation.partition import Cut
from coterie.problem.arrays import Array
from coterie.problem.penalties import Penalty
from coterie.solver.bound import REFUTED, Bound
from coterie.solver.certificate import REACH, gap_unit

SCALARS = ("value", "bound", "left", "reach")


NOTHING = Bound(-np.inf, unconditional=False, weight_bound=0.0)


@dataclass(eq=False)
class FederatedCertificate:
    """The latest reply of each site, and the best of all rounds.

    Attributes
    ----------
    w, g, v : arrays of shape (B, n)
        The latest weights, forces (v − ŵ)/τ and centres.
    tau : array of shape (B,)
    scalars : array of shape (sites, 4)
        value, bound, left and reach of each site; nan before its first reply.
    size : float
        How large the weights may be expected to be.
    objective : float
        The best so far; best_w are its weights, best_v and best_tau the requests that they answer.
    proof : Bound
        The best bound so far.
    """

    cut: Cut
    penalty: Penalty
    c: Array
    floors: Array
    scale: float
    constant: float
    size: float
    w: Array
    g: Array
    v: Array
    tau: Array
    scalars: Array
    best_v: Array
    best_tau: Array
    best_w: Array
    objective: float = np.inf
    proof: Bound = NOTHING
    held: set[int] = field(default_factory=set)

    @classmethod
    def of(
        cls, cut: Cut, penalty: Penalty, c: Array, n: int, introductions: Sequence[Introduction]
    ) -> FederatedCertificate:
        """Begin with nothing."""
        B = cut.graph.n_nodes
        w, g, v, best_v, best_w = np.zeros((5, B, n))
        floors = np.array([one.floor for one in introductions])
        scale = float(sum(one.scale for one in introductions))
        constant = _total_unless_one_lies([one.constant for one in introductions if one.constant > 0])
        size = float(np.sqrt(max((one.size for one in introductions), default=0.0)))
        scalars = np.full((len(introductions), len(SCALARS)), np.nan)
        return cls(
            cut, penalty, c, floors, scale, constant, size, w, g, v, np.ones(B), scalars, best_v, np.ones(B), best_w
        )

    @property
    def silent(self) -> list[int]:
        """Sites that have never answered."""
        return [int(k) for k in np.flatnonzero(np.isnan(self.scalars[:, 0]))]

    @property
    def levels(self) -> Array:
        """What each site's own part of the objective can be at an optimum, (sites,)."""
        reached = self.objective if self.held else min(self.objective, self.scale)  # zero weights reach the scale
        unknown = np.isneginf(self.floors)
        known = np.where(unknown, 0.0, self.floors)
        others_unknown = unknown.sum() - unknown > 0
        return np.where(others_unknown, np.inf, reached - (known.sum() - known))

    def note(self, requests: Mapping[int, ProxRequest], replies: Mapping[int, ProxReply]) -> None:
        """Take replies, and the objective that all latest weights have together."""
        for k, reply in replies.items():
            at, asked = self.cut.of(k), reply.to or requests[k]
            self.w[at], self.v[at], self.tau[at] = reply.w, asked.v, asked.tau
            self.g[at] = (asked.v - reply.w) / asked.tau[:, None]
            self.scalars[k] = [getattr(reply, name) for name in SCALARS]
        if not self.silent:
            self._weigh()

    def hold(self, sites: set[int]) -> None:
        """Hold these sites and no others: what was reached and proven before was about another problem."""
        self.held = sites
        self.proof, self.objective = NOTHING, np.inf
        self.scalars[:, 3] = np.inf  # reaches were asked for at another level
        self._weigh()

    def _weigh(self) -> None:
        """Keep the latest weights if they are the best."""
        objective = float(self.scalars[:, 0].sum()) + self.penalty.value(self.cut.graph.D @ self.w, self.c)
        if objective < self.objective:
            self.objective, self.best_w = objective, self.w.copy()
            self.best_v, self.best_tau = self.v.copy(), self.tau.copy()

    def prove(self, u: Array) -> None:
        """Bound the optimum from below with these duals of the cut edges."""
        u = self.penalty.into_domain(u, self.c)
        value, bound, left, _ = self.scalars.T
        free = np.array([k not in self.held for k in range(len(value))])
        at_free = free[self.cut.part]
        flow = np.asarray(self.cut.graph.D.T @ u)
        B = len(at_free)
        rest = (flow + self.g)[:B][at_free]
        fixed = float(np.vdot(flow[:B][~at_free], self.w[:B][~at_free]))
        terms = np.concatenate([bound[free], value[~free], [fixed, -self.penalty.conjugate(u, self.c)]])
        reach, unconditional = self._reach(free)
        size = np.asarray(abs(self.cut.graph.D).T @ np.abs(u))[:B][at_free] + np.abs(self.g[:B][at_free])
        charge = reach * float(left[free].sum() + np.abs(rest).sum() + SUM_ERROR * size.sum())
        rounding = SUM_ERROR * (float(np.abs(terms).sum()) + charge)
        new = Bound(float(terms.sum()) - charge - rounding, unconditional, reach)
        if (unconditional and new.value > self.objective) or new.is_better_than(self.proof, self.objective, self._unit):
            self.proof = new

    def _reach(self, free: Array) -> tuple[float, bool]:
        """A bound on the weights of some minimiser, and whether it is proven, which is up to the sites."""
        furthest = float(self.scalars[free, 3].max(initial=0.0))
        largest = float(np.abs(self.w).max(initial=0.0))
        return (max(furthest, largest), True) if np.isfinite(furthest) else (REACH * max(largest, self.size), False)

    @property
    def _unit(self) -> float:
        """What gaps are relative to."""
        return gap_unit(self.constant, self.objective)

    @property
    def is_contradicted(self) -> bool:
        """Whether a bound that rests on nothing but the sites' words is above an objective that they reached.

        Measured by the sizes of what was added up, whatever larger unit of gaps the sites may have stated.
        """
        sizes = float(np.abs(self.scalars[:, :2]).sum()) + abs(self.objective)
        slack = min(SLACK * sizes, REFUTED * self._unit)
        return self.proof.unconditional and self.proof.value > self.objective + slack

    @property
    def dual_bound(self) -> float:
        return -np.inf if self.proof.is_refuted_by(self.objective, self._unit) else self.proof.value

    @property
    def gap(self) -> float:
        """(objective − dual_bound) relative to the objective."""
        return self.proof.gap(self.objective, self._unit) if np.isfinite(self.objective) else np.inf

    @property
    def condition(self) -> str:
        """What the bound rests on; nothing, where it is unconditional."""
        return self.proof.condition


def _total_unless_one_lies(losses: Sequence[float]) -> float:
    """About the total of what sites say, by the middle one: a site that says much more does not make all gaps small."""
    return len(losses) * sorted(losses)[(len(losses) - 1) // 2] if losses else 0.0
