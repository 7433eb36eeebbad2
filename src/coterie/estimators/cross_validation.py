"""λ by cross-validation: a warm path for each fold, solved no further than the choice needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.folds import Fold, folds_of, reachable, without
from coterie.estimators.held_out import HeldOut, Tally, ones_of
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.progress import Tell, Verbose, listener
from coterie.estimators.scaling import Scaling
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver import NotConverged, Solution, lam_grid, solve_path
from coterie.solver.pace import expecting

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
    progress: Callable[[int, float, Solution], None] | None = None,
    tally: Tally | None = None,
    tol: float = PATH_TOL,
    start: Solution | None = None,
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
        Called as ``progress(fold, lam, solution)`` after each solve.
    tally : Tally, optional
        Gets what is predicted for these rows.
    start : Solution, optional
        Where the first path begins.
    """
    values, degree = lam_values(problem, lams), problem.loss.measure.degree
    errors, gaps = np.empty((2, len(values), len(folds)))
    weights = np.empty(len(folds))
    tally = Tally(problem, len(values), len(folds), None) if tally is None else tally
    for k, fold in enumerate(folds):
        training = without(problem, fold)
        rows = reachable(training, fold)
        with warnings.catch_warnings(), expecting(len(folds)):
            warnings.simplefilter("ignore", NotConverged)  # the gaps are reported
            told = progress and partial(progress, k)
            path = solve_path(training, values, tol=tol, start=start, progress=told, **options)
        if len(path) < len(values):
            raise KeyboardInterrupt
        start = path.solutions[0]  # at the largest λ folds differ little, and the next path starts where this one did
        errors[:, k] = tally.add(k, rows, [solution.w for solution in path.solutions])
        gaps[:, k] = [solution.gap for solution in path.solutions]
        weights[k] = problem.data.weights[rows].sum()
    return LamChoice(np.array(values), errors ** (1 / degree), gaps, over, weights, repeats, degree)


def mean_error(problem: Problem, rows: NDArray[np.bool_], w: Array) -> float:
    """Mean error of these rows of the data under the weights of their nodes."""
    data = problem.data
    error = problem.loss.error(data.X[rows], data.y[rows], w[data.nodes[rows]])
    return float(np.average(error, weights=data.weights[rows]))


class ChoosesLam:
    """Choose λ by cross-validation before the fit. Mixed into a networked model; the parameters are its own."""

    lams: Any
    n_lams: int
    cv: Any
    over: Any
    cv_repeats: Any
    rule: Any
    random_state: Any
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
        self, lams: Any, n_lams: int, cv: Any, over: str, cv_repeats: int, rule: str, random_state: Any
    ) -> None:
        self.lams = lams
        self.n_lams = n_lams
        self.cv = cv
        self.over = over
        self.cv_repeats = cv_repeats
        self.rule = rule
        self.random_state = random_state

    def _choose_lam(self, problem: Problem, order: Array | None) -> float:
        if self.rule not in ("best", "one_se"):
            raise ValueError(f'rule must be "best" or "one_se", got {self.rule!r}')
        folds, over = folds_of(problem.data, self.cv, self.over, order, self.random_state, self.cv_repeats)
        tell, values = listener(self.verbose), lam_values(problem, self.n_lams if self.lams is None else self.lams)
        tally = Tally(problem, len(values), len(folds), ones_of(problem, order is None, self.fit_intercept))
        choice = cross_validate_lam(
            problem,
            values,
            folds,
            over,
            repeats=self.cv_repeats,
            progress=None if tell is None else steps(tell, len(folds), len(values)),
            tally=tally,
            engine=self.engine,
            threads=self.threads,
            max_iter=self.max_iter,
        )
        choice = replace(choice, errors=choice.errors * self.scaling_.y_spread)  # in the units of y
        self.lam_choice_, self.cv_results_ = choice, choice.results()
        chosen = choice.by_rule(self.rule)
        self.held_out_ = tally.held_out(choice, chosen, self.rule, self.scaling_)
        return float(choice.lams[chosen])


def steps(tell: Tell, n_folds: int, n_lams: int, what: str = "") -> Callable[[int, float, Solution], None]:
    """Return a callback of `cross_validate_lam` that tells how far it is."""
    done = 0

    def told(fold: int, lam: float, solution: Solution) -> None:
        nonlocal done
        done += 1
        tell(f"{what}fold {fold + 1}: lam {lam:.3e}, gap {solution.gap:.1e}", min(done / (n_folds * n_lams), 1.0))

    return told
