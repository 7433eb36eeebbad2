"""The best answer so far: weights and bound, which need not come from the same iteration."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property

import numpy as np

from coterie.kernels.interruption import TimeUp
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.solver import polish
from coterie.solver.bound import Bound
from coterie.solver.certificate import MOST, Certificate, Certifier, gap_unit
from coterie.solver.newton import newton_point
from coterie.solver.snap import DualClusters, contracts, refine
from coterie.solver.solution import Record, Solution, Status

STUCK = 5  # checks without progress, at rounding level, end the solve
NEAR = 10  # times the gap that is asked for: from there on the weights of a contracted problem are tried
FAR = 2  # times the gap that is asked for: a bound that is not worth proving
WORTH = 1.5  # times the cost of polishing must have gone into iterations since the last time
FEW, SETTLED = 64, 0.02  # clusters that are always polished; the change, relatively, up to which more of them are


class Incumbent:
    """Keeps the best weights and the best dual bound, and says when to look again."""

    def __init__(self, problem: BoundProblem, tol: float, w: Array, u: Array, threads: int | None = None) -> None:
        self.problem, self.tol = problem, tol
        self.began = time.perf_counter()
        self.threads = threads
        self.objective, self.w = problem.objective(w), w.copy()
        least = 0.0 if problem.f.design is not None else -np.inf  # before anything is proven
        self.proof = Certificate(self.objective, Bound(least, True), np.zeros_like(u), least)
        self.polishes, self.n_clusters = polish.applies(problem), 0
        self.polish_after, self.polish_costs = 0.0, WORTH * polish.costs(problem)
        self.unproven = True
        self.partition: DualClusters | None = None
        self.history: list[Record] = []
        self.checks: list[tuple[int, float]] = []

    @cached_property
    def certify(self) -> Certifier:
        return Certifier(self.problem, self.threads)

    def begin(self, u: Array, hurry: bool = False) -> None:
        """Prove what the first weights and duals can; in a hurry, only if a glance tells that it may be enough.

        Weights that separate the classes leave nothing to do.
        """
        apart = self.certify.enclosure.separating_weights()
        if apart is not None:
            self._offer(apart)
        elif hurry and self.gap > self.tol and FAR < self._excess(self._glance(u)) < np.inf:
            self._note(0)
            return
        given = u.copy() if u.any() else u
        proof = self.certify(self.w, given, goal=self.goal, rounds=0, level=self.objective)
        self.unproven = False
        # zeros are the engine's to move, and others cost no memory
        self.proof = replace(proof, u=np.zeros_like(u)) if proof.u is u else proof
        self._note(0)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def gap(self) -> float:
        return self.proof.bound.gap(self.objective, self._unit)

    def reached(self) -> Status | None:
        """How the solve ends if it ends now because the gap is small enough; None: it is not."""
        if self.gap > self.tol:
            return None
        return Status.OPTIMAL if self.proof.unconditional else Status.CONDITIONAL

    @property
    def goal(self) -> float:
        """The absolute gap that is asked for."""
        return self.tol * self._unit

    @property
    def _unit(self) -> float:
        """What gaps are relative to."""
        return gap_unit(self.problem, self.objective)

    def improve(self, w: Array, u: Array, n_iter: int, rounds: int, hurry: bool = False) -> None:
        """Take what a point of the iteration offers: its weights, snapped and polished, and its duals, repaired.

        The duals are repaired in place: they can be the largest array there is. In a hurry, nothing is proven that a
        glance tells is not good enough.
        """
        self._offer(w)
        partition = self.partition = DualClusters.shown_by(self.problem, u)
        aimed, below = None, None
        if partition is not None:
            self._offer(partition.average(w))
            if contracts(self.problem, partition):
                below = self._glance(u)
                if self._excess(below) <= NEAR:
                    self._offer(refine(self.problem, partition, self.tol / 3))
            aimed = self._aim(partition, w, u, n_iter, rounds, hurry)
        in_doubt = aimed is None and hurry and self.gap > self.tol
        excess = self._excess(self._glance(u) if below is None else below) if in_doubt else 0.0
        if FAR < excess < np.inf:
            self.checks.append((n_iter, excess))
            self._note(n_iter)
            return
        proof = aimed if aimed is not None and self._in_reach(aimed) else self._prove(u, rounds, hurry)
        beyond = self.objective - proof.bound_before_charge
        self.checks.append((n_iter, beyond / self.goal if self.goal > 0 else np.inf))
        self._note(n_iter)

    def _glance(self, u: Array) -> float:
        """About what these duals prove; for quadratic losses, whatever the weights are."""
        return self.certify.glance(self.w, u, self.objective) if self.goal > 0 else -np.inf

    def _excess(self, below: float) -> float:
        """How many times the gap that is asked for is left, about, where this is proven; ∞ if none is asked for."""
        return (self.objective - below) / self.goal if self.goal > 0 else np.inf

    def improve_by_newton(self, n_iter: int) -> None:
        """Take what second-order steps offer, from the best weights."""
        enclosure = self.certify.enclosure
        self._offer(enclosure.pooled_weights())
        fixed = enclosure.free_weights()
        w, u = newton_point(self.problem, self.w, self.goal, fixed)
        self.certify.thorough = True
        self.improve(w, u, n_iter, MOST)
        self.certify.thorough = False

    def _settled(self, partition: DualClusters, n_iter: int) -> bool:
        """Whether polishing is worth its time: clusters are few, or change little, and iterations have cost as much."""
        K, before = int(partition.counts.sum()), self.n_clusters
        self.n_clusters = K
        few, settled = K <= FEW, abs(K - before) <= SETTLED * K
        worth_it = (few or settled) and n_iter >= max(self.polish_after, 0 if few else self.polish_costs)
        if not (self.polishes and worth_it) or contracts(self.problem, partition):
            return False
        self.polish_after = n_iter + self.polish_costs
        return True

    def _aim(
        self, partition: DualClusters, w: Array, u: Array, n_iter: int, rounds: int, hurry: bool
    ) -> Certificate | None:
        """Polish the weights and look for the dual that proves them optimal, unless that keeps failing."""
        if not self._settled(partition, n_iter):
            return None
        u = u.copy()
        self.certify.repair.into_domain(u)
        w, settled = polish.settle(self.problem, partition, w, u)
        self._offer(w)
        if settled is None:
            return None
        self.partition = settled
        return self._prove(u, rounds, hurry)

    def _prove(self, u: Array, rounds: int, hurry: bool) -> Certificate:
        """Keep the better bound."""
        proof = self.certify(self.w, u, goal=self.goal, rounds=rounds, level=self.objective, hurry=hurry)
        now = self.objective, self._unit
        first = self.unproven and not proof.bound.is_refuted_by(*now)
        if first or proof.bound.is_better_than(self.proof.bound, *now):
            self.proof, self.unproven = proof, False
        return proof

    def _in_reach(self, proof: Certificate) -> bool:
        return self.objective - proof.dual_bound <= self.goal

    @property
    def stuck(self) -> bool:
        """Whether the last checks have brought nothing."""
        return len(self.history) > STUCK and self.gap > 0.99 * self.history[-1 - STUCK].gap

    def next_check(self, block: int) -> int:
        """When the gap without charge should reach the goal, judging by the last two checks."""
        k, excess = self.checks[-1]
        longest = max(2 * block, k // 2)
        if len(self.checks) < 2 or excess <= 1:
            return k + 2 * block
        k_before, before = self.checks[-2]
        rate = np.log(before / excess) / (k - k_before) if before > excess and k > k_before else 0.0
        wait = np.log(excess) / rate if rate > 0 else longest
        return k + int(np.clip(wait, block, longest))

    def _offer(self, w: Array) -> float:
        """Take these weights if they are better; return their objective."""
        objective = self.problem.objective(w)
        if objective < self.objective:
            self.objective, self.w = objective, w.copy()
        return objective

    def _note(self, n_iter: int) -> None:
        seconds = self.elapsed
        self.history.append(Record(n_iter, self.objective, self.proof.dual_bound, self.gap, seconds))

    def _proven_again(self, w: Array) -> bool:
        """Whether these weights prove as much, with the same duals."""
        try:
            proof = self.certify(w, self.proof.u.copy(), goal=self.goal, rounds=0)
        except (KeyboardInterrupt, TimeUp):
            return False
        proven = proof.unconditional and self._in_reach(proof)
        self.proof = proof if proven else self.proof
        return proven

    def solution(self, status: Status, n_iter: int) -> Solution:
        """What is best now, as a solution; its clusters are made exactly equal where the tolerance allows."""
        if self.partition is not None:
            snapped = self.partition.average(self.w)
            objective = self.problem.objective(snapped)
            near = objective - self.proof.dual_bound <= max(self.goal, self.objective - self.proof.dual_bound)
            if near and (not self.proof.local or self._proven_again(snapped)):
                self.w, self.objective = snapped, objective
        return Solution(
            w=self.w,
            u=self.proof.u if np.isfinite(self.proof.u).all() else np.zeros_like(self.proof.u),  # those prove 0 as well
            objective=self.objective,
            dual_bound=self.proof.dual_bound,
            gap=self.gap,
            unconditional=self.proof.unconditional,
            condition=self.proof.condition,
            status=status,
            n_iter=n_iter,
            seconds=self.elapsed,
            history=tuple(self.history),
            undetermined=self.problem.undetermined,
            graph=self.problem.graph,
            reach=self.proof.bound.weight_bound,
        )
