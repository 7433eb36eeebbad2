"""What is chosen together with λ: a strength in time, or the neighbours in a graph that rows make."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from coterie.estimators.fold_paths import Remade
from coterie.graphs.similarity_recipe import SimilarityGraph, choices, joined
from coterie.problem import Problem

CHOSEN = {"time_strengths": "time_strength_", "neighbours": "n_neighbours_", "thresholds": "threshold_"}
"""Where a model keeps what was chosen of each."""

OF_GRAPHS = CHOSEN["neighbours"], CHOSEN["thresholds"]
"""Those of graphs that rows make."""


class Variant(NamedTuple):
    """One of the problems to choose from, by its strength in time, number of neighbours or threshold.

    `made` makes the problem that is solved of this one, or of what a fold knows of it; None: it is solved as it is.
    """

    value: float
    problem: Problem
    made: Remade | None


def recipe_of(model: Any) -> SimilarityGraph | None:
    """How the model makes its graph of the rows; None: the graph is given."""
    return model.graph if isinstance(model.graph, SimilarityGraph) else None


def variants_of(model: Any, problem: Problem) -> list[Variant]:
    """The problems that a model chooses from; for most there is one."""
    recipe = recipe_of(model)
    if recipe is None:
        return [Variant(kappa, model._in_time(problem, kappa), None) for kappa in model._strengths]
    return [Variant(value, problem, partial(joined, recipe, value=value)) for value in choices(recipe)]


def varies(model: Any) -> str:
    """What differs between them, as an attribute of :class:`LamChoice`."""
    recipe = recipe_of(model)
    if recipe is None:
        return "time_strengths"
    return "neighbours" if recipe.threshold is None else "thresholds"


def one_after_the_other(first: Remade | None, second: Remade) -> Remade:
    """What makes a problem of what another makes."""
    return second if first is None else partial(_both, first, second)


def _both(first: Remade, second: Remade, problem: Problem) -> Problem:
    return second(first(problem))
