"""The part of the CV forms that is not in their plain forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coterie.estimators.cross_validation import LamChoice, cross_validate_lam
from coterie.estimators.folds import folds_of
from coterie.estimators.progress import Tell, Verbose, listener
from coterie.estimators.scaling import Scaling
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver import Solution


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
    lam_choice_: LamChoice
    cv_results_: dict[str, Any]

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
        )
        choice = replace(choice, errors=choice.errors * self.scaling_.y_spread**2)  # in the units of y
        self.lam_choice_, self.cv_results_ = choice, choice.results()
        return float(choice.lams[choice.best if self.rule == "best" else choice.one_se])


def _steps(tell: Tell, n_folds: int, n_lams: int) -> Callable[[int, float, Solution], None]:
    done = 0

    def told(fold: int, lam: float, solution: Solution) -> None:
        nonlocal done
        done += 1
        tell(f"fold {fold + 1}: lam {lam:.3e}, gap {solution.gap:.1e}", min(done / (n_folds * n_lams), 1.0))

    return told
