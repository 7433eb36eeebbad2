"""The best answer so far: weights and bound, which need not come from the same iteration."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from math import inf, isfinite, log

import numpy as np

from coterie.engines.base import Clusters, Duals, Prover, Weights
from coterie.kernels.interruption import TimeUp
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.solver.bound import Bound
from coterie.solver.certificate import MOST, Certificate, Certifier, gap_unit, relative_gap
from coterie.solver.solution import Record, Solution, Status
from coterie.solver.whole.improvements import Improvements

STUCK = 5  # checks without progress, at rounding level, end the solve
NEAR = 10  # times the gap that is asked for: from there on the weights of a contracted problem are tried
LEAD = 3.0  # times the gap that is asked for: what weights on merged nodes take off, at least
TIE = 1e-3  # of the gap that is asked for: weights that cost no more than that are as good
FALLS = 0.5  # of the last glance: while they fall that fast, a prover may wait for more than that


class Incumbent:
    """Keeps the best weights and the best dual bound, and says when to look again."""

    def __init__(self, prover: Prover, tol: float, w: Weights) -> None:
        self.prover, self.problem, self.tol = prover, prover.problem, tol
        self.began = time.perf_counter()
        w = self._inside(w)
        self.objective, self.w = prover.objective(w), prover.copy(w)
        least = _least(self.problem)
        self.proof = Certificate(self.objective, least, prover.no_duals(), least.value)
        self.improvements = None if prover.arrays is None else Improvements(prover.arrays)
        self.lead = 1.0
        self.unproven, self.warm = True, False
        self.clusters: Clusters | None = None
        self.equal_in: Clusters | None = None  # those in which the best weights are means already
        self.history: list[Record] = []
        self.checks: list[tuple[int, float]] = []

    @cached_property
    def certify(self) -> Certifier:
        return Certifier(self.prover)

    def begin(self, u: Duals, hurry: bool = False) -> None:
        """Prove what the first weights and duals can; in a hurry, only if a glance tells that it may be enough.

        Weights that separate the classes leave nothing to do.
        """
        self.warm = not self.prover.is_nothing(u)
        if self.warm and self.improvements is not None:
            self.improvements.begin_warm()
        apart = self.prover.separating_weights()
        if apart is not None:
            self._offer(apart)
        elif hurry and self.gap > self.tol and self._too_early(self._excess(self._glance(u))):
            self._note(0)
            return
        given = self.prover.copy(u) if self.warm else u
        proof = self.certify(self.w, given, goal=self.goal, rounds=0, level=self.objective)
        self.unproven = False
        # zeros are the engine's to move, and others cost no memory
        self.proof = replace(proof, u=self.prover.no_duals()) if self.prover.is_nothing(proof.u) else proof
        self._note(0)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.began

    @property
    def gap(self) -> float:
        return relative_gap(self.problem, self.objective, self.proof.bound)

    def reached(self) -> Status | None:
        """How the solve ends if it ends now because the gap is small enough; None: it is not."""
        if not self.gap <= self.tol:
            return None
        return Status.OPTIMAL if self.proof.unconditional else Status.CONDITIONAL

    @property
    def goal(self) -> float:
        """The absolute gap that is asked for."""
        return self.tol * self._unit

    @property
    def _unit(self) -> float:
        """What gaps are relative to."""
        return gap_unit(self.problem.constant_loss, self.objective)

    def improve(self, w: Weights, u: Duals, n_iter: int, rounds: int, hurry: bool = False) -> None:
        """Take what a point of the iteration offers: its weights, snapped and polished, and its duals, repaired.

        The duals are repaired in place: they can be the largest array there is. In a hurry, nothing is proven that a
        glance tells is not good enough.
        """
        clusters = self.clusters = self.prover.dual_clusters(u)
        aimed, below, before = None, None, self.objective
        if clusters is not None and self._offer(self.prover.average(clusters, w)) < before:
            self.equal_in = clusters
        else:
            self._offer(w)
        if not self.unproven and self.reached() is Status.OPTIMAL:  # better weights were all that was missing
            self.checks.append((n_iter, self._excess(self.proof.dual_bound)))
            self._note(n_iter)
            return
        if clusters is not None and self.improvements is not None:
            below = self._refine(self.improvements, clusters, w, u)
            aimed = self._aim(self.improvements, clusters, w, u, n_iter, rounds, hurry)
        in_doubt = aimed is None and hurry and self.gap > self.tol
        if in_doubt and below is None:
            below = self._glance(u)
        excess = self._excess(below) if in_doubt and below is not None else 0.0
        if aimed is not None and self._in_reach(aimed):
            below = aimed.bound_before_charge
        elif not self._too_early(excess):
            _, below = self._prove(u, rounds, hurry, below)
        assert below is not None
        self.checks.append((n_iter, self._excess(below)))
        self._note(n_iter)

    def _glance(self, u: Duals) -> float:
        """About what these duals prove; for quadratic losses, whatever the weights are."""
        return self.prover.glance(self.w, u, self.objective) if self.goal > 0 else -inf

    def _excess(self, below: float) -> float:
        """How many times the gap that is asked for is left, about, where this is proven; ∞ if none is asked for."""
        return (self.objective - below) / self.goal if self.goal > 0 else inf

    def _too_early(self, excess: float) -> bool:
        """Whether this much of a gap, at a glance, is not worth a proof; ∞: nothing is known.

        A proof says what a glance says, or less where duals have to be repaired first. Where proofs take as long as
        hundreds of iterations, these go on while they bring much.
        """
        near, before = self.prover.near_enough, self.checks[-1][1] if self.checks else inf
        return 1 < excess < inf or near < excess <= FALLS * before < inf

    def improve_by_newton(self, n_iter: int) -> None:
        """Take what second-order steps offer, from the best weights, where these are small enough a problem."""
        if self.improvements is None:
            return
        self._offer(self.prover.pooled_weights())
        w, u = self.improvements.newton_point(self.w, self.goal)
        self._offer(w, TIE * self.goal)  # their duals prove them, and may prove less of others that are as good
        self.certify.thorough = True
        self.improve(w, u, n_iter, MOST)
        self.certify.thorough = False

    def _refine(self, improvements: Improvements, clusters: Clusters, w: Weights, u: Duals) -> float | None:
        """Take weights from a smaller problem on the clusters, where it pays; return a glance, if there was one."""
        self.lead = 1.0
        if improvements.contracts(clusters):
            below = self._glance(u)
            if self._excess(below) <= NEAR:
                self._offer(improvements.refined(clusters, self.tol / 3))
            return below
        if not improvements.merges(clusters):
            return None
        below = self._glance(u)
        if 1 < self._excess(below) <= NEAR:
            self._offer(improvements.merged(clusters, w, u))
        else:  # that will come; once it has, what is left is left to the duals
            self.lead = LEAD
        return below

    def _aim(
        self,
        improvements: Improvements,
        clusters: Clusters,
        w: Weights,
        u: Duals,
        n_iter: int,
        rounds: int,
        hurry: bool,
    ) -> Certificate | None:
        """Polish the weights and look for the dual that proves them optimal, unless that keeps failing."""
        if not improvements.are_settled(clusters, n_iter):
            return None
        u = self.prover.copy(u)
        self.prover.clip(u)
        w, settled = improvements.polished(clusters, w, u, self._suffice)
        self._offer(w)
        if settled is None:
            return None
        self.clusters = settled
        return self._prove(u, rounds, hurry, self._glance(u) if hurry else None)[0]

    def _suffice(self, w: Weights, u: Duals) -> bool:
        """Whether duals prove, about, what is asked for of these weights."""
        self._offer(w)
        return self._excess(self._glance(u)) <= 1

    def _prove(self, u: Duals, rounds: int, hurry: bool, below: float | None) -> tuple[Certificate | None, float]:
        """Keep the better bound; return the new one, if there is one, and what it is before its charge.

        `below` is what a glance says, if there was one.
        """
        glanced = below if below is not None and hurry and isfinite(below) else None
        proof, shown = self.certify.attempt(
            self.w, u, goal=self.goal, rounds=rounds, level=self.objective, hurry=hurry, glanced=glanced
        )
        now = self.objective, self._unit
        if proof is None:
            return None, shown
        first = self.unproven and not proof.bound.is_refuted_by(*now)
        if first or proof.bound.is_better_than(self.proof.bound, *now):
            self.proof, self.unproven = proof, False
        return proof, shown

    def _in_reach(self, proof: Certificate) -> bool:
        return self.objective - proof.dual_bound <= self.goal

    @property
    def stuck(self) -> bool:
        """Whether the last checks have brought nothing."""
        return len(self.history) > STUCK and self.gap > 0.99 * self.history[-1 - STUCK].gap

    def next_check(self, block: int) -> int:
        """When the gap without charge should reach the goal, judging by the last two checks."""
        k, excess = self.checks[-1]
        if len(self.checks) < 2 or excess <= 1:
            return k + 2 * block
        return k + int(min(max(self._wait, block), max(2 * block, k // 2)))

    @property
    def crawls(self) -> bool:
        """Whether that will take as many iterations again, or what is left to be proven is the charge."""
        k, excess = self.checks[-1]
        return excess <= 1 or self._wait > k

    @property
    def _wait(self) -> float:
        """Iterations until the gap without charge reaches the goal, at the pace of the last two checks.

        Where better weights take off the rest, a few times the goal will do.
        """
        if len(self.checks) < 2:
            return inf
        (k_before, before), (k, excess) = self.checks[-2:]
        far = log(excess / (self.lead if excess > self.lead else 1.0))
        return far * (k - k_before) / log(before / excess) if before > excess > 0 and k > k_before else inf

    def _offer(self, w: Weights, more: float = 0.0) -> float:
        """Take these weights if they are better, or cost only so much more; return their objective."""
        w = self._inside(w)
        objective = self.prover.objective(w)
        if objective < self.objective + more:
            self.objective, self.w, self.equal_in = objective, self.prover.copy(w), None
        return objective

    def _inside(self, w: Weights) -> Weights:
        """Weights inside their bounds, which unlabelled nodes can leave, and means by rounding."""
        return self.problem.inside(w)

    def _note(self, n_iter: int) -> None:
        seconds = self.elapsed
        self.history.append(Record(n_iter, self.objective, self.proof.dual_bound, self.gap, seconds))

    def _proven_again(self, w: Weights) -> bool:
        """Whether these weights prove as much, with the same duals."""
        try:
            proof = self.certify(w, self.prover.copy(self.proof.u), goal=self.goal, rounds=0)
        except (KeyboardInterrupt, TimeUp):
            return False
        proven = proof.unconditional and self._in_reach(proof)
        self.proof = proof if proven else self.proof
        return proven

    def _snap(self) -> None:
        """Make the weights of clusters exactly equal, where the tolerance allows it."""
        if self.clusters is None or self.equal_in is self.clusters:
            return
        snapped = self.prover.average(self.clusters, self.w)
        objective = self.prover.objective(snapped)
        near = objective - self.proof.dual_bound <= max(self.goal, self.objective - self.proof.dual_bound)
        if near and (not self.proof.local or self._proven_again(snapped)):
            self.w, self.objective = snapped, objective

    def solution(self, status: Status, n_iter: int) -> Solution:
        """What is best now, gathered as a solution."""
        self._snap()
        u = self.proof.u if self.prover.is_finite(self.proof.u) else self.prover.no_duals()  # those prove 0 as well
        return Solution(
            w=self.prover.gather(self.w),
            u=self.prover.gather(u, edges=True),
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


def unproven(problem: BoundProblem, w: Array, u: Array) -> Solution:
    """What there is when the time is over before there is a prover: these weights."""
    w = problem.inside(w)
    objective, least = problem.objective(w), _least(problem)
    gap = relative_gap(problem, objective, least)
    return Solution(
        w=w,
        u=np.zeros_like(u),
        objective=objective,
        dual_bound=least.value,
        gap=gap,
        unconditional=True,
        condition="",
        status=Status.TIME_LIMIT,
        n_iter=0,
        seconds=0.0,
        history=(Record(0, objective, least.value, gap, 0.0),),
        undetermined=problem.undetermined,
        graph=problem.graph,
    )


def _least(problem: BoundProblem) -> Bound:
    """What is proven before anything is: losses of rows are not negative."""
    return Bound(0.0 if problem.f.below is not None else -inf, True)
