"""The errors of λ on folds: a warm path for each fold, solved no further than the choice needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.estimators.fold import Fold
from coterie.estimators.fold_paths import FoldPath, Told, solve_folds
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.progress import Tell
from coterie.estimators.tested_rows import RowsOfLoss
from coterie.problem import Problem
from coterie.solver import lam_grid

PATH_TOL = 1e-2
"""The gap that a fold's path is solved to: see docs/decisions/0007-tolerance-of-folds.md."""

SMALLEST = 1e-4
"""Where the default λ end, relative to the largest useful one."""


def lam_values(problem: Problem, lams: Sequence[float] | int) -> list[float]:
    """The λ to try, descending: those given, or so many below the largest useful one."""
    if isinstance(lams, int | np.integer):
        return lam_grid(problem, int(lams), SMALLEST)
    if not len(lams):
        raise ValueError("lams is empty; give the values of λ to try, or None")
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
    problem: Problem | RowsOfLoss,
    lams: Sequence[float],
    paths: Sequence[FoldPath],
    over: str,
    repeats: int = 1,
    unit: float = 1.0,
) -> LamChoice:
    """What paths of folds say of each λ; errors in these units of the labels."""
    measure = problem.loss.measure
    errors = unit * measure.of_mean(np.array([path.test.errors for path in paths]).T)
    gaps, weights = np.array([path.gaps for path in paths]).T, np.array([path.test.weight for path in paths])
    return LamChoice(np.array(lams), errors, gaps, over, weights, repeats, measure.degree)


def steps(tell: Tell, n_folds: int, n_lams: int, what: str = "") -> Told:
    """Return a callback of `solve_folds` that tells how far it is."""
    done = 0

    def told(fold: int, lam: float, gap: float) -> None:
        nonlocal done
        done += 1
        tell(f"{what}fold {fold + 1}: lam {lam:.3e}, gap {gap:.1e}", min(done / (n_folds * n_lams), 1.0))

    return told
