"""Models that choose λ before they are fitted: by cross-validation, or by a criterion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coterie.estimators.criterion import CRITERIA, CriterionChoice, choose_by_criterion
from coterie.estimators.fold import Fold
from coterie.estimators.fold_paths import FoldPath, Remade, Told, how_to_solve, remade, solve_folds
from coterie.estimators.folds import folds_for
from coterie.estimators.held_out import HeldOut, held_out_of
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.lam_errors import PATH_TOL, choice_of, lam_values, steps
from coterie.estimators.made_graph import Reweights, SecondFit
from coterie.estimators.progress import Verbose, listener
from coterie.estimators.refine_strength import RefinesStrength
from coterie.estimators.scaling import Scaling
from coterie.estimators.space_time import STRENGTHS, SpaceTime
from coterie.estimators.tested_rows import ones_of
from coterie.estimators.variants import CHOSEN, Variant, variants_of, varies
from coterie.problem import Problem
from coterie.problem.arrays import Array, as_floats


class ChoosesLam(RefinesStrength):
    """Choose λ before the fit, by folds or by a criterion. Mixed into a networked model; the parameters are its own."""

    lams: Any
    n_lams: int
    cv: Any
    over: Any
    cv_repeats: Any
    rule: Any
    criterion: str = "cv"
    refit: str | None
    shared: bool
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
    criterion_choice_: CriterionChoice
    time_strengths: Any = None
    space_time_: SpaceTime | None
    time_strength_: float
    _in_time: Callable[[Problem, float], Problem]
    lam_: float
    _folds: tuple[list[Fold], str]
    _reweights: Reweights | None

    @property
    def _strengths(self) -> list[float]:
        """The strengths in time to try; 1 where there is no time."""
        if self.space_time_ is None:
            return [1.0]
        if self.time_strengths is None:
            factors = STRENGTHS if self.space_time_.time.n_edges else (1.0,)  # at one time there is nothing to choose
            return [factor * self.space_time_.alike for factor in factors]
        strengths: list[float] = np.ravel(as_floats(self.time_strengths, "time_strengths")).tolist()
        if not strengths:
            raise ValueError("time_strengths is empty; give at least one number, or None")
        return strengths

    def _choose_lam(self, problem: Problem, order: Array | None, second: SecondFit | None = None) -> float:
        if self.rule not in ("best", "one_se"):
            raise ValueError(f'rule must be "best" or "one_se", got {self.rule!r}')
        first = None if second is None else self.lam_choice_
        for of_the_last_fit in ("lam_choice_", "cv_results_", "held_out_", "criterion_choice_"):
            self.__dict__.pop(of_the_last_fit, None)
        if self.criterion in CRITERIA:
            return self._choose_by_criterion(problem)
        if self.criterion != "cv":
            raise ValueError(f'criterion must be "cv", "aicc" or "bic", got {self.criterion!r}')
        drawn = self.over, order, self.random_state, self.cv_repeats
        each: list[Remade] = []
        if second is None or first is None:
            variants, (folds, over) = variants_of(self, problem), folds_for(self, problem, self.cv, *drawn)
            if self._reweights is not None:
                self._folds = folds, over  # the second fit has the same folds, each with a λ of its own for the first
        else:
            variants, (folds, over) = [Variant(1.0, problem, second.after(self.lam_))], self.__dict__.pop("_folds")
            each = second.in_folds(first, self.rule)
        n_lams, tell = self.n_lams if self.lams is None else len(self.lams), listener(self.verbose)
        told = None if tell is None else steps(tell, len(folds), n_lams * len(variants))
        ones = ones_of(problem, order is None, self.fit_intercept)
        tried = [self._tried(one, folds, over, ones, told, each or one.made) for one in variants]
        choice, by_lam = LamChoice.joined([found for found, _ in tried], [one.value for one in variants], varies(self))
        choice = choice if first is None else choice.beside(first, self.rule)
        self.lam_choice_, self.cv_results_ = choice, choice.results()
        chosen = choice.by_rule(self.rule)
        paths = [FoldPath.joined(of_fold, by_lam) for of_fold in zip(*(paths for _, paths in tried), strict=True)]
        self.held_out_ = held_out_of(problem, paths, choice, chosen, self.rule, self.scaling_, self.shared)
        if choice.varied is not None:
            setattr(self, CHOSEN[varies(self)], choice.varied[chosen].item())
        return float(choice.lams[chosen])

    def _choose_by_criterion(self, problem: Problem) -> float:
        """The λ, and the strength in time, with the smallest criterion."""
        tried, lams = [self._in_time(problem, kappa) for kappa in self._strengths], self.lams
        values = [lam_values(one, self.n_lams if lams is None else lams) for one in tried]
        choices = [choose_by_criterion(self, one, these) for one, these in zip(tried, values, strict=True)]
        best = min(range(len(tried)), key=lambda k: choices[k].values[choices[k].best])
        self.criterion_choice_ = choices[best]
        if self.space_time_ is not None:
            self.time_strength_ = self._strengths[best]
        return choices[best].lam

    def _tried(
        self,
        one: Variant,
        folds: Sequence[Fold],
        over: str,
        ones: Array | None,
        told: Told | None,
        made: Remade | Sequence[Remade] | None,
    ) -> tuple[LamChoice, list[FoldPath]]:
        """A path on each fold, and what that says of each λ."""
        problem = one.problem
        whole = remade(problem, one.made) if self.lams is None else problem
        values = lam_values(whole, self.n_lams if self.lams is None else self.lams)
        options: dict[str, Any] = {"progress": told, "ones": ones, "tol": PATH_TOL, "n_jobs": self.n_jobs, "made": made}
        paths = solve_folds(problem, values, folds, refit=self.refit is not None, **options, **how_to_solve(self))
        return choice_of(problem, values, paths, over, self.cv_repeats, self.scaling_.y_spread), paths
