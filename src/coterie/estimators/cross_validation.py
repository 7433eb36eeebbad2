"""λ by cross-validation: a warm path for each fold, solved no further than the choice needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.estimators.fold_paths import FoldPath, Told, how_to_solve, solve_folds
from coterie.estimators.folds import Fold, folds_of
from coterie.estimators.held_out import HeldOut, held_out_of
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.progress import Tell, Verbose, listener
from coterie.estimators.refine_strength import RefinesStrength
from coterie.estimators.scaling import Scaling
from coterie.estimators.tested_rows import ones_of
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver import lam_grid

PATH_TOL = 1e-2
"""The gap that a fold's path is solved to: see docs/decisions/0007-tolerance-of-folds.md."""

SMALLEST = 1e-4
"""Where the default λ end, relative to the largest useful one."""


def lam_values(problem: Problem, lams: Sequence[float] | int) -> list[float]:
    """The λ to try, descending: those given, or so many below the largest useful one."""
    if isinstance(lams, int | np.integer):
        return lam_grid(problem, int(lams), SMALLEST)
    return sorted(map(float, lams), reverse=True)


def cross_validate_lam(
    problem: Problem,
    lams: Sequence[float] | int,
    folds: Sequence[Fold],
    over: str,
    *,
    repeats: int = 1,
    progress: Told | None = None,
    tol: float = PATH_TOL,
    **options: Any,
) -> LamChoice:
    """Solve a path of λ on each fold and measure the error of the rows that it holds out, in units of the labels.

    Parameters
    ----------
    problem : Problem
        Solved for each of the λ.
    lams : sequence of float, or int
        The values, or how many to spread below the largest useful one.
    folds : sequence of Fold
    progress : callable, optional
        Called as ``progress(fold, lam, gap)`` after each solve, or when a fold comes back from another process.
    """
    values = lam_values(problem, lams)
    paths = solve_folds(problem, values, folds, progress=progress, tol=tol, **options)
    return choice_of(problem, values, paths, over, repeats)


def choice_of(
    problem: Problem, lams: Sequence[float], paths: Sequence[FoldPath], over: str, repeats: int = 1, unit: float = 1.0
) -> LamChoice:
    """What paths of folds say of each λ; errors in these units of the labels."""
    measure = problem.loss.measure
    errors = unit * measure.of_mean(np.array([path.test.errors for path in paths]).T)
    gaps, weights = np.array([path.gaps for path in paths]).T, np.array([path.test.weight for path in paths])
    return LamChoice(np.array(lams), errors, gaps, over, weights, repeats, measure.degree)


class ChoosesLam(RefinesStrength):
    """Choose λ by cross-validation before the fit. Mixed into a networked model; the parameters are its own."""

    lams: Any
    n_lams: int
    cv: Any
    over: Any
    cv_repeats: Any
    rule: Any
    random_state: Any
    n_jobs: int | None
    engine: str
    threads: int | None
    max_iter: int
    verbose: Verbose
    scaling_: Scaling
    fit_intercept: bool
    held_out_: HeldOut
    lam_choice_: LamChoice
    cv_results_: dict[str, Any]

    def _set_choice(
        self,
        lams: Any,
        n_lams: int,
        cv: Any,
        over: str,
        cv_repeats: int,
        rule: str,
        random_state: Any,
        n_jobs: int | None,
    ) -> None:
        self.lams = lams
        self.n_lams = n_lams
        self.cv = cv
        self.over = over
        self.cv_repeats = cv_repeats
        self.rule = rule
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _choose_lam(self, problem: Problem, order: Array | None) -> float:
        if self.rule not in ("best", "one_se"):
            raise ValueError(f'rule must be "best" or "one_se", got {self.rule!r}')
        folds, over = folds_of(problem.data, self.cv, self.over, order, self.random_state, self.cv_repeats)
        tell, values = listener(self.verbose), lam_values(problem, self.n_lams if self.lams is None else self.lams)
        paths = solve_folds(
            problem,
            values,
            folds,
            progress=None if tell is None else steps(tell, len(folds), len(values)),
            ones=ones_of(problem, order is None, self.fit_intercept),
            tol=PATH_TOL,
            n_jobs=self.n_jobs,
            **how_to_solve(self),
        )
        choice = choice_of(problem, values, paths, over, self.cv_repeats, self.scaling_.y_spread)
        self.lam_choice_, self.cv_results_ = choice, choice.results()
        chosen = choice.by_rule(self.rule)
        self.held_out_ = held_out_of(problem, paths, choice, chosen, self.rule, self.scaling_)
        return float(choice.lams[chosen])


def steps(tell: Tell, n_folds: int, n_lams: int, what: str = "") -> Told:
    """Return a callback of `solve_folds` that tells how far it is."""
    done = 0

    def told(fold: int, lam: float, gap: float) -> None:
        nonlocal done
        done += 1
        tell(f"{what}fold {fold + 1}: lam {lam:.3e}, gap {gap:.1e}", min(done / (n_folds * n_lams), 1.0))

    return told
