"""Does the network help? The same data, folds and loss with and without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie.estimators.base import NetworkedModel
from coterie.estimators.cross_validation import (
    Over,
    cross_validate_lam,
    folds_of,
    mean_error,
    reachable,
    standard_error,
    without,
)
from coterie.estimators.export import as_frame
from coterie.problem import LocalDatasets, Problem, largest_useful_lam
from coterie.problem.arrays import Array
from coterie.problem.penalties import SquaredVariation
from coterie.solver import NotConverged, solve

HARDLY = 1e-6  # of the largest useful λ: nodes with a model hardly feel it, those without still get one


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors on rows held out.

    Attributes
    ----------
    methods : tuple of str
    errors : array of shape (methods, folds)
        Mean error of the rows held out: squared error, or log-loss.
    over : str
        What the folds held out: "nodes", "rows", or "given".
    """

    methods: tuple[str, ...]
    errors: Array
    over: str
    library: str | None = None

    @property
    def mean(self) -> Array:
        """The mean error of each method over the folds."""
        return self.errors.mean(axis=1)

    @property
    def standard_error(self) -> Array:
        """The standard error of that mean."""
        return standard_error(self.errors)

    @property
    def folds_won(self) -> Array:
        """In how many folds each method was the best."""
        return np.bincount(self.errors.argmin(axis=0), minlength=len(self.methods))

    @property
    def best(self) -> int:
        """Which method has the smallest mean error."""
        return int(np.argmin(self.mean))

    def frame(self) -> Any:
        """One row a method: its mean error, the standard error of the mean, and in how many folds it was the best."""
        columns = {
            "method": list(self.methods),
            "mean_error": self.mean,
            "standard_error": self.standard_error,
            "folds_won": self.folds_won,
        }
        return as_frame(columns, self.library)

    def __repr__(self) -> str:
        means = zip(self.methods, self.mean, strict=True)
        return f"Comparison({', '.join(f'{method} {error:.4g}' for method, error in means)}; held out: {self.over})"


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
    - networked: the estimator; a CV form chooses λ anew from the training part of each fold.
    - squared variation: the same with smooth differences instead of clusters, λ chosen on the training part.

    Parameters
    ----------
    estimator : a networked model, which is not changed
    X, y, groups, sample_weight
        As for its fit.
    cv, over
        As for the CV forms.
    """
    model = clone(estimator)
    problem, order = model._problem(X, y, groups, sample_weight)
    folds, held = folds_of(problem.data, cv, over, order, random_state)
    methods: dict[str, Callable[[Problem], Array]] = {
        "local only": lambda training: _alone(model, training),
        "pooled": _pooled,
        "networked": lambda training: _solved(model, training, model._choose_lam(training, order)),
        "squared variation": lambda training: _smooth(model, training, unseen, random_state),
    }
    errors = np.empty((len(methods), len(folds)))
    for k, fold in enumerate(folds):
        training = without(problem, fold)
        rows = reachable(training, fold)
        unseen = np.isin(problem.data.nodes[rows], training.M).mean() < 0.5  # the fold holds out nodes, not rows
        errors[:, k] = [mean_error(problem, rows, weights_of(training)) for weights_of in methods.values()]
    return Comparison(tuple(methods), errors, held, model.frame_library_)


def _solved(model: NetworkedModel, training: Problem, lam: float) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        return solve(replace(training, lam=lam), max(model.tol, 1e-5), max_iter=model.max_iter, engine=model.engine).w


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
    choice = cross_validate_lam(smooth, 20, folds, over, engine=model.engine, max_iter=model.max_iter)
    return _solved(model, smooth, float(choice.lams[choice.best]))
