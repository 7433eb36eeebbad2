"""Strengths of columns that held-out rows choose: one column at a time, as long as their error falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.column_strength import of_weights
from coterie.estimators.fold_paths import how_to_solve
from coterie.estimators.folds import folds_for
from coterie.estimators.lam_errors import cross_validate_lam
from coterie.estimators.progress import Verbose, listener
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.strengths import STRONGEST, WEAKEST

LADDER = (0.0, 1 / 64, 1 / 16, 1 / 4, 1.0, 4.0, 16.0, 64.0, np.inf)
"""Times the strength that was given: those that are tried, from one to the next as long as the error falls."""

AROUND = (3.0, 1.0, 1 / 3)  # times the λ that was best so far: those that are tried with a strength
LESS = 0.99  # of the error: a gain of less than a hundredth is chance
PASSES = 3

Tried = Callable[[Array, float | None], tuple[float, float]]
"""From strengths and a λ that suits them (None: not known) to the smallest error and the λ that has it."""


class RefinesStrength:
    """Refine strengths before λ is chosen, if asked. Mixed into a networked model; the parameters are its own."""

    refine_strength: bool = False
    criterion: str
    cv: Any
    over: Any
    random_state: Any
    lams: Any
    n_lams: int
    n_jobs: int | None
    verbose: Verbose
    fit_intercept: bool
    strengths_: Array | None

    def _refined(self, problem: Problem, order: Array | None) -> Problem:
        """The problem with the strengths that held-out rows choose; those given as 0 or inf stay."""
        if not self.refine_strength:
            return problem
        if self.criterion != "cv":
            raise ValueError(
                f'refine_strength=True lets folds choose, and criterion="{self.criterion}" holds nothing out; '
                "leave one of them out"
            )
        folds, over = folds_for(self, problem, self.cv, self.over, order, self.random_state)
        tell = listener(self.verbose)

        def tried(strength: Array, lam: float | None) -> tuple[float, float]:
            all_of_them = self.n_lams if self.lams is None else self.lams
            lams = all_of_them if lam is None else [lam * factor for factor in AROUND]
            stated, options = self._with(problem, strength), how_to_solve(self) | {"n_jobs": self.n_jobs}
            choice = cross_validate_lam(stated, lams, folds, over, **options)
            best = choice.best
            if lam is None and len(choice.lams) > 2:  # at either end of them, strengths hardly make a difference
                best = 1 + int(choice.mean[1:-1].argmin())
            if tell is not None:
                tell(f"strengths {', '.join(f'{s:.3g}' for s in strength)}: error {choice.mean[best]:.4g}", 0.0)
            return float(choice.mean[best]), float(choice.lams[best])

        first = np.ones(problem.data.n_features) if self.strengths_ is None else self.strengths_
        self.strengths_ = refine(first, tried, self.fit_intercept)
        return self._with(problem, self.strengths_)

    def _with(self, problem: Problem, strengths: Array) -> Problem:
        """The problem with these strengths of columns."""
        return replace(problem, strength=of_weights(strengths, problem.loss))


def refine(strength: Array, tried: Tried, intercept: bool = False) -> Array:
    """Coordinate search on a ladder for each column, from `strength` on: a column moves on while that pays.

    It begins with slopes that all nodes share if that is better, and an intercept, the last column, as it was or of
    every node by itself: each of these steps alone may hardly pay.
    """
    moves = np.flatnonzero((strength > 0) & (strength < np.inf))
    rungs = np.full(len(strength), LADDER.index(1.0))
    slopes, level = moves[moves < len(strength) - intercept], moves[moves >= len(strength) - intercept]

    def at(rungs: NDArray[np.int64]) -> Array:
        out = strength.copy()
        for k in moves:
            factor = LADDER[rungs[k]]
            out[k] = np.clip(factor * strength[k], WEAKEST, STRONGEST) if 0 < factor < np.inf else factor
        return out

    error, lam = tried(at(rungs), None)
    tied = rungs.copy()
    tied[slopes] = len(LADDER) - 1
    apart = tied.copy()
    apart[level] = 0
    starts = [tied, apart] if len(level) else [tied]
    for start in starts if len(slopes) and intercept else ():
        found, best = tried(at(start), None)
        if found < LESS * error:
            rungs, error, lam = start, found, best
    for _ in range(PASSES):
        before = error
        for k in moves:
            for step in (1, -1):
                moved = False
                while 0 <= rungs[k] + step < len(LADDER):
                    there = rungs.copy()
                    there[k] += step
                    found, best = tried(at(there), lam or None)  # 0: where no column was held, λ did not matter
                    if found >= LESS * error:
                        break
                    rungs, error, lam, moved = there, found, best, True
                if moved:
                    break
        if error == before:
            break
    return at(rungs)
