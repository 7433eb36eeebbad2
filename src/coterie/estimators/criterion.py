"""λ by AICc or BIC: one path of λ on all rows, and no folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.estimators.fold_paths import how_to_solve
from coterie.estimators.information import Information, likelihood_of
from coterie.estimators.progress import listener
from coterie.estimators.refit import refitted
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.solver import NotConverged, Solution, solve_path

CRITERIA = ("aicc", "bic")
CRITERION_TOL = 1e-5
"""The gap of each λ. N log RSS changes by about N times it: what is chosen is that of 1e-7 (docs/decisions/0032)."""


@dataclass(frozen=True, eq=False)
class CriterionChoice:
    """What AICc and BIC say of each λ.

    Attributes
    ----------
    criterion : str
        The one that chooses: "aicc" or "bic".
    lams : array of shape (K,), descending
    effective_parameters, deviance, aicc, bic : arrays of shape (K,)
        As the attributes of a fitted model; deviance is −2 log likelihood.
    gaps : array of shape (K,)
        How far from optimal each fit can be, relative.
    """

    criterion: str
    lams: Array
    effective_parameters: Array
    deviance: Array
    aicc: Array
    bic: Array
    gaps: Array

    @property
    def values(self) -> Array:
        """The criterion that chooses."""
        return self.aicc if self.criterion == "aicc" else self.bic

    @property
    def best(self) -> int:
        """Which λ has the smallest value; the largest such λ."""
        return int(np.argmin(self.values))

    @property
    def lam(self) -> float:
        """That λ."""
        return float(self.lams[self.best])

    def results(self) -> dict[str, Array]:
        """The same as a dictionary of columns, which makes a frame."""
        names = ("effective_parameters", "deviance", "aicc", "bic")
        return {"lam": self.lams, **{name: getattr(self, name) for name in names}, "gap": self.gaps}

    def __repr__(self) -> str:
        best = f"{self.lams[self.best]:.4g}, {self.criterion} {self.values[self.best]:.6g}"
        return f"CriterionChoice({len(self.lams)} lams; best {best})"


def choose_by_criterion(model: Any, problem: Problem, lams: list[float]) -> CriterionChoice:
    """Solve for every λ, and compare.

    Raises
    ------
    ValueError
        If the loss has no likelihood, or every λ leaves as many parameters as rows.
    """
    if not likelihood_of(model, problem).known:
        raise ValueError(
            f'criterion="{model.criterion}" needs a likelihood, which {type(problem.loss).__name__} with '
            f'{type(problem.penalty).__name__} does not have; use criterion="cv"'
        )
    choice = _compared(model, problem, lams, model.criterion)
    if np.isposinf(choice.values).all():
        raise ValueError(f'criterion="{model.criterion}" {_too_many(model, problem, choice)}; use criterion="cv"')
    return choice


def criteria_beside_folds(model: Any) -> CriterionChoice:
    """AICc and BIC of the λ that folds have compared: one more path, on all rows, beside what else folds chose.

    Raises
    ------
    ValueError
        If the model was given its λ, has no likelihood or no rows, learns its graph, or has more parameters than rows
        at every λ.
    """
    what, kind = "AICc and BIC of every λ", type(model).__name__
    if not hasattr(model, "lam_choice_"):
        raise ValueError(f"{what} stand beside the errors of folds, but {kind} was given its λ; leave out criteria=")
    if not hasattr(model, "problem_"):
        raise ValueError(f"{what} need the training rows, which a model from a file does not have; fit it again")
    if model.made_ is not None:
        raise ValueError(f"{what} are not known where labels have made the graph, at one λ; leave out criteria=")
    problem = model.problem_
    if not likelihood_of(model, problem).known:
        raise ValueError(
            f"{what} need a likelihood, which {type(problem.loss).__name__} with {type(problem.penalty).__name__} does "
            "not have; leave out criteria="
        )
    choice = _compared(model, problem, model.lam_choice_.beside_chosen(model.rule).lams.tolist(), "aicc")
    if np.isposinf(choice.values).all():
        raise ValueError(f"AICc {_too_many(model, problem, choice)}; leave out criteria=")
    return choice


def _too_many(model: Any, problem: Problem, choice: CriterionChoice) -> str:
    """Why no λ has a value."""
    rows, least = likelihood_of(model, problem).n_rows, choice.effective_parameters.min()
    return (
        f"compares models with fewer parameters than rows, but every λ has more: here {rows:g} rows and {least:.1f} "
        "parameters"
    )


def _compared(model: Any, problem: Problem, lams: list[float], criterion: str) -> CriterionChoice:
    """A path of λ on all rows, and what is said of each."""
    tell, said = listener(model.verbose), 0

    def told(lam: float, solution: Solution) -> None:
        nonlocal said
        said += 1
        if tell is not None:
            tell(f"lam {lam:.3e}, gap {solution.gap:.1e}", said / len(lams))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)  # the gaps are reported
        path = solve_path(problem, lams, tol=CRITERION_TOL, progress=told, **how_to_solve(model))
    if len(path) < len(lams):
        raise KeyboardInterrupt
    found = [information_of(model, problem)(lam, solution) for lam, solution in path]
    p, deviance, aicc, bic = np.array([(one.effective_parameters, one.deviance, one.aicc, one.bic) for one in found]).T
    gaps = np.array([solution.gap for solution in path.solutions])
    return CriterionChoice(criterion, np.array(lams), p, deviance, aicc, bic, gaps)


def information_of(model: Any, problem: Problem) -> Callable[[float, Solution], Information]:
    """What says how many parameters a solution at some λ has used, and at which likelihood."""
    likelihood = likelihood_of(model, problem)
    if model.refit is None:
        return lambda lam, solution: likelihood.of(lam, solution.w)
    return lambda lam, solution: likelihood.of(lam, refitted(problem.bound.at(lam), solution.w), solution.w)
