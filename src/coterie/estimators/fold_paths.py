"""A path of λ for each fold, one after the other or several at a time, and what is predicted of what it holds out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs  # noqa: TID251 (processes, no files)
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from coterie.estimators.fold import Fold
from coterie.estimators.folds import as_it_was, reachable, without
from coterie.estimators.new_nodes import warm_start
from coterie.estimators.refit import refitted
from coterie.estimators.space_time import carried
from coterie.estimators.tested_rows import TestedRows
from coterie.kernels.team import cores
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import with_offset
from coterie.solver import NotConverged, Solution, solve_path
from coterie.solver.pace import expecting

Told = Callable[[int, float, float], None]
"""Called with the number of a fold, λ and the gap that it was solved to."""


def how_to_solve(model: Any) -> dict[str, Any]:
    """Return the options of `solve` that a model has for every fit, whatever the λ and the gap asked for."""
    return {"engine": model.engine, "threads": model.threads, "max_iter": model.max_iter}


Remade = Callable[[Problem], Problem]


def remade(problem: Problem, made: Remade | None) -> Problem:
    """What is made of a problem, without warnings of graphs that are learnt: a fit says them of its last graph."""
    if made is None:
        return problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return made(problem)


class FoldPath(NamedTuple):
    """What a fold says of each λ: what is predicted of the rows held out, and its gap."""

    test: TestedRows
    gaps: list[float]

    @classmethod
    def joined(cls, paths: Sequence[Self], order: NDArray[np.int64]) -> Self:
        """What a fold says of the λ of several paths, in this order."""
        gaps = np.concatenate([path.gaps for path in paths])[order]
        return cls(TestedRows.joined([path.test for path in paths], order), gaps.tolist())


def solve_folds(
    problem: Problem,
    lams: Sequence[float],
    folds: Sequence[Fold],
    *,
    progress: Told | None = None,
    ones: Array | None = None,
    n_jobs: int | None = None,
    refit: bool = False,
    made: Remade | Sequence[Remade] | None = None,
    **options: Any,
) -> list[FoldPath]:
    """Solve all folds. Each begins anew: what comes out does not depend on how many are solved at a time.

    Processes share the cores: joblib tells each how many threads it may use, and `threads` asks for no more than that.
    `ones` is what a column of ones is in the rows, as for :class:`TestedRows`. `refit`: what is tested are weights that
    are refitted on their clusters. `made` makes another problem of the training part of a fold, such as one with a
    graph that is learnt from it; a sequence has one for each fold.
    """
    jobs = min(effective_n_jobs(n_jobs), len(folds))
    if jobs > 1 and (threads := options.get("threads")) is not None:
        options["threads"] = min(threads, max(cores() // jobs, 1))
    one = partial(_solve_fold, problem, lams, ones, refit, options, -(-len(folds) // jobs))
    pairs = list(zip(made if isinstance(made, Sequence) else [made] * len(folds), folds, strict=True))
    if jobs == 1:
        return [one(*pair, None if progress is None else partial(progress, k)) for k, pair in enumerate(pairs)]
    paths: list[FoldPath] = []
    for path in Parallel(jobs, backend="loky", return_as="generator")(delayed(one)(*pair) for pair in pairs):
        for lam, gap in zip(reversed(lams), reversed(path.gaps), strict=True) if progress else ():
            progress(len(paths), lam, gap)  # type: ignore[misc]
        paths.append(path)
    return paths


def _solve_fold(
    problem: Problem,
    lams: Sequence[float],
    ones: Array | None,
    refit: bool,
    options: dict[str, Any],
    expected: int,
    made: Remade | None,
    fold: Fold,
    progress: Callable[[float, float], None] | None = None,
) -> FoldPath:
    """Solve a fold, one of so many that this process is expected to solve."""

    def told(lam: float, solution: Solution) -> None:
        if progress is not None:
            progress(lam, solution.gap)

    known, rows = training_part(problem, fold, made)
    if (start := options.get("start")) is not None:
        options = options | {"start": warm_start(start, known.graph)}
    with warnings.catch_warnings(), expecting(expected):
        warnings.simplefilter("ignore", NotConverged)  # the gaps are reported
        path = solve_path(known, lams, progress=told, **options)
    if len(path) < len(lams):
        raise KeyboardInterrupt
    weights = [refitted(known.bound.at(lam), one.w) if refit else one.w for lam, one in path]
    test = TestedRows.of(problem, rows, [carried(w, problem.graph) for w in weights], ones)
    return FoldPath(test, [solution.gap for solution in path.solutions])


def training_part(problem: Problem, fold: Fold, made: Remade | None) -> tuple[Problem, NDArray[np.bool_]]:
    """The problem that a fold solves, and the rows held out that its labels reach."""
    training = without(problem, fold)
    known = remade(as_it_was(training, fold), made)
    return known, reachable(training if fold.known is not None else known, fold)


def mean_error(problem: Problem, rows: NDArray[np.bool_], w: Array) -> float:
    """Mean error of these rows of the data under the weights of their nodes."""
    data = problem.data
    offset = None if data.offset is None else data.offset[rows]
    X, own = with_offset(data.X[rows], w[data.nodes[rows]], offset)
    return float(np.average(problem.loss.error(X, data.y[rows], own), weights=data.weights[rows]))
