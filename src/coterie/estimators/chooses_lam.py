"""The part of the CV forms that is not in their plain forms."""

from __future__ import annotations

from typing import Any

from coterie.estimators.cross_validation import LamChoice, cross_validate_lam, folds_of
from coterie.problem import Problem
from coterie.problem.arrays import Array


class ChoosesLam:
    """Choose λ by cross-validation before the fit. Mixed into a networked model; the parameters are its own."""

    lams: Any
    n_lams: int
    cv: Any
    over: Any
    rule: Any
    random_state: Any
    engine: str
    max_iter: int
    verbose: int
    lam_choice_: LamChoice
    cv_results_: dict[str, Any]

    def _choose_lam(self, problem: Problem, order: Array) -> float:
        if self.rule not in ("best", "one_se"):
            raise ValueError(f'rule must be "best" or "one_se", got {self.rule!r}')
        folds, over = folds_of(problem.data, self.cv, self.over, order, self.random_state)
        choice = cross_validate_lam(
            problem,
            self.n_lams if self.lams is None else self.lams,
            folds,
            over,
            progress=self._print if self.verbose else None,
            engine=self.engine,
            max_iter=self.max_iter,
        )
        self.lam_choice_, self.cv_results_ = choice, choice.results()
        return float(choice.lams[choice.best if self.rule == "best" else choice.one_se])

    def _print(self, fold: int, lam: float, solution: Any) -> None:
        print(f"fold {fold + 1}: lam {lam:.3e}, gap {solution.gap:.1e}")
