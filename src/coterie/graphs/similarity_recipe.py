"""A graph that a model makes of the rows it learns from, so that no fold's graph has seen what the fold holds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.graphs.knn import Weight
from coterie.graphs.similarity import SQUARED, as_rows, check_threshold, similar_nodes
from coterie.problem import EmpiricalGraph, Problem
from coterie.problem.arrays import as_whole
from coterie.problem.losses import Loss

PLAIN: dict[str, Any] = {"l1": 0.0, "lower": None, "upper": None, "positive": False, "reduction": "mean"}


@dataclass(frozen=True)
class SimilarityGraph:
    """The :func:`similarity_graph` of the rows that a model learns from: give it to an estimator as its graph.

    The nodes are the different groups of the rows. In cross-validation every fold makes the graph again from its
    training rows, and of several k or thresholds, the best is chosen, together with λ. What is compared
    are models with the loss of the estimator, without its bounds and its ℓ1 norm, or with squared error where that
    is not smooth (a Lasso, quantiles).

    Parameters
    ----------
    k : int or sequence of int, default=5
        How many neighbours each node looks for; several for the estimators that end in CV, which choose.
    weight : {"inverse", "gaussian"} or callable, default="inverse"
        As in :func:`knn_graph`.
    ridge : float, default=0.1
        As in :func:`similarity_graph`.
    by : {"models", "gradients", "means"}, default="models"
        As in :func:`similarity_graph`.
    threshold : float or sequence of float, default=None
        In place of k, as in :func:`similarity_graph`: how near nodes must be to be joined, in median distances of two
        of them; several as for k.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> sites = np.repeat(list("abcdefgh"), 5)
    >>> y = np.where(sites < "e", 1.0, -1.0) * X[:, 0]
    >>> graph = ct.SimilarityGraph(k=[2, 3])
    >>> model = ct.NetworkedLinearRegressionCV(graph, n_lams=4, cv=2, random_state=0).fit(X, y, groups=sites)
    >>> model.n_neighbours_ in (2, 3), model.graph_.n_nodes
    (True, 8)
    """

    k: int | Sequence[int] = 5
    weight: Weight = "inverse"
    ridge: float = 0.1
    by: str = "models"
    threshold: float | Sequence[float] | None = None


def choices(recipe: SimilarityGraph) -> list[float]:
    """The k, or the thresholds, to choose from."""
    by_k = recipe.threshold is None
    name, value = ("k", recipe.k) if by_k else ("threshold", recipe.threshold)
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    given: list[Any] = list(value) if several else [value]  # type: ignore[arg-type]
    if not given:
        raise ValueError(f"{name} is an empty sequence; give at least one number")
    return [as_whole(k, "k") if by_k else check_threshold(k) for k in given]


def nodes_of(groups: Any) -> EmpiricalGraph:
    """The nodes of these rows, which nothing joins yet."""
    ids = list(dict.fromkeys(as_rows(groups)))
    return EmpiricalGraph.from_edges([], n_nodes=len(ids), ids=ids)


def joined(recipe: SimilarityGraph, problem: Problem, value: float) -> Problem:
    """The same problem with the graph that its rows make, for one of the choices."""
    by_k, ids = recipe.threshold is None, problem.graph.ids
    how = int(value) if by_k else 1, recipe.weight, _comparing(problem), recipe.ridge, recipe.by
    return replace(problem, graph=similar_nodes(problem.data, ids, *how, None if by_k else value))


def _comparing(problem: Problem) -> Loss:
    """The loss of the problem without bounds and ℓ1 norm, by which a node has the mean of its rows.

    Squared error where that is not smooth.
    """
    loss: Any = problem.loss
    plain = {name: value for name, value in PLAIN.items() if hasattr(loss, name)}
    loss = replace(loss, **plain) if plain else loss
    return loss if loss.bind(problem.data.labelled).smooth else SQUARED
