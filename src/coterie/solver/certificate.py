"""How far from optimal is an answer, at most?

For any u and any q_i in the domain of L_i*, Fenchel's inequality on every node and edge gives, for
every minimiser w*,

    P* ≥ −Σ_{i∈M} L_i*(q_i) − g*(u) + Σ_i ⟨q_i + (Dᵀu)_i, w*_i⟩,        q_i = 0 at unlabelled nodes.

The last sum vanishes when q = −Dᵀu, the dual of the paper. It cannot always: at unlabelled nodes, and
along directions that the data of a node do not see, (Dᵀu)_i would have to be zero to the last bit. So u
is first *repaired*, to make that sum small, and what is left is *charged* at the worst w*_i inside a set
that provably holds a minimiser (`enclosure.py`), or else inside a stated box: then the bound is conditional.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from coterie.engines.base import LARGE
from coterie.kernels import L1, SQUARED, vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.interruption import check_with_grace, time_is_up
from coterie.kernels.reference.exact import EPS, FAINT
from coterie.kernels.reference.rows import LOGISTIC
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Support
from coterie.solver.bound import Bound
from coterie.solver.enclosure import Enclosure, Rest
from coterie.solver.joint_system import is_small
from coterie.solver.local import Locality, lowest_that_holds
from coterie.solver.repair import Enough, Repair
from coterie.solver.twofold import twofold_duals

flow, models = Either("flow"), Either("model")

FLOOR = 1e-8  # relative gaps divide by the objective, or by this part of the loss of the best constant model
SUM_ERROR = 32 * EPS  # of the size of its terms: more than pairwise sums of 2⁵⁰ numbers can be off
BATCH = 3  # rounds of repair between two looks at the bound
REACH = 10.0  # conditional bounds hold for minimisers with weights up to so many times the largest
MOST = 48  # rounds of repair altogether
CHARGED, STRETCHED = 0.01, 0.4  # parts of what a bound may cost that are left to its charge, and to scaling
NEAR = 10  # times the goal: nearer than that, few weights are worth every way of bounding a minimiser
FEW = 5_000  # weights or duals, up to which a second way costs nothing
EXPONENTS = 1024  # no z has a larger e^z
CUT = 1e-9  # of the largest weight: a smaller difference is none
PERFECT = 1e-12  # of the objective: a gap that nobody asks to be smaller
QUICK = 100_000  # weights, duals and rows, times columns: a certificate of so many takes a few hundredths of a second
MINOR = 0.1  # a charge below this part of the rest of the gap is not worth another round


@dataclass(frozen=True, eq=False)
class Certificate:
    """A primal value, a lower bound on the optimum, and the dual point that proves it.

    `bound_before_charge` is what the bound would be without the charge: how good it could become by more repair.
    `local`: it can be proven again only near the weights that it was proven at.
    """

    objective: float
    bound: Bound
    u: Array
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

    def __init__(self, problem: BoundProblem, threads: int | None = None) -> None:
        self.problem = problem
        self.repair = Repair(problem, threads)
        self.enclosure = Enclosure(problem)
        self.thorough = False  # whether duals in twice the precision are worth their time

    def __call__(
        self,
        w: Array,
        u: Array,
        *,
        goal: float = 0.0,
        rounds: int = MOST,
        level: float | None = None,
        hurry: bool = False,
    ) -> Certificate:
        """Bound the optimum from below with a dual point near u, which is moved there; w helps and is not changed.

        Repair goes on for `rounds` rounds while the charge is what stands between the bound and a gap of
        `goal` (absolute); if the goal is in sight, for as long as it takes. `level` is the objective at w, where known.
        In a hurry, only a gap within the goal is worth a second look.
        """
        level = self.problem.objective(w) if level is None else level
        self.repair.into_domain(u)
        given = [u.copy()] if goal == 0 and u.size <= FEW else []  # repair may lose what they prove near w
        proof = self._repaired(w, u, level, goal, rounds)
        for dual in (*given, proof.u):
            proof = self._second_look(w, dual, level, goal, goal if hurry else NEAR * goal, proof)
        if rounds > 0 and (self.thorough or goal == 0) and is_small(self.problem):
            for dual in (*given, proof.u, self._tight_on_cuts(w)):
                proof = self._third_look(w, dual, level, goal, proof)
        return proof

    def _repaired(self, w: Array, u: Array, level: float, goal: float, rounds: int) -> Certificate:
        """The certificate of u, which is repaired for as long as it is worth it."""
        s = self._split(w, u)
        proof = self._bound(w, u, s, level, goal)
        done, more = 0, self.repair.needed
        while more and done + BATCH <= (MOST if level - proof.bound_before_charge <= goal else rounds):
            charge, beyond = proof.bound_before_charge - proof.dual_bound, level - proof.bound_before_charge
            if charge <= max(MINOR * beyond, goal - beyond):
                break
            before = proof if u.size > LARGE else replace(proof, u=u.copy())
            more = self.repair.rounds(u, BATCH, s, _enough(level, charge, max(MINOR * beyond, goal - max(beyond, 0.0))))
            done += BATCH
            proof = self._bound(w, u, s, level, goal)
            if proof.dual_bound < before.dual_bound and before.u is not u:
                return before
        return proof

    def _second_look(
        self, w: Array, u: Array, level: float, goal: float, near: float, proof: Certificate
    ) -> Certificate:
        """The better of a proof and what u proves by means that pay only near the optimum, and for few weights."""
        f, in_sight = self.problem.f, bool(goal == 0 or level - proof.bound_before_charge <= near)
        known = f.design is not None and self.problem.penalty.kernel is not None
        worth_it = level - proof.dual_bound > goal and w.size <= FEW and known
        if not worth_it or (f.l1_box is None and not in_sight) or time_is_up():
            return proof
        s = None if f.l1_box is None else self._tight_split(w, u)
        return max(proof, self._bound(w, u, s, level, goal, local=in_sight), key=lambda one: one.dual_bound)

    def _third_look(self, w: Array, u: Array, level: float, goal: float, proof: Certificate) -> Certificate:
        """The better of a proof and what duals in twice the precision prove, for small problems."""
        problem, design = self.problem, self.problem.f.design
        good = level - proof.dual_bound <= max(goal, PERFECT * level)
        if design is None or good or time_is_up():
            return proof
        s = None if problem.f.l1_box is None else self._tight_split(w, u)
        duals = twofold_duals(problem, design, w, u, s, self.enclosure.free_weights())
        hi, rest = duals.hi, duals.rest(w)
        with np.errstate(over="ignore", invalid="ignore"):  # then nothing is proven
            support = design.support(hi.a, hi.b, w[problem.M])
            uncharged = self._uncharged(w, hi.u, hi.s, support) - duals.cost(w)
            charge = self.enclosure.charge(rest, level)
            found = self._concluded(rest, hi.u, level, uncharged, charge, False)
        found = replace(found, bound=replace(found.bound, value=found.dual_bound / (1 + duals.stretch())))
        return max(proof, found, key=lambda one: one.dual_bound)

    def glance(self, w: Array, u: Array, level: float) -> float:
        """About what the bound would be without charge, where that takes next to no time; `level` is the objective.

        A loss that is not quadratic has its second-order model at w in its place.
        """
        problem, M = self.problem, self.problem.labelled
        rest = np.empty_like(w)
        flow.divergence(problem.graph.edges, u, rest)
        edges = problem.penalty.conjugate(u, problem.c)
        if problem.f.quadratic is not None:
            return -float(problem.f.conjugate(-rest[M], w[M])[1].sum()) - edges
        model = problem.f.model(w[M], w[M]) if problem.f.row_space is None else None
        if model is None:
            return np.inf
        fall = models.model_fall(vector_buffer(w.shape[1]), model.H, rest[M] + model.slope)
        return level - problem.variation(w) + float((rest * w).sum()) - fall - edges

    def _tight_split(self, w: Array, u: Array) -> Array:
        """Duals that are at their bounds wherever a weight is not zero: the best ones if w is optimal."""
        problem, M = self.problem, self.problem.M
        assert problem.f.l1_box is not None
        assert problem.f.design is not None
        s, out = np.zeros_like(w), np.empty_like(w)
        flow.divergence(problem.graph.edges, u, out)
        q, low, _ = problem.f.design.forces(*problem.f.design.slopes(w[M]))
        lower, upper = problem.f.l1_box
        s[M] = np.where(w[M] > 0, upper, np.where(w[M] < 0, lower, np.clip(-out[M] - (q + low), lower, upper)))
        return s

    def _tight_on_cuts(self, w: Array) -> Array:
        """Duals of edges that are the best ones across every difference of w, and zero where there is none."""
        problem = self.problem
        i, j = problem.graph.edges.T
        u = np.where(np.abs(w[i] - w[j]) > CUT * np.abs(w).max(initial=0.0), w[i] - w[j], 0.0)
        if problem.penalty.kernel == SQUARED:
            return 2 * problem.c[:, None] * (w[i] - w[j])
        size = np.abs(u) if problem.penalty.kernel == L1 else np.linalg.norm(u, axis=1, keepdims=True)
        u = problem.c[:, None] * np.divide(u, size, out=np.zeros_like(u), where=size > 0)
        self.repair.into_domain(u)
        return u

    def _split(self, w: Array, u: Array) -> Array | None:
        """Duals s (V, n) in the box of the losses, zero at unlabelled nodes; None without a box."""
        problem, M = self.problem, self.problem.M
        if problem.f.l1_box is None:
            return None
        out, s = np.empty_like(w), np.zeros_like(w)
        flow.divergence(problem.graph.edges, u, out)
        s[M] = problem.f.split_dual(-out[M], w[M])
        return s

    def _bound(
        self, w: Array, u: Array, s: Array | None, level: float, goal: float, local: bool = False
    ) -> Certificate:
        """The certificate of u and s: affine functions below every part of the objective, added up at w.

        With `local`, the gap itself may say where better weights can be.
        """
        problem, M = self.problem, self.problem.labelled
        rho, low, rounding_bound = (np.empty_like(w) for _ in range(3))
        flow.exact_divergence(problem.graph.edges, u, rho, low, rounding_bound)
        self._pause()
        if s is not None:
            flow.add_exactly(s, rho, low, rounding_bound)
        support = problem.f.smooth_part.support(-rho[M], w[M])
        rho[M], low[M] = _sum(rho[M], support.q, low[M] + support.low)
        rounding_bound[M] += support.rounding_bound
        self._pause()
        rho += low
        rounding_bound += EPS * np.abs(rho)
        uncharged = self._uncharged(w, u, s, support)
        beyond = level - uncharged
        self._pause()
        in_sight = bool(goal == 0 or beyond <= goal)
        enough = max(CHARGED * goal, MINOR * beyond, 0.5 * (goal - beyond))
        charge = self.enclosure.charge(Rest(rho, rounding_bound, w), level, enough, in_sight or w.size <= FEW)
        if local and -charge > enough and support.duals is not None:
            most = -charge if np.isfinite(charge) else max(goal - beyond, MINOR * beyond)
            G = self._at_most(w, level) - uncharged
            near_w = self._local_charge(Rest(rho, rounding_bound, w), u, s, support.duals, G, most)
            charge, local = max(charge, near_w), near_w > charge
        else:
            local = False
        return self._concluded(Rest(rho, rounding_bound, w), u, level, uncharged, charge, local)

    def _uncharged(self, w: Array, u: Array, s: Array | None, support: Support) -> float:
        """What all affine functions come to at w, less rounding."""
        terms = self._edge_terms(w, u, s)
        total = float(support.at.sum()) + sum(terms)
        return total - SUM_ERROR * (float(np.abs(support.at).sum()) + sum(map(abs, terms))) - FAINT

    def _concluded(
        self, rest: Rest, u: Array, level: float, uncharged: float, charge: float, local: bool
    ) -> Certificate:
        """The certificate: what is left of ρ is charged, under a condition where nothing else is known."""
        rho, rounding_bound, w = rest
        problem = self.problem
        left, reach, unconditional = float((np.abs(rho) + rounding_bound).sum()), np.inf, True
        if charge == -np.inf and left > 0:
            largest = float(np.abs(w).max(initial=0.0))
            reach = REACH * largest
            charge = -(reach + largest) * left if reach > 0 else -np.inf
            unconditional = False
        bound = _less_rounding(uncharged, charge, w.shape[1])
        if bound < 0 and problem.f.design is not None:  # no loss is less; but there may be no minimiser
            bound = 0.0
            unconditional = unconditional or problem.f.design.kind != LOGISTIC
        proven = Bound(bound, unconditional, np.inf if unconditional else reach, left)
        return Certificate(level, proven, u, uncharged, local)

    def _pause(self) -> None:
        """Notice Ctrl-C, and that the time is long over, where a certificate takes time."""
        problem, n = self.problem, self.problem.n_features
        rows = 0 if problem.f.design is None else len(problem.f.design.X)
        if (problem.graph.n_nodes + problem.graph.n_edges + rows) * n > QUICK:
            check_with_grace()

    def _at_most(self, w: Array, level: float) -> float:
        """What the objective at w is at most, where `level` was computed: e^z is off by z roundings."""
        design = self.problem.f.design
        assert design is not None
        return design.ceiling(level, w[self.problem.M]) * (1 + (w.shape[1] + EXPONENTS) * EPS)

    def _local_charge(
        self, rest: Rest, u: Array, s: Array | None, duals: tuple[Array, Array], G: float, most: float
    ) -> float:
        """The charge that the gap itself proves, if it is at most `most`, or −∞."""
        problem = self.problem
        assert problem.f.design is not None
        local = Locality(problem, problem.f.design, rest.w, u, s, duals, self.enclosure.free_weights())
        X = lowest_that_holds(local, rest, max(G, 0.0), most)
        return -np.inf if X is None else -X

    def _edge_terms(self, w: Array, u: Array, s: Array | None) -> tuple[float, float, float]:
        """⟨u, Dw⟩, −g*(u) and ⟨s, w⟩: what the penalties of edges and of the box come to at w, at least."""
        problem = self.problem
        across = flow.across(problem.graph.edges, u, w)
        box = 0.0 if s is None else float((s * w).sum()) - SUM_ERROR * float(np.abs(s * w).sum())
        return across, -problem.penalty.conjugate(u, problem.c), box


def _less_rounding(uncharged: float, charge: float, n: int) -> float:
    """The bound, less what rounding of λA_e, shares 1/m_i, lengths |u_e| and presolve may have added."""
    bound = uncharged + charge - (n + 64) * EPS * (abs(uncharged + charge) + abs(charge))
    return bound if np.isfinite(bound) else -np.inf


def _sum(a: Array, b: Array, low: Array) -> tuple[Array, Array]:
    """a + b + low as hi + low, exactly but for the rounding of low."""
    hi = a + b
    t = hi - a
    return hi, low + ((a - (hi - t)) + (b - t))


def _enough(level: float, charge: float, allowed: float) -> Enough:
    """Charge and scaling may cost parts of what is allowed; scaling u by 1/κ costs about (κ − 1) g(Dw)."""
    price = max(abs(level), np.finfo(float).tiny)
    return Enough(left=CHARGED * allowed / charge, stretch=1 + STRETCHED * allowed / price)


def gap_unit(problem: BoundProblem, objective: float) -> float:
    """What gaps are relative to: max(|objective|, FLOOR × loss of the best constant model)."""
    return max(abs(objective), FLOOR * problem.constant_loss, np.finfo(float).tiny)


def relative_gap(problem: BoundProblem, objective: float, bound: float) -> float:
    """(objective − bound) / gap_unit, and zero when they meet."""
    return max(objective - bound, 0.0) / gap_unit(problem, objective)
