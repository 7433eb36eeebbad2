"""Closer looks at what duals prove: ways that pay only near the optimum, and only for few weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Minorant
from coterie.kernels.choice import Either
from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.solver.whole.joint_system import is_small
from coterie.solver.whole.local import Locality, lowest_that_holds
from coterie.solver.whole.twofold import twofold_duals

if TYPE_CHECKING:
    from coterie.solver.certificate import Certificate, Certifier

flow = Either("flow")

FEW = 5_000  # weights or duals, up to which a second way costs nothing
EXPONENTS = 1024  # no z has a larger e^z
CUT = 1e-9  # of the largest weight: a smaller difference is none
PERFECT = 1e-12  # of the objective: a gap that nobody asks to be smaller


class CloserLook:
    """A second look lets the gap itself say where better weights can be, a third has duals in twice the precision."""

    def __init__(self, prover: ArrayProver, certifier: Certifier) -> None:
        self.prover, self.certifier, self.problem = prover, certifier, prover.problem
        self.small = is_small(self.problem)

    def second(self, w: Array, u: Array, level: float, goal: float, near: float, proof: Certificate) -> Certificate:
        """The better of a proof and what u proves by means that pay only near the optimum, and for few weights."""
        f, in_sight = self.problem.f, bool(goal == 0 or level - proof.bound_before_charge <= near)
        has_rows = f.design is not None and self.problem.penalty.kernel is not None
        worth_it = level - proof.dual_bound > goal and w.size <= FEW and has_rows
        if not worth_it or (f.l1_box is None and not in_sight) or time_is_up():
            return proof
        s = None if f.l1_box is None else self.tight_split(w, u)
        found = self.certifier.bound(w, u, s, level, goal, local=in_sight and f.bounds is None)
        return max(proof, found, key=lambda one: one.dual_bound)

    def third(self, w: Array, given: Sequence[Array], level: float, goal: float, proof: Certificate) -> Certificate:
        """The best of a proof and what duals near these prove in twice the precision, for small problems."""
        design = self.problem.f.design
        if not self.small or design is None or not design.psi.second_floats:
            return proof
        for dual in (*given, proof.u, self.tight_on_cuts(w)):
            proof = self.in_twice_the_precision(w, dual, level, goal, proof)
        return proof

    def in_twice_the_precision(self, w: Array, u: Array, level: float, goal: float, proof: Certificate) -> Certificate:
        """The better of a proof and what u proves with second floats."""
        problem, design = self.problem, self.problem.f.design
        good = level - proof.dual_bound <= max(goal, PERFECT * level)
        if design is None or good or time_is_up():
            return proof
        s = None if problem.f.l1_box is None else self.tight_split(w, u)
        duals = twofold_duals(problem, design, w, u, s, self.prover.enclosure.free_weights())
        hi, rest = duals.hi, duals.rest(w)
        with np.errstate(over="ignore", invalid="ignore"):  # then nothing is proven
            support = design.support(hi.a, hi.b, w[problem.M])
            value = self.prover.value_of(w, hi.u, hi.s, support) - duals.cost(w)
            charge = self.prover.charge(rest, level)
            found = self.certifier.concluded(w, Minorant(value, rest, None), hi.u, level, charge, False)
        found = replace(found, bound=replace(found.bound, value=found.dual_bound / (1 + duals.stretch())))
        return max(proof, found, key=lambda one: one.dual_bound)

    def local_charge(self, below: Minorant, u: Array, s: Array | None, level: float, most: float) -> float:
        """The charge that the gap itself proves, if it is at most `most`, or −∞."""
        problem, w = self.problem, below.rest.w
        assert problem.f.design is not None
        G = self.at_most(w, level) - below.value
        local = Locality(problem, problem.f.design, w, u, s, below.duals, self.prover.enclosure.free_weights())
        X = lowest_that_holds(local, below.rest, max(G, 0.0), most)
        return -np.inf if X is None else -X

    def at_most(self, w: Array, level: float) -> float:
        """What the objective at w is at most, where `level` was computed: e^z is off by z roundings."""
        design = self.problem.f.design
        assert design is not None
        return design.ceiling(level, w[self.problem.M]) * (1 + (w.shape[1] + EXPONENTS) * EPS)

    def tight_split(self, w: Array, u: Array) -> Array:
        """Duals that are at their bounds wherever a weight is not zero: the best ones if w is optimal."""
        problem, M = self.problem, self.problem.M
        assert problem.f.l1_box is not None
        assert problem.f.design is not None
        s, out = np.zeros_like(w), np.empty_like(w)
        flow.divergence(problem.graph.edges, u, out)
        q, low, _ = problem.f.design.forces(*problem.f.design.slopes(w[M]))
        s[M] = np.clip(-out[M] - (q + low), *problem.f.tight_box(w[M]))
        return s

    def tight_on_cuts(self, w: Array) -> Array:
        """Duals of edges that are the best ones across every difference of w, and zero where there is none."""
        problem = self.problem
        i, j = problem.graph.edges.T
        u = np.where(np.abs(w[i] - w[j]) > CUT * np.abs(w).max(initial=0.0), w[i] - w[j], 0.0)
        if problem.penalty.degree == 2:
            return 2 * problem.c[:, None] * (w[i] - w[j])
        size = np.linalg.norm(u, axis=1, keepdims=True) if problem.penalty.couples else np.abs(u)
        u = problem.c[:, None] * np.divide(u, size, out=np.zeros_like(u), where=size > 0)
        self.prover.clip(u)
        return u
