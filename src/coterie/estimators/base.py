"""What all networked models share: rows and a graph in, one model a node out."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie.estimators.carry import carried
from coterie.estimators.names import as_graph, as_penalty, node_ids
from coterie.estimators.newcomers import LocalModel, weights_for, with_nodes
from coterie.estimators.tables import as_row_weights, has_column, take_groups
from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses import LocalLosses, Loss
from coterie.problem.penalties import Penalty
from coterie.solver import NotConverged, Record, Solution, Status, solve


class NetworkedModel(BaseEstimator):
    """Rows of all nodes and a graph in, one linear model a node out. The subclasses say which loss."""

    # Node ids go wherever rows go: with scikit-learn's metadata routing nobody has to ask for them.
    __metadata_request__fit: ClassVar = {"groups": True}
    __metadata_request__predict: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}

    def __init__(
        self,
        graph: Any,
        penalty: str | Penalty,
        fit_intercept: bool,
        tol: float,
        max_iter: int,
        engine: str,
        warm_start: bool,
        random_state: Any,
        verbose: int,
    ) -> None:
        self.graph = graph
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.engine = engine
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _loss(self, unpenalised: tuple[int, ...]) -> Loss:
        """The loss, which leaves these columns (the intercept) out of ridge and alpha."""

    @abstractmethod
    def _labels(self, y: Any, n_rows: int, first: bool) -> Array:
        """Labels as the loss wants them, nan where there is none. `first`: learn which classes there are."""

    def _choose_lam(self, problem: Problem, order: Array) -> float:
        """λ for this problem, whose own λ does not count and whose row k is row order[k] of X."""
        return self.lam

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn a model for every node of the graph.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
        y : sequence of shape (rows,)
            Labels; nan (or None) where a row has none.
        groups : sequence of shape (rows,), or str
            The node that each row belongs to; or the column of the frame X that says so. A node of the graph
            may have no row at all. None: all rows belong to the one node there is.
        sample_weight : sequence of shape (rows,), optional
            A row of weight 2 counts like two rows.
        """
        problem, order = self._problem(X, y, groups, sample_weight)
        start = self._warm(problem.graph, problem.n_features)
        self.lam_ = float(self._choose_lam(problem, order))
        return self._learn(replace(problem, lam=self.lam_), start)

    def predict(self, X: Any, groups: Any = None) -> Array:
        """Predict the label of each row with the model of its node."""
        return self._from_classes(self._loss(()).predict(*self._rows_and_weights(X, groups)))

    def weights_for(self, neighbours: Any, X: Any = None, y: Any = None) -> LocalModel:
        """Return the model of a node that is not in the graph, from its neighbours' models; they stay as they are.

        Parameters
        ----------
        neighbours : sequence of node ids, or dict of id → weight of the edge
        X, y : the rows of the new node, optional
            With them, the node's own loss has a say. Without, the model is the weighted median of the neighbours'
            (penalty "l1"), their geometric median ("l2") or their mean ("squared").
        """
        check_is_fitted(self)
        return weights_for(self, neighbours, X, y)

    def add_nodes(self, neighbours: Any, X: Any = None, y: Any = None, groups: Any = None) -> Self:
        """Add nodes to the graph and solve again, starting from the present weights and `weights_for` the new nodes.

        Parameters
        ----------
        neighbours : dict of new id → its neighbours, old or new, as for `weights_for`
        X, y, groups : rows to add, optional
            They may belong to new nodes and to old ones. The rows of the last fit are kept and count as before;
            a model that was loaded from a file has none.
        """
        check_is_fitted(self)
        more = None if X is None else (lambda graph: self._rows(X, y, groups, None, graph, first=False)[0])
        problem, start = with_nodes(self, neighbours, more)
        self.graph = problem.graph
        return self._learn(problem, start)

    def coef_frame(self) -> Any:
        """Return one row a node with its coefficients, intercept and cluster: a frame of the library X came from."""
        from coterie.estimators.export import coef_frame

        return coef_frame(self)

    def to_networkx(self) -> Any:
        """Return the graph with each node's coefficients and cluster as attributes "weights" and "cluster"."""
        from coterie.estimators.export import to_networkx

        return to_networkx(self)

    def save(self, path: Any, notes: dict[str, Any] | None = None) -> None:
        """Write the model to a folder, for :func:`coterie.load`; see :func:`coterie.estimators.files.save`."""
        from coterie.estimators.files import save

        save(self, path, notes)

    def _from_classes(self, labels: Array) -> Array:
        return labels

    def _problem(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> tuple[Problem, Array]:
        self.groups_column_ = groups if isinstance(groups, str) else None
        self.frame_library_ = _library_of(X)
        graph = as_graph(self.graph, groups)
        data, nodes = self._rows(X, y, groups, sample_weight, graph, first=True)
        if not len(data.labelled.M):
            raise ValueError("there is nothing to learn from: every y is nan, or every sample weight zero")
        problem = Problem(graph, data, self._loss(self._unpenalised), as_penalty(self.penalty), lam=0.0)
        return problem, np.argsort(nodes, kind="stable")

    def _rows(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, graph: EmpiricalGraph, *, first: bool
    ) -> tuple[LocalDatasets, Array]:
        """The rows of X in the nodes of the graph, and the node of each as they came. `first`: learn what X is like."""
        X, groups = take_groups(X, groups)
        features = validate_data(self, X, dtype=np.float64, reset=first)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        labels = self._labels(y, len(features), first)
        nodes = np.zeros(len(features), dtype=np.int64) if groups is None else graph.numbers(groups)
        weights = as_row_weights(sample_weight, len(features))
        return LocalDatasets.from_rows(self._design(features), labels, nodes, graph.n_nodes, weights), nodes

    def _loss_at_one_node(self, X: Any, y: Any) -> LocalLosses | None:
        rows = self._rows(X, y, None, None, as_graph(None, None), first=False)[0].labelled
        return self._loss(self._unpenalised).bind(rows) if len(rows.M) else None

    @property
    def _unpenalised(self) -> tuple[int, ...]:
        return (self.n_features_in_,) if self.fit_intercept else ()

    def _design(self, features: Array) -> Array:
        """Features with the column of the intercept at the end."""
        return np.column_stack([features, np.ones(len(features))]) if self.fit_intercept else features

    def _warm(self, graph: EmpiricalGraph, n_features: int) -> Solution | None:
        if not self.warm_start or not hasattr(self, "solution_") or self.solution_.w.shape[1] != n_features:
            return None
        return carried(self.solution_, graph)

    def _learn(self, problem: Problem, start: Solution | None) -> Self:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            solution = solve(
                problem,
                self.tol,
                max_iter=self.max_iter,
                engine=self.engine,
                start=start,
                callback=print_record if self.verbose else None,
            )
        if solution.status is not Status.OPTIMAL:
            warnings.warn(not_converged(problem, solution, self.tol), ConvergenceWarning, stacklevel=3)
        self.problem_ = problem
        self._take(solution)
        rows, nodes = problem.data.labelled, problem.graph.n_nodes
        of = np.repeat(rows.M, rows.m)
        self.n_labelled_ = np.bincount(of, minlength=nodes)
        errors = problem.loss.error(rows.X, rows.y, solution.w[of])
        total = np.bincount(of, rows.shares * errors, minlength=nodes)
        self.node_errors_ = np.where(self.n_labelled_ > 0, total, np.nan)
        return self

    def _take(self, solution: Solution) -> None:
        """Set what is known of a fitted model from its solution."""
        self.solution_ = solution
        self.graph_ = solution.graph
        self.nodes_ = node_ids(solution.graph)
        self.coef_ = solution.w[:, :-1] if self.fit_intercept else solution.w
        self.intercept_ = solution.w[:, -1] if self.fit_intercept else np.zeros(len(solution.w))
        self.dual_coef_ = solution.u
        self.gap_ = solution.gap
        self.n_iter_ = max(solution.n_iter, 1)
        self.clusters_ = solution.clusters().joint
        self.undetermined_nodes_ = self.nodes_[solution.undetermined]

    def _rows_and_weights(self, X: Any, groups: Any) -> tuple[Array, Array]:
        """The rows of X, with intercept, and the weights of the node of each."""
        check_is_fitted(self)
        if groups is None and has_column(X, self.groups_column_):
            groups = self.groups_column_
        X, groups = take_groups(X, groups)
        features = validate_data(self, X, dtype=np.float64, reset=False)
        if groups is None and self.graph_.n_nodes > 1:
            raise ValueError(
                f"this model has {self.graph_.n_nodes} nodes; say with groups= which one each row belongs to"
            )
        nodes = np.zeros(len(features), dtype=np.int64) if groups is None else self.graph_.numbers(groups)
        if len(nodes) != len(features):
            raise ValueError(f"X has {len(features)} rows, groups {len(nodes)}")
        return self._design(features), self.solution_.w[nodes]

    def __sklearn_clone__(self) -> Self:
        """A clone shares the graph, which no model changes."""
        bare = copy(self)
        bare.graph = None
        twin = BaseEstimator.__sklearn_clone__(bare)
        twin.graph = self.graph
        return twin


def not_converged(problem: Problem, solution: Solution, tol: float) -> str:
    """Say how far a solve came, and what often helps."""
    size = np.abs(problem.data.labelled.X).max(axis=0)
    uneven = size.max() > 1e4 * size[size > 0].min(initial=np.inf)
    hint = " The columns of X differ widely in scale; StandardScaler helps." if uneven else ""
    return f"{solution.status.value} Certified gap: {solution.gap:.2e}, asked for: {tol:.2e}.{hint}"


def print_record(record: Record) -> None:
    """Print one line of progress."""
    print(f"iteration {record.n_iter:6d}  objective {record.objective:.6e}  gap {record.gap:.1e}")


def _library_of(X: Any) -> str | None:
    """The library that a frame came from; None for an array."""
    return type(X).__module__.partition(".")[0] if hasattr(X, "columns") else None
