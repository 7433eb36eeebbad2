"""How far from optimal is an answer, at most?

For any u and any q_i in the domain of L_i*, Fenchel's inequality on every node and edge gives, for
every minimiser w*,

    P* ≥ −Σ_{i∈M} L_i*(q_i) − g*(u) + Σ_i ⟨q_i + (Dᵀu)_i, w*_i⟩,        q_i = 0 at unlabelled nodes.

The last sum vanishes when q = −Dᵀu, the dual of the paper. It cannot always: at unlabelled nodes, and
along directions that the data of a node do not see, (Dᵀu)_i would have to be zero to the last bit. So u
is first *repaired*, to make that sum small, and what is left is *charged* at the worst w*_i inside a set
that provably holds a minimiser (`proofs/enclosure.py`), or else inside a stated box: then the bound is conditional.

What is computed of weights and duals is computed by a `Prover`, where they are; here are the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite
from sys import float_info
from typing import Any

from coterie.engines.base import LARGE, Duals, Minorant, Prover, Weights
from coterie.kernels.reference.exact import EPS
from coterie.problem import BoundProblem
from coterie.solver.bound import Bound
from coterie.solver.repair import Enough, Repair
from coterie.solver.whole.closer_look import FEW, CloserLook

FLOOR = 1e-8  # relative gaps divide by the objective, or by this part of the loss of the best constant model
BATCH = 3  # rounds of repair between two looks at the bound
REACH = 10.0  # conditional bounds hold for minimisers with weights up to so many times the largest
MOST = 48  # rounds of repair altogether
CHARGED, STRETCHED = 0.01, 0.4  # parts of what a bound may cost that are left to its charge, and to scaling
NEAR = 10  # times the goal: nearer than that, few weights are worth every way of bounding a minimiser
MINOR = 0.1  # a charge below this part of the rest of the gap is not worth another round
UNSEEN = 6  # rounds of repair before the first bound, where glances say that they may lead to one
SHRINKS = 3  # what is left of a charge by a round, one part in so many, at most
UNSURE = 1.1  # times the goal: what glances at losses that are not quadratic are off by, about


@dataclass(frozen=True, eq=False)
class Certificate:
    """A primal value, a lower bound on the optimum, and the dual point that proves it.

    `bound_before_charge` is what the bound would be without the charge: how good it could become by more repair.
    `local`: it can be proven again only near the weights that it was proven at.
    """

    objective: float
    bound: Bound
    u: Any
    bound_before_charge: float
    local: bool = False

    @property
    def dual_bound(self) -> float:
        """No weights reach less, if the condition holds where there is one."""
        return self.bound.value

    @property
    def unconditional(self) -> bool:
        return self.bound.unconditional

    @property
    def condition(self) -> str:
        """What the bound rests on; nothing where it is unconditional."""
        return self.bound.condition


class Certifier:
    """Computes certificates of one problem."""

    def __init__(self, prover: Prover) -> None:
        self.prover, self.problem, self.repair = prover, prover.problem, Repair(prover)
        n = self.problem.n_features
        self.n_duals = self.problem.graph.n_edges * n
        self.few = self.problem.graph.n_nodes * n <= FEW
        self.closer = None if prover.arrays is None else CloserLook(prover.arrays, self)
        self.thorough = False  # whether duals in twice the precision are worth their time

    def __call__(
        self, w: Weights, u: Duals, *, goal: float = 0.0, rounds: int = MOST, level: float | None = None
    ) -> Certificate:
        """Bound the optimum from below with a dual point near u, which is moved there; w helps and is not changed.

        Repair goes on for `rounds` rounds while the charge is what stands between the bound and a gap of
        `goal` (absolute); if the goal is in sight, for as long as it takes. `level` is the objective at w, where known.
        """
        level = self.prover.objective(w) if level is None else level
        proof, _ = self.attempt(w, u, goal=goal, rounds=rounds, level=level)
        assert proof is not None
        return proof

    def attempt(
        self,
        w: Weights,
        u: Duals,
        *,
        goal: float,
        rounds: int,
        level: float,
        hurry: bool = False,
        glanced: float | None = None,
    ) -> tuple[Certificate | None, float]:
        """The same, and what is proven before the charge.

        In a hurry, only a gap within the goal is worth a second look. `glanced` is about what u proves before its
        charge, where u comes from an iteration and that is known: it is then repaired before the first bound. If
        another glance tells that this has cost too much, nothing is proven.
        """
        self.prover.clip(u)
        given = [self.prover.copy(u)] if goal == 0 and self.n_duals <= FEW else []  # repair may lose what they prove
        proof, shown = self._repaired(w, u, level, goal, rounds, glanced)
        if self.closer is None or proof is None:
            return proof, shown
        for dual in (*given, proof.u):
            proof = self.closer.second(w, dual, level, goal, goal if hurry else NEAR * goal, proof)
        if rounds > 0 and (self.thorough or goal == 0):
            proof = self.closer.third(w, given, level, goal, proof)
        return proof, proof.bound_before_charge

    def _repaired(
        self, w: Weights, u: Duals, level: float, goal: float, rounds: int, glanced: float | None
    ) -> tuple[Certificate | None, float]:
        """The certificate of u, which is repaired for as long as it is worth it, and what it is before the charge."""
        s = self.prover.split(w, u)
        done, more = 0, self.prover.needs_repair
        if more and glanced is not None:
            shown, done = self._repaired_unseen(w, u, s, level, goal, glanced), BATCH
            if self._hopeless * goal < level - shown < inf:
                return None, shown
        proof = self.bound(w, u, s, level, goal)
        while more and done + BATCH <= (MOST if level - proof.bound_before_charge <= goal else rounds):
            charge, beyond = proof.bound_before_charge - proof.dual_bound, level - proof.bound_before_charge
            if charge <= max(MINOR * beyond, goal - beyond):
                break
            before, spare = proof, self.prover.copy(u) if self.n_duals <= LARGE else None
            more = self.repair.rounds(u, BATCH, s, _enough(level, charge, max(MINOR * beyond, goal - max(beyond, 0.0))))
            done += BATCH
            proof = self.bound(w, u, s, level, goal)
            if spare is not None and proof.dual_bound < before.dual_bound:
                return replace(before, u=spare), before.bound_before_charge
        return proof, proof.bound_before_charge

    def _repaired_unseen(
        self, w: Weights, u: Duals, s: Duals | None, level: float, goal: float, glanced: float
    ) -> float:
        """Repair u round by round, until nothing is left or a glance says that it is in vain; return the last glance.

        A round moves duals in directions that data see, too, and mostly the first one shows what that costs.
        """
        below, most = glanced, abs(level)  # `most` of the charge, which is not known yet
        for k in range(UNSEEN):
            beyond = level - below
            if k > 0 and beyond > self._hopeless * goal:
                break
            allowed = max(MINOR * beyond, goal - max(beyond, 0.0))
            if not self.repair.rounds(u, 1, s, _enough(level, max(most, allowed, float_info.min), allowed)):
                break
            below, most = self.prover.glance(w, u, level), most / SHRINKS
        return below

    @property
    def _hopeless(self) -> float:
        """How many times the goal a gap before its charge is, at a glance, that is not worth a bound."""
        return 1.0 if self.problem.f.quadratic is not None else UNSURE

    def bound(
        self, w: Weights, u: Duals, s: Duals | None, level: float, goal: float, local: bool = False
    ) -> Certificate:
        """The certificate of u and s: affine functions below every part of the objective, added up at w.

        With `local`, the gap itself may say where better weights can be.
        """
        below = self.prover.minorant(w, u, s)
        beyond = level - below.value
        in_sight = goal == 0 or beyond <= goal
        enough = max(CHARGED * goal, MINOR * beyond, 0.5 * (goal - beyond))
        charge, near_w = self.prover.charge(below.rest, level, enough, in_sight or self.few), -inf
        if local and -charge > enough and below.duals is not None and self.closer is not None:
            most = -charge if isfinite(charge) else max(goal - beyond, MINOR * beyond)
            near_w = self.closer.local_charge(below, u, s, level, most)
        return self.concluded(w, below, u, level, max(charge, near_w), near_w > charge)

    def concluded(self, w: Weights, below: Minorant, u: Duals, level: float, charge: float, local: bool) -> Certificate:
        """The certificate: what is left of ρ is charged, under a condition where nothing else is known."""
        left, reach, unconditional = self.prover.residual_l1(below.rest), inf, True
        if charge == -inf and left > 0:
            largest = self.prover.largest_weight(w)
            reach = REACH * largest
            charge = -(reach + largest) * left if reach > 0 else -inf
            unconditional = False
        value = _less_rounding(below.value, charge, self.problem.n_features)
        design = self.problem.f.below
        if value < 0 and design is not None:  # no loss is less; but there may be no minimiser
            value = 0.0
            unconditional = unconditional or not design.psi.no_minimiser
        proven = Bound(value, unconditional, inf if unconditional else reach, left)
        return Certificate(level, proven, u, below.value, local)


def _less_rounding(uncharged: float, charge: float, n: int) -> float:
    """The bound, less what rounding of λA_e, shares 1/m_i, lengths |u_e| and presolve may have added."""
    bound = uncharged + charge - (n + 64) * EPS * (abs(uncharged + charge) + abs(charge))
    return bound if isfinite(bound) else -inf


def _enough(level: float, charge: float, allowed: float) -> Enough:
    """Charge and scaling may cost parts of what is allowed; scaling u by 1/κ costs about (κ − 1) g(Dw)."""
    price = max(abs(level), float_info.min)
    return Enough(left=CHARGED * allowed / charge, stretch=1 + STRETCHED * allowed / price)


def gap_unit(constant_loss: float, objective: float) -> float:
    """What gaps are relative to: max(|objective|, FLOOR × loss of the best constant model)."""
    return max(abs(objective), FLOOR * constant_loss, float_info.min)


def relative_gap(problem: BoundProblem, objective: float, bound: Bound) -> float:
    """(objective − bound) / gap_unit, zero when they meet, ∞ where the condition of the bound is refuted."""
    return bound.gap(objective, gap_unit(problem.constant_loss, objective))
