"""λ by cross-validation: a warm path for each fold, solved no further than the choice needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.estimators.fold_paths import Told, solve_folds
from coterie.estimators.folds import Fold, folds_of
from coterie.estimators.progress import Tell, Verbose, listener
from coterie.estimators.scaling import Scaling
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver import lam_grid

PATH_TOL = 1e-2
"""The gap that a fold's path is solved to: see docs/decisions/0007-tolerance-of-folds.md."""

SMALLEST = 1e-4
"""Where the default λ end, relative to the largest useful one."""


@dataclass(frozen=True, eq=False)
class LamChoice:
    """The errors of every λ in every fold, and what follows from them.

    Attributes
    ----------
    lams : array of shape (K,), descending
    errors : array of shape (K, folds)
        Mean error of the rows held out: squared error, or log-loss.
    gaps : array of shape (K, folds)
        How far from optimal each fit can have been, relative.
    over : str
        What was held out: "nodes", "rows", or "given" where cv said so.
    weights : array of shape (folds,)
        How many rows each fold held out, by their weights.
    repeats : int
        How many times the folds were drawn; the folds of one draw stand together.
    """

    lams: Array
    errors: Array
    gaps: Array
    over: str
    weights: Array
    repeats: int = 1

    @property
    def mean(self) -> Array:
        """The mean error of each λ over all rows held out."""
        return np.average(self.errors, axis=1, weights=self.weights)

    @property
    def standard_error(self) -> Array:
        """The standard error of that mean."""
        return standard_error(self.errors, self.weights, self.repeats)

    @property
    def best(self) -> int:
        """Which λ has the smallest mean error."""
        return int(np.argmin(self.mean))

    @property
    def one_se(self) -> int:
        """The largest λ whose mean error is within one standard error of the smallest."""
        return int(np.argmax(self.mean <= self.mean[self.best] + self.standard_error[self.best]))

    def results(self) -> dict[str, Array]:
        """The same as a dictionary of columns, which makes a frame."""
        columns = {"lam": self.lams, "mean_error": self.mean, "standard_error": self.standard_error}
        folds = {f"fold{k}_error": self.errors[:, k] for k in range(self.errors.shape[1])}
        return {**columns, **folds, "largest_gap": self.gaps.max(axis=1)}

    def __repr__(self) -> str:
        tried = f"{len(self.lams)} lams, {self.errors.shape[1]} folds over {self.over}"
        error = f"error {self.mean[self.best]:.4g} ± {self.standard_error[self.best]:.2g}"
        return f"LamChoice({tried}; best {self.lams[self.best]:.4g}, {error})"


def standard_error(errors: Array, weights: Array, repeats: int = 1) -> Array:
    """The standard error of the weighted mean over the folds, which are the columns; 0 where there is one fold only.

    With shares s_k that add up to 1 it is √(Σ_k s_k² (e_k − ē)² K/(K − 1)): with equal ones, the usual std/√K. Repeated
    draws see the same rows, so that it does not shrink with their number: it is the root mean square of theirs.
    """
    folds = errors.shape[1] // repeats
    if folds < 2:
        return np.zeros(len(errors))
    e, s = errors.reshape(len(errors), repeats, folds), weights.reshape(repeats, folds)
    s = s / s.sum(axis=1, keepdims=True)
    off = s * (e - (s * e).sum(axis=2, keepdims=True))
    return np.sqrt((off**2).sum(axis=2).mean(axis=1) * folds / (folds - 1))


def cross_validate_lam(
    problem: Problem,
    lams: Sequence[float] | int,
    folds: Sequence[Fold],
    over: str,
    *,
    repeats: int = 1,
    progress: Told | None = None,
    tol: float = PATH_TOL,
    n_jobs: int | None = None,
    **options: Any,
) -> LamChoice:
    """Solve a path of λ on each fold and measure the error of the rows that it holds out.

    Every fold begins anew: what comes out does not depend on how many are solved at a time.

    Parameters
    ----------
    problem : Problem
        Solved for each of the λ.
    lams : sequence of float, or int
        The values, or how many to spread below the largest useful one.
    folds : sequence of Fold
    progress : callable, optional
        Called as ``progress(fold, lam, gap)`` after each solve, or when a fold comes back from another process.
    n_jobs : int, optional
        How many processes solve folds at a time, as scikit-learn counts them.
    """
    if isinstance(lams, int | np.integer):
        values = lam_grid(problem, int(lams), SMALLEST)
    else:
        values = sorted(map(float, lams), reverse=True)
    paths = solve_folds(problem, values, folds, progress=progress, n_jobs=n_jobs, tol=tol, **options)
    errors, gaps, weights = (np.array(column) for column in zip(*paths, strict=True))
    return LamChoice(np.array(values), errors.T, gaps.T, over, weights, repeats)


class ChoosesLam:
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
        tell = listener(self.verbose)
        choice = cross_validate_lam(
            problem,
            self.n_lams if self.lams is None else self.lams,
            folds,
            over,
            repeats=self.cv_repeats,
            progress=None
            if tell is None
            else _steps(tell, len(folds), self.n_lams if self.lams is None else len(self.lams)),
            engine=self.engine,
            threads=self.threads,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        choice = replace(choice, errors=choice.errors * self.scaling_.y_spread**2)  # in the units of y
        self.lam_choice_, self.cv_results_ = choice, choice.results()
        return float(choice.lams[choice.best if self.rule == "best" else choice.one_se])


def _steps(tell: Tell, n_folds: int, n_lams: int) -> Told:
    done = 0

    def told(fold: int, lam: float, gap: float) -> None:
        nonlocal done
        done += 1
        tell(f"fold {fold + 1}: lam {lam:.3e}, gap {gap:.1e}", min(done / (n_folds * n_lams), 1.0))

    return told
