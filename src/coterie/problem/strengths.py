"""A strength per column: what users give, and problems that are the same in other words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from coterie.kernels import TIED
from coterie.problem.arrays import Array, as_floats
from coterie.problem.bound_problem import BoundProblem
from coterie.problem.penalties.by_column import TotalVariationByColumn

if TYPE_CHECKING:
    from coterie.problem.problem import Problem

WEAKEST, STRONGEST = 1e-9, 1e9
RULE = f"a strength is 0, a number from {WEAKEST:g} to {STRONGEST:g}, or inf"


def is_strength(value: float) -> bool:
    """Whether a number is one: what is closer to 0 or ∞ than that is meant to be 0 or ∞."""
    return value in (0.0, np.inf) or WEAKEST <= value <= STRONGEST


def as_strengths(strength: ArrayLike, n: int) -> Array:
    """Strengths of n columns as floats; refuse what is none, and name it."""
    values = as_floats(strength, "strength")
    if values.shape != (n,):
        raise ValueError(f"strength must have one number for each of the {n} columns, got shape {values.shape}")
    for k, value in enumerate(values.tolist()):
        if not is_strength(value):
            raise ValueError(f"strength[{k}] is {value:g}; {RULE}")
    return values


def for_kernels(problem: BoundProblem) -> Array:
    """The strengths of columns as compiled passes take them that do not know n."""
    s = problem.strength
    return np.ones(problem.n_features) if s is None else np.where(np.isinf(s), TIED, s)


def in_plain_terms(problem: BoundProblem) -> BoundProblem:
    """The same problem without strengths where no column is coupled, and with λ = 1 where tied ones alone are.

    Where no column is held, all penalties are the same, and iterations of ℓ1 variation are the fewest.
    At λ = 0 tied columns stay tied, and all others are free.
    """
    penalty = problem.by_column
    if penalty is None:
        return problem
    if problem.lam > 0 and not penalty.free.all():
        none_is_held = not penalty.held.any()
        return replace(problem, penalty=TotalVariationByColumn(penalty.strength)) if none_is_held else problem
    if not penalty.tied.any():
        return replace(problem, lam=0.0, penalty=penalty.plain)
    return replace(problem, lam=1.0, penalty=replace(penalty, strength=tuple(np.where(penalty.tied, np.inf, 0.0))))


def with_means_where_undetermined(problem: BoundProblem, w: Array) -> Array:
    """Weights with means where nothing counts them: in free columns, nodes without labels have those of the nodes with
    labels in their component, or zero where there are none.
    """
    penalty, component, M = problem.by_column, problem.graph.components, problem.M
    if penalty is None or not penalty.free.any():
        return w
    labelled, out = np.bincount(component[M], minlength=int(component.max()) + 1), w.copy()
    unlabelled = np.setdiff1d(np.arange(len(w)), M)
    for k in np.flatnonzero(penalty.free):
        mean = np.bincount(component[M], w[M, k], len(labelled)) / np.maximum(labelled, 1)
        out[unlabelled, k] = mean[component[unlabelled]]
    return np.where(labelled[component, None] > 0, problem.inside(out), out)  # means leave bounds by rounding


def with_tied_means(problem: BoundProblem, w: Array) -> Array:
    """Weights with the mean of each component in tied columns."""
    penalty, component = problem.by_column, problem.graph.components
    if penalty is None or not penalty.tied.any():
        return w
    size, out = np.bincount(component), w.copy()
    for k in np.flatnonzero(penalty.tied):
        out[:, k] = (np.bincount(component, w[:, k]) / size)[component]
    return out


def refuse_strengths(problem: Problem | BoundProblem) -> None:
    """Refuse strengths where edges have one strength for all columns: in a federation."""
    if problem.strength is not None:
        raise ValueError("a federation has one strength for all columns: leave strength out")
