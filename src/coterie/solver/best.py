"""The best answer so far: weights and bound, which need not come from the same iteration."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver.certificate import MOST, Certificate, Certifier, gap_unit, relative_gap
from coterie.solver.newton import newton_point
from coterie.solver.snap import Partition, contracts, polish, refine
from coterie.solver.solution import Record, Solution, Status

AIM_ROUNDS = 5
STUCK = 5  # checks without progress, at rounding level, end the solve
NEAR = 10  # times the tolerance: a gap from which on the weights of a contracted problem are tried
FAR = 2  # times the gap that is asked for: a bound that is not worth proving
PATIENCE = 2  # polishes and aims in vain, before they are given up


class Best:
    """Keeps the best weights and the best dual bound, and says when to look again."""

    def __init__(self, problem: Problem, tol: float, w: Array, u: Array, threads: int | None = None) -> None:
        self.problem, self.tol = problem, tol
        self.began = time.perf_counter()
        self.certify = Certifier(problem, threads)
        self.objective, self.w = problem.objective(w), w.copy()
        least = 0.0 if problem.f.design is not None else -np.inf  # before anything is proven
        self.proof = Certificate(self.objective, least, True, "", np.zeros_like(u), least)
        self.unproven = True
        self.aim_fails = 0
        self.partition: Partition | None = None
        self.history: list[Record] = []
        self.checks: list[tuple[int, float]] = []

    def begin(self, u: Array, hurry: bool = False) -> None:
        """Prove what the first weights and duals can; in a hurry, only if a glance tells that it may be enough."""
        if hurry and self._far_off(u) is not None:
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
        bound = -np.inf if self._refuted(self.proof) else self.proof.dual_bound
        return relative_gap(self.problem, self.objective, bound)

    def reached(self) -> Status | None:
        """How the solve ends if it ends now because the gap is small enough; None: it is not."""
        if self.gap > self.tol:
            return None
        return Status.OPTIMAL if self.proof.unconditional else Status.CONDITIONAL

    @property
    def goal(self) -> float:
        """The absolute gap that is asked for."""
        return self.tol * gap_unit(self.problem, self.objective)

    def improve(self, w: Array, u: Array, n_iter: int, rounds: int, hurry: bool = False) -> None:
        """Take what a point of the iteration offers: its weights, snapped and polished, and its duals, repaired.

        The duals are repaired in place: they can be the largest array there is. In a hurry, nothing is proven that a
        glance tells is not good enough.
        """
        self._offer(w)
        partition = self.partition = Partition.shown_by(self.problem, u)
        if partition is not None:
            self._offer(partition.average(w))
            if self.gap <= NEAR * self.tol and contracts(self.problem, partition):
                self._offer(refine(self.problem, partition, self.tol / 3))
        aimed = None if partition is None else self._aim(partition, w, u, rounds, hurry)
        excess = self._far_off(u) if aimed is None and hurry else None
        if excess is not None:
            self.checks.append((n_iter, excess))
            self._note(n_iter)
            return
        proof = aimed if aimed is not None and self._in_reach(aimed) else self._prove(u, rounds, hurry)
        if aimed is not None and aimed.dual_bound < proof.dual_bound:
            self.aim_fails += 1
        beyond = self.objective - proof.uncharged
        self.checks.append((n_iter, beyond / self.goal if self.goal > 0 else np.inf))
        self._note(n_iter)

    def improve_by_newton(self, n_iter: int) -> None:
        """Take what second-order steps offer, from the best weights."""
        enclosure = self.certify.enclosure
        self._offer(enclosure.pooled_weights())
        fixed = enclosure.free_weights()
        self.improve(*newton_point(self.problem, self.w, self.goal, fixed), n_iter, MOST)

    def _aim(self, partition: Partition, w: Array, u: Array, rounds: int, hurry: bool) -> Certificate | None:
        """Polish the weights and look for the dual that proves them optimal, unless that keeps failing."""
        polished = None if self.aim_fails >= PATIENCE else polish(self.problem, partition, w)
        if polished is None:
            return None
        if self._offer(polished) > self.objective + self.goal:
            self.aim_fails += 1
            return None
        u = u.copy()
        self.certify.repair.into_domain(u)
        self.certify.repair.aim(u, polished, AIM_ROUNDS)
        return self._prove(u, rounds, hurry)

    def _prove(self, u: Array, rounds: int, hurry: bool) -> Certificate:
        """Keep the better bound; but of two that rest on a condition, the one whose condition asks for less."""
        proof = self.certify(self.w, u, goal=self.goal, rounds=rounds, level=self.objective, hurry=hurry)
        stale = self.proof.reach < 0.5 * proof.reach or self._refuted(self.proof)
        proven = proof.unconditional and not self.proof.unconditional and self._in_reach(proof)
        if not self._refuted(proof) and (self.unproven or stale or proven or proof.dual_bound > self.proof.dual_bound):
            self.proof, self.unproven = proof, False
        return proof

    def _far_off(self, u: Array) -> float | None:
        """By how many goals the bound of u is off, where a glance tells that it is not worth proving, or None."""
        if self.goal == 0 or self.gap <= self.tol:
            return None
        excess = (self.objective - self.certify.glance(self.w, u, self.objective)) / self.goal
        return excess if excess > FAR else None

    def _refuted(self, proof: Certificate) -> bool:
        """Whether weights have been found below a bound: then the condition that it rests on is false.

        That of a bound without condition would be an error of this program, and must not pass for a gap of 0.
        """
        refuted = proof.dual_bound > self.objective + 1e-12 * gap_unit(self.problem, self.objective)
        if refuted and proof.unconditional:
            raise ArithmeticError(
                f"the proven bound {proof.dual_bound!r} is above the objective {self.objective!r}: please report this"
            )
        return refuted

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
        proof = self.certify(w, self.proof.u.copy(), goal=self.goal, rounds=0)
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
            u=self.proof.u,
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
            reach=self.proof.reach,
        )
