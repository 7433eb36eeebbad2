"""What all networked models share: rows and a graph in, one model per node out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.adaptive import adapted
from coterie.estimators.cluster_count import lam_of_clusters
from coterie.estimators.export import ExportMixin
from coterie.estimators.fold_paths import Remade, how_to_solve
from coterie.estimators.input import InputMixin
from coterie.estimators.new_nodes import (
    LocalModel,
    is_place,
    warm_start,
    weights_for,
    weights_for_place,
    with_nodes,
)
from coterie.estimators.persistence import PersistenceMixin
from coterie.estimators.progress import Verbose, follow, listener
from coterie.estimators.tables import node_ids
from coterie.problem import EmpiricalGraph, Problem
from coterie.problem.arrays import Array
from coterie.problem.penalties import Penalty
from coterie.solver import NotConverged, Solution, Status, solve
from coterie.solver.reasons import in_words


class NetworkedModel(InputMixin, ExportMixin, PersistenceMixin, BaseEstimator):
    """Rows of all nodes and a graph in, one linear model per node out. The subclasses say which loss."""

    # Node ids go wherever rows go: with scikit-learn's metadata routing they need not be requested.
    __metadata_request__fit: ClassVar = {"groups": True}
    __metadata_request__predict: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}

    n_clusters: int | None = None
    adaptive: bool = False
    first_problem_: Problem
    first_graph_: EmpiricalGraph | None = None
    made_: Remade | None = None

    def __init__(
        self,
        graph: Any,
        penalty: str | Penalty,
        fit_intercept: bool,
        standardize: bool,
        weight_by: str,
        tol: float,
        max_iter: int,
        time_limit: float | None,
        engine: str,
        threads: int | None,
        warm_start: bool,
        verbose: Verbose,
        node: str | Sequence[str] | None,
    ) -> None:
        self.graph = graph
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.weight_by = weight_by
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.engine = engine
        self.threads = threads
        self.warm_start = warm_start
        self.verbose = verbose
        self.node = node

    def _choose_lam(self, problem: Problem, order: Array | None, made: Remade | None = None) -> float:
        """λ for these data, whose row k is row order[k] of X.

        order None: its rows are condensed, those of a node belong together. made: what makes the problem that is solved
        of the data of all rows, or of those of a fold.
        """
        return self.lam

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn a model for every node of the graph.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        y : sequence of shape (rows,)
            Labels; nan (or None) where a row has none.
        groups : sequence of shape (rows,), str or list of str, default=None
            The node that each row belongs to; or the column of the frame X that says so, or the columns, such as
            ["station", "month"], whose values together do. A node of the graph may have no row at all. None: what the
            parameter `node` names; without that, all rows belong to the one node there is.
        sample_weight : sequence of shape (rows,), default=None
            A row of weight 2 counts like two rows. None: all count alike.

        Returns
        -------
        NetworkedModel
            The model itself. A ConvergenceWarning says where the gap is above tol.
        """
        problem, order = self._problem(X, y, groups, sample_weight)
        return self._learn(*self._prepare(problem, order))

    def predict(self, X: Any, groups: Any = None) -> Array:
        """Predict the label of each row with the model of its node.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.

        Returns
        -------
        array of shape (rows,)
            Numbers, or classes.
        """
        return self._as_labels(self._loss(()).predict(*self._rows_and_weights(X, groups)))

    def weights_for(self, neighbours: Any, X: Any = None, y: Any = None) -> LocalModel:
        """Return the model of a node that is not in the graph, from its neighbours' models; they stay as they are.

        Parameters
        ----------
        neighbours : sequence of node ids, or dict of id → weight of the edge
            Nodes of the graph; or, where these are places at times, places.
        X : array or frame of shape (rows, features), default=None
            Rows of the new node. With them, the node's own loss counts too. Without, the model is the weighted median
            of the neighbours' (penalty "l1"), their geometric median ("l2") or their mean ("squared").
        y : sequence of shape (rows,), default=None
            The labels of these rows.

        Returns
        -------
        LocalModel
            Its coef and its intercept; of a place, one row and one intercept for each time.

        Raises
        ------
        ValueError
            If rows of a new place are given: they belong to times.
        """
        check_is_fitted(self)
        n = self.n_features_in_
        if is_place(self, neighbours):
            if X is not None:
                raise ValueError("rows of a new place belong to times; add_nodes takes them, with groups")
            w = self.scaling_.weights_back(weights_for_place(self, neighbours))
            return LocalModel(w[:, :n], w[:, -1] if self.fit_intercept else np.zeros(len(w)))
        w = self.scaling_.weights_back(weights_for(self, neighbours, X, y)[None])[0]
        return LocalModel(w[:n], float(w[-1]) if self.fit_intercept else 0.0)

    def add_nodes(self, neighbours: Any, X: Any = None, y: Any = None, groups: Any = None) -> Self:
        """Add nodes to the graph and solve again, starting from the present weights and `weights_for` the new nodes.

        Parameters
        ----------
        neighbours : dict of new id → its neighbours, as for `weights_for`
            Neighbours are old nodes or new ones. In a model of space and time, places that are then there at all times.
        X : array or frame of shape (rows, features), default=None
            Rows to add, of new nodes and of old ones. The rows of the last fit are kept and count as before; a model
            that was loaded from a file has none.
        y : sequence of shape (rows,), default=None
            The labels of these rows.
        groups : sequence of shape (rows,) or str, default=None
            The node of each of these rows, as for `fit`.

        Returns
        -------
        NetworkedModel
            The model itself. graph_ has the new nodes; the parameter graph stays as it was given.

        Raises
        ------
        ValueError
            If the model is adaptive.
        """
        check_is_fitted(self)
        if self.adaptive:
            raise ValueError("the weights of new edges are not adapted; fit again, with the new nodes in the graph")
        self._learn(*with_nodes(self, neighbours, X, y, groups))
        self.first_problem_ = self.problem_
        return self

    def _as_labels(self, predicted: Array) -> Array:
        """What the loss predicts, in the terms of y."""
        return self.scaling_.labels_back(predicted)

    def _warm(self, graph: EmpiricalGraph, n_features: int) -> Solution | None:
        if not self.warm_start or not hasattr(self, "solution_") or self.solution_.w.shape[1] != n_features:
            return None
        return warm_start(self.solution_, graph)

    def _prepare(self, problem: Problem, order: Array | None) -> tuple[Problem, Solution | None]:
        """Choose λ and, among several, the strength in time; return the problem and where to start."""
        how = {"tol": self.tol, **how_to_solve(self)}
        k = None if self.graph is None else self.n_clusters  # without a graph there is one model
        if k is not None:
            self.lam_, start = lam_of_clusters(problem, k, **how)
        else:
            self.lam_, start = float(self._choose_lam(problem, order)), None
        if len(self._strengths) > 1:
            problem = self._in_time(problem, self.time_strength_)
        self.first_problem_, self.made_ = problem, None
        self.first_graph_ = problem.graph if self.adaptive else None
        if self.adaptive:
            self.made_ = partial(adapted, lam=self.lam_, options=how)
            problem = self.made_(problem)
            if k is not None:
                self.lam_, start = lam_of_clusters(problem, k, **how)
            else:
                self.lam_ = float(self._choose_lam(self.first_problem_, order, self.made_))
        return problem, start or self._warm(problem.graph, problem.n_features)

    def _learn(self, problem: Problem, start: Solution | None) -> Self:
        """Solve for the λ that has been chosen."""
        tell, bound = listener(self.verbose), problem.bound.at(self.lam_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            solution = solve(
                bound,
                self.tol,
                max_iter=self.max_iter,
                time_limit=self.time_limit,
                engine=self.engine,
                threads=self.threads,
                start=start,
                callback=None if tell is None else follow(tell, self.tol),
            )
        if solution.status is not Status.OPTIMAL:
            warnings.warn(in_words(bound, solution, self.tol), ConvergenceWarning, stacklevel=3)
        self.problem_ = replace(problem, lam=self.lam_)
        self._take(self.scaling_.values_back(solution))
        rows, nodes = problem.data.labelled, problem.graph.n_nodes
        of = np.repeat(rows.M, rows.m)
        self.n_labelled_ = np.bincount(of, minlength=nodes)
        errors = problem.loss.error(rows.X, rows.y, solution.w[of])
        total = np.bincount(of, rows.shares * errors, minlength=nodes)
        self.node_errors_ = np.where(self.n_labelled_ > 0, total, np.nan) * self.scaling_.y_spread**2
        return self

    def _take(self, solution: Solution) -> None:
        """Set what is known of a fitted model from its solution."""
        self.solution_ = solution
        self.graph_ = solution.graph
        self.nodes_ = node_ids(solution.graph)
        w = self.scaling_.weights_back(solution.w)
        self.coef_ = w[:, : self.n_features_in_]
        self.intercept_ = w[:, -1] if self.fit_intercept else np.zeros(len(w))
        self.dual_coef_ = solution.u
        self.gap_ = solution.gap
        self.n_iter_ = max(solution.n_iter, 1)
        self.clusters_ = solution.clusters().joint
        self.undetermined_nodes_ = self.nodes_[solution.undetermined]

    def __sklearn_is_fitted__(self) -> bool:
        """A fit that ended with an error leaves no model."""
        return hasattr(self, "solution_")

    def __sklearn_clone__(self) -> Self:
        """A clone shares the graph, which no model changes."""
        bare = copy(self)
        bare.graph = None
        twin = BaseEstimator.__sklearn_clone__(bare)
        twin.graph = self.graph
        return twin
