"""Is it any good? A fitted model on labels that it has not seen, beside what can be had without the network."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from coterie.estimators.base import NetworkedModel
from coterie.estimators.baselines import compare
from coterie.estimators.comparison import Comparison
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.fold import Fold, Over
from coterie.estimators.fold_paths import how_to_solve, solve_folds, training_part
from coterie.estimators.folds import folds_for
from coterie.estimators.held_out import held_out_of
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.lam_errors import PATH_TOL, choice_of
from coterie.estimators.new_nodes import warm_start
from coterie.estimators.progress import listener
from coterie.estimators.tested_rows import ones_of
from coterie.solver import NotConverged, solve
from coterie.solver.pace import is_long, seconds_in_numpy

ALWAYS = 1.0  # seconds for labels held out, estimated, that nobody minds, however short the fit


def assess(
    model: NetworkedModel,
    *,
    cv: int = 5,
    over: Over = "auto",
    random_state: Any = 0,
    baselines: bool | None = None,
    condensed: bool = False,
) -> Comparison | None:
    """Set `held_out_` of a model that has just been fitted, and compare it with baselines.

    A model that chose λ has its held-out errors from that; with λ given, folds are held out here, as many as take no
    longer than the fit.

    Parameters
    ----------
    model : NetworkedModel
        With `problem_`. cv, over and random_state say what is held out where λ was given.
    baselines : bool, default=None
        None: where they cost less than the fit. After a choice of λ all do; where λ was given, of a small problem all
        do that have no λ to choose.
    condensed : bool
        Whether it was fitted to moments, not to rows.

    Returns
    -------
    Comparison
        None without baselines.

    Raises
    ------
    ValueError
        If labels cannot be held out.
    """
    problem = model.first_problem_  # whose graph has seen no labels
    order = None if condensed else np.arange(len(problem.data.y))
    if isinstance(model, ChoosesLam) and hasattr(model, "lam_choice_"):
        drawn = model.over, order, model.random_state, model.cv_repeats
        folds, held = folds_for(model, problem, model.cv, *drawn)
        known = model.lam_choice_
    else:
        folds, held = folds_for(model, problem, cv, over, order, random_state)
        known = _evaluate(model, folds, held, condensed, all_folds=bool(baselines))
    cheap = isinstance(model, ChoosesLam) or not is_long(problem.bound)
    if not (cheap if baselines is None else baselines):
        return None
    tuned = bool(baselines) or isinstance(model, ChoosesLam)
    return compare(model, problem, folds[: len(known.weights)], held, known=known, tuned=tuned, condensed=condensed)


def _evaluate(model: NetworkedModel, folds: list[Fold], over: str, condensed: bool, all_folds: bool) -> LamChoice:
    """The errors of the model's λ in the folds, or in the first of them."""
    problem, tell = model.first_problem_, listener(model.verbose)
    how = how_to_solve(model)
    if tell is not None:
        tell("held-out labels", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        known, _ = training_part(problem, folds[0], model.made_)
        begin = warm_start(model.solution_, known.graph)
        trial = solve(known.bound.at(model.lam_), PATH_TOL, start=begin, **how)
    fit = max(seconds_in_numpy(problem.bound, model.solution_.n_iter), ALWAYS)
    count = int(np.clip(fit / seconds_in_numpy(problem.bound, trial.n_iter), 1, len(folds)))
    folds = folds if all_folds else folds[:count]
    ones = ones_of(problem, condensed, model.fit_intercept)
    options: dict[str, Any] = {"ones": ones, "refit": model.refit is not None, "made": model.made_, "tol": PATH_TOL}
    paths = solve_folds(problem, [model.lam_], folds, start=trial, **options, **how)
    found = choice_of(problem, [model.lam_], paths, over, unit=model.scaling_.y_spread)
    model.held_out_ = held_out_of(problem, paths, found, 0, "best", model.scaling_, model.shared)
    return found
