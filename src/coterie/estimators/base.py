"""What all networked models share: rows and a graph in, one model per node out."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.cluster_count import lam_of_clusters
from coterie.estimators.export import ExportMixin
from coterie.estimators.fold_paths import Remade, how_to_solve
from coterie.estimators.information import likelihood_of
from coterie.estimators.input import InputMixin
from coterie.estimators.made_graph import MakesGraph, SecondFit
from coterie.estimators.new_nodes import (
    LocalModel,
    NewRows,
    is_place,
    warm_start,
    weights_for,
    weights_for_place,
    with_nodes,
)
from coterie.estimators.persistence import PersistenceMixin
from coterie.estimators.progress import Verbose, follow, listener
from coterie.estimators.refit import Refit, check_refit, refitted, standard_errors
from coterie.estimators.shared import inner_edges, without_hub
from coterie.estimators.tables import node_ids
from coterie.estimators.variants import OF_GRAPHS
from coterie.problem import EmpiricalGraph, Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import with_offset
from coterie.solver import NotConverged, Solution, Status, solve
from coterie.solver.reasons import in_words

LAST = ("coef_penalised_", "intercept_penalised_", "shared_coef_", "shared_intercept_", "calibration_")
"""Attributes that only some fits have: those of the last one are forgotten."""


class NetworkedModel(MakesGraph, InputMixin, ExportMixin, PersistenceMixin, BaseEstimator):
    """Rows of all nodes and a graph in, one linear model per node out. The subclasses say which loss."""

    # Node ids go wherever rows go: with scikit-learn's metadata routing they need not be requested.
    __metadata_request__fit: ClassVar = {"groups": True}
    __metadata_request__predict: ClassVar = {"groups": True}
    __metadata_request__score: ClassVar = {"groups": True}

    lam: float
    tol: float
    max_iter: int
    time_limit: float | None
    engine: str
    threads: int | None
    warm_start: bool
    verbose: Verbose
    refit: str | None = None
    shared: bool = False
    n_clusters: int | None = None
    first_problem_: Problem
    first_graph_: EmpiricalGraph | None = None
    made_: Remade | None = None
    _weighs_classes = False

    def _keep(self, given: dict[str, Any]) -> None:
        """Set the parameters of a constructor from its locals(): under their names and as they came."""
        for name, value in given.items():
            if name != "self":
                setattr(self, name, value)

    def _choose_lam(self, problem: Problem, order: Array | None, second: SecondFit | None = None) -> float:
        """λ for these data, whose row k is row order[k] of X.

        order None: its rows are condensed, those of a node belong together. second: says which problem is solved, of
        the data of all rows with the λ of a first fit, `lam_`, and of those of a fold with the one that others choose.
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
        rows, w = self._rows_and_weights(X, groups)
        return self._as_labels(self._loss(()).predict(rows, w))

    def weights_for(
        self,
        neighbours: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> LocalModel:
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
        sample_weight, offset, exposure : sequence of shape (rows,), float or str, default=None
            Of these rows, as for `fit`.

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
        if is_place(self, neighbours):
            if X is not None:
                raise ValueError("rows of a new place belong to times; add_nodes takes them, with groups")
            return LocalModel(*self._in_the_units_of_the_user(weights_for_place(self, neighbours)))
        rows = NewRows.of(self, X, y, None, sample_weight, offset, exposure)
        coef, intercept = self._in_the_units_of_the_user(weights_for(self, neighbours, rows)[None])
        return LocalModel(coef[0], intercept[0] if intercept.ndim > 1 else float(intercept[0]))

    def add_nodes(
        self,
        neighbours: Any,
        X: Any = None,
        y: Any = None,
        groups: Any = None,
        *,
        sample_weight: Any = None,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
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
        sample_weight, offset, exposure : sequence of shape (rows,), float or str, default=None
            Of these rows, as for `fit`.

        Returns
        -------
        NetworkedModel
            The model itself. graph_ has the new nodes; the parameter graph stays as it was given.

        Raises
        ------
        ValueError
            If weights of edges are learnt, or the graph is made of the rows.
        """
        check_is_fitted(self)
        self._check_new_nodes()
        rows = NewRows.of(self, X, y, groups, sample_weight, offset, exposure)
        self._learn(*with_nodes(self, neighbours, rows))
        self.first_problem_ = self.problem_
        return self

    def _refined(self, problem: Problem, order: Array | None) -> Problem:
        """The problem with strengths of columns that held-out rows choose, where a model is asked to."""
        return problem

    def _as_labels(self, predicted: Array) -> Array:
        """What the loss predicts, in the terms of y."""
        return self.scaling_.labels_back(predicted)

    def _by_class(self, w: Array) -> Array:
        """Weights (nodes, ·) of nodes; (nodes, classes, ·) where each class has its own."""
        return w

    def _warm(self, graph: EmpiricalGraph, n_features: int) -> Solution | None:
        if not self.warm_start or not hasattr(self, "solution_") or self.solution_.w.shape[1] != n_features:
            return None
        return warm_start(self.solution_, graph)

    def _prepare(self, problem: Problem, order: Array | None) -> tuple[Problem, Solution | None]:
        """Choose λ and, among several, the strength in time; return the problem and where to start."""
        check_refit(self, problem)
        for of_the_last_fit in OF_GRAPHS:
            self.__dict__.pop(of_the_last_fit, None)
        self._check_graph()
        self._condensed = order is None
        problem, how = self._refined(problem, order), {"tol": self.tol, **how_to_solve(self)}
        clusters = None if self.graph is None else self.n_clusters  # without a graph there is one model
        if clusters is not None and self.shared:
            raise ValueError("n_clusters= is for models without shared=True, whose nodes are all joined")
        if clusters is None:
            self.lam_ = float(self._choose_lam(problem, order))
        if len(self._strengths) > 1:
            problem = self._in_time(problem, self.time_strength_)
        self.first_problem_, self.made_, start = problem, self._made(), None
        problem = problem if self.made_ is None else self.made_(problem)
        if clusters is not None:
            self.lam_, start = lam_of_clusters(problem, clusters, **how)
        self.first_graph_ = None
        if self._reweights is not None:
            second = SecondFit(self.made_, self._reweights, how)
            self.first_graph_, self.made_ = problem.graph, second.after(self.lam_)
            problem = self._reweights(problem, lam=self.lam_, options=how)
            if clusters is not None:
                self.lam_, start = lam_of_clusters(problem, clusters, **how)
            else:
                self.lam_ = float(self._choose_lam(self.first_problem_, order, second))
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
        self._take(self.scaling_.values_back(solution, self._degree), self._refitted(problem, solution.w))
        rows, nodes = problem.data.labelled, self.graph_.n_nodes
        of = np.repeat(rows.M, rows.m)
        self.n_labelled_ = np.bincount(of, minlength=nodes)
        X, w = with_offset(rows.X, self._weights_and_groups()[0][of], rows.offset)
        total = np.bincount(of, rows.shares * problem.loss.error(X, rows.y, w), minlength=nodes)
        unit = self.scaling_.y_spread**problem.loss.measure.degree
        self.node_errors_ = np.where(self.n_labelled_ > 0, unit * total, np.nan)
        return self

    def _refitted(self, problem: Problem, w: Array) -> Refit | None:
        """The refit of weights on their clusters, if it is asked for."""
        if self.refit is None:
            return None
        likelihood, n = likelihood_of(self, problem), w.shape[1]
        again = refitted(problem.bound.at(self.lam_), w, quietly=False)
        if self._weighs_classes:  # labels are not drawn as such a fit says
            return Refit(again, np.full(w.shape, np.nan))
        each, none = (self.scaling_.weights_back(self._by_class(v)) for v in (np.eye(n), np.zeros((1, n))))
        effect = each - none
        if effect.ndim == 3:  # one vector more for all classes changes nothing: errors are of what is beyond the mean
            effect -= effect.mean(axis=1, keepdims=True)
        return Refit(again, standard_errors(likelihood, self.lam_, again, w, effect.reshape(n, n)))

    def _take(self, solution: Solution, refit: Refit | None = None) -> None:
        """Set what is known of a fitted model from its solution."""
        self.solution_, self._refit, self._information = solution, refit, None
        for of_the_last_fit in LAST:
            self.__dict__.pop(of_the_last_fit, None)
        self.graph_ = without_hub(solution.graph) if self.shared else solution.graph
        self.nodes_ = node_ids(self.graph_)
        coef, intercept = self._in_the_units_of_the_user(self._weights_and_groups()[0])
        V = self.graph_.n_nodes
        self.coef_, self.intercept_ = coef[:V], intercept[:V]
        if self.shared:
            self.shared_coef_, self.shared_intercept_ = coef[-1], intercept[-1]
        if refit is not None:
            self.coef_penalised_, self.intercept_penalised_ = self._in_the_units_of_the_user(solution.w[:V])
        self.dual_coef_ = solution.u[inner_edges(solution.graph)] if self.shared else solution.u
        self.gap_ = solution.gap
        self.n_iter_ = max(solution.n_iter, 1)
        self.clusters_ = solution.clusters().joint[:V]
        self.undetermined_nodes_ = self.nodes_[solution.undetermined[solution.undetermined < V]]

    def _weights_and_groups(self) -> tuple[Array, Array]:
        """The weights that predict, and those whose groups are fused; both in the units that are solved in."""
        return self.solution_.w if self._refit is None else self._refit.w, self.solution_.w

    def _in_the_units_of_the_user(self, w: Array) -> tuple[Array, Array]:
        """Coefficients, and intercepts: zero where there are none."""
        w = self.scaling_.weights_back(self._by_class(w))
        intercept = w[..., -1] if self.fit_intercept else np.zeros(w.shape[:-1])
        return self._clipped(w[..., : self.n_features_in_]), intercept

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
