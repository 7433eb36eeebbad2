"""Does the network help? The same data, folds and loss with and without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.estimators.base import NetworkedModel
from coterie.estimators.comparison import Comparison
from coterie.estimators.cross_validation import cross_validate_lam
from coterie.estimators.fold_paths import mean_error
from coterie.estimators.folds import Over, folds_of, reachable, without
from coterie.estimators.intercepts import mixed_model, node_intercepts
from coterie.problem import LocalDatasets, Problem, largest_useful_lam
from coterie.problem.arrays import Array
from coterie.problem.penalties import SquaredVariation
from coterie.solver import NotConverged, solve
from coterie.solver.pace import expecting

HARDLY = 1e-6  # of the largest useful λ: nodes with a model hardly feel it, those without still get one


def compare_baselines(
    estimator: NetworkedModel,
    X: Any,
    y: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    cv: Any = 5,
    over: Over = "auto",
    random_state: Any = 0,
) -> Comparison:
    """Compare a networked model with what can be had without it, on the same folds.

    - local only: each node alone, with the smallest weights where its rows leave a choice. A node without labels
      of its own takes the median of its neighbours' models.
    - pooled: one model for all nodes.
    - node intercepts: common slopes and an intercept per node, as dummy variables give it.
    - mixed model: the same with the shrunken intercepts of a random-intercept model; see coterie.estimators.intercepts.
      Nodes without labels take the common intercept. A model without intercepts is not compared with these two.
    - networked: the estimator; a CV form chooses λ anew from the training part of each fold.
    - squared variation: the same with smooth differences instead of clusters, λ chosen on the training part.

    Parameters
    ----------
    estimator : NetworkedModel
        The model to compare; it is not changed.
    X : array or frame of shape (rows, features)
        The features of each row.
    y : sequence of shape (rows,)
        Labels; nan (or None) where a row has none.
    groups : sequence of shape (rows,) or str
        The node of each row, or the column of the frame X that says so.
    sample_weight : sequence of shape (rows,), default=None
        A row of weight 2 counts like two rows. None: all count alike.
    cv : int, splitter or iterable of (train, test), default=5
        The number of folds, or what scikit-learn takes for cv.
    over : {"auto", "nodes", "rows"}, default="auto"
        What a fold holds out, as for the CV forms.
    random_state : int or RandomState, default=0
        Draws the folds.

    Returns
    -------
    Comparison
        Errors in the units of y. It says which method has the smallest, in words too.

    Examples
    --------
    >>> import coterie as ct
    >>> from coterie.datasets import stochastic_block_model
    >>> network = stochastic_block_model((20, 20), labelled=40, points=2, p_in=0.3, noise=0.5)
    >>> X, y, nodes = network.data.X, network.data.y, network.data.nodes
    >>> found = ct.compare_baselines(ct.NetworkedLinearRegression(network.graph, lam=0.1), X, y, nodes, cv=2)
    >>> found.methods[found.best]
    'networked'
    """
    model = clone(estimator)
    problem, order = model._problem(X, y, groups, sample_weight)
    folds, held = folds_of(problem.data, cv, over, order, random_state)
    errors, weights = [], []
    with expecting(len(folds)):
        for fold in folds:
            training = without(problem, fold)
            rows = reachable(training, fold)
            known = np.isin(problem.data.nodes[rows], training.M).mean()
            unseen = bool(known < 0.5)  # the fold holds out nodes, not rows
            methods = _methods(model, order, unseen, random_state)
            errors.append([mean_error(problem, rows, weights_of(training)) for weights_of in methods.values()])
            weights.append(problem.data.weights[rows].sum())
    in_units_of_y = np.array(errors).T * model.scaling_.y_spread**2
    return Comparison(tuple(methods), in_units_of_y, held, np.array(weights), model.frame_library_)


def _methods(
    model: NetworkedModel, order: Array, unseen: bool, random_state: Any
) -> dict[str, Callable[[Problem], Array]]:
    """What makes weights of a training problem. `unseen`: they are for nodes that have no labels in it."""
    alone: dict[str, Callable[[Problem], Array]] = {"local only": lambda training: _alone(model, training)}
    levels = {"node intercepts": node_intercepts, "mixed model": mixed_model} if model.fit_intercept else {}
    network = {
        "networked": lambda training: _solved(model, training, model._choose_lam(training, order)),
        "squared variation": lambda training: _smooth(model, training, unseen, random_state),
    }
    return {**alone, "pooled": _pooled, **levels, **network}


def _solved(model: NetworkedModel, training: Problem, lam: float) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        how: dict[str, Any] = {"max_iter": model.max_iter, "engine": model.engine, "threads": model.threads}
        return solve(training.bound.at(lam), max(model.tol, 1e-5), **how).w


def _alone(model: NetworkedModel, training: Problem) -> Array:
    M, n = training.M, training.n_features
    own = training.f.pooled(np.arange(len(M)), len(M))[0]
    points = np.tile(np.eye(n), (len(M), 1)), own.ravel(), np.repeat(M, n)
    held_still = Problem(training.graph, LocalDatasets.from_rows(*points, n_nodes=training.graph.n_nodes))
    w = _solved(model, held_still, HARDLY * largest_useful_lam(held_still) or 1.0)  # 0: each component has one model
    w[M] = own
    return w


def _pooled(training: Problem) -> Array:
    common = training.f.pooled(np.zeros(len(training.M), dtype=np.int64), 1)[0]
    return np.broadcast_to(common, (training.graph.n_nodes, training.n_features))


def _smooth(model: NetworkedModel, training: Problem, unseen: bool, random_state: Any) -> Array:
    smooth = replace(training, penalty=SquaredVariation())
    over: Over = "nodes" if unseen else "rows"
    n_folds = min(5, len(training.M) if unseen else len(training.data.labelled.y))
    folds, _ = folds_of(training.data, n_folds, over, np.arange(0), random_state)
    choice = cross_validate_lam(
        smooth, 20, folds, over, engine=model.engine, threads=model.threads, max_iter=model.max_iter
    )
    return _solved(model, smooth, float(choice.lams[choice.best]))
