"""Networked linear regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from coterie.estimators.base import NetworkedModel
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.progress import Verbose
from coterie.estimators.tables import as_graph, as_labels, as_row_weights
from coterie.io.moments import Moments
from coterie.io.rows import Columns
from coterie.problem.arrays import Array
from coterie.problem.losses import Loss, SquaredError
from coterie.problem.penalties import Penalty


class NetworkedRegressor(RegressorMixin, NetworkedModel):
    """A networked model whose labels are numbers."""

    def _labels(self, y: Any, n_rows: int, first: bool) -> Array:
        return as_labels(y, n_rows)

    def fit_moments(self, moments: Moments, columns: Columns) -> Self:
        """Learn from files that were read in one pass: as `fit` to all their rows, to rounding.

        A CV form then has to hold out nodes: rows are no longer there.

        Parameters
        ----------
        moments : Moments
            As :func:`coterie.io.stream.stream_moments` returns them.
        columns : Columns
            What the columns of the files are.
        """
        graph = as_graph(self.graph, moments.ids)
        self.n_features_in_, self.feature_names_in_ = moments.n_features, np.array(columns.features, dtype=object)
        self.groups_column_, self.frame_library_ = columns.node, "polars"
        problem = self._stated(graph, moments.datasets(graph, self.fit_intercept))
        self._learn(*self._with_lam(problem, None))
        self.n_labelled_ = np.zeros(graph.n_nodes, dtype=np.int64)
        self.n_labelled_[graph.numbers(list(moments.ids))] = moments.m
        return self

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """R² over the rows that have a label."""
        predicted = self.predict(X, groups)
        labels = as_labels(y, len(predicted))
        known = ~np.isnan(labels)
        s = as_row_weights(sample_weight, len(known))
        return float(r2_score(labels[known], predicted[known], sample_weight=s if s is None else s[known]))


class NetworkedLinearRegression(NetworkedRegressor):
    """Linear regression at every node, neighbours pulled together by total variation.

    Minimises  Σ_i (c_i/m_i) Σ_r (y_r − ⟨x_r, w_i⟩ − b_i)² + ridge ‖w_i‖₂²  +  lam Σ_edges A_e φ((w, b)_i − (w, b)_j)
    over the weights w_i and intercepts b_i of all nodes, the first sum over the nodes with labels. What a node counts,
    c_i, follows from weight_by.

    Parameters
    ----------
    graph : EmpiricalGraph, networkx.Graph, scipy.sparse matrix or frame of edges, optional
        As for :meth:`EmpiricalGraph.from_any`. None: one node.
    lam : float
        λ ≥ 0. The larger it is, the more nodes share a model; at 0 each node is alone.
    penalty : "l1", "l2", "squared" or a Penalty
        φ: the ℓ1 norm (every coefficient has clusters of its own), the ℓ2 norm (all coefficients have the same
        clusters), or the squared ℓ2 norm (no clusters, weights vary gradually).
    ridge : float
        Does not apply to the intercept.
    fit_intercept : bool
        The intercept is one more coefficient: neighbours' intercepts are pulled together too.
    standardize : bool
        Solve for features (and numeric labels) of zero mean and unit variance, over the labelled rows of all nodes:
        λ, ridge and alpha then mean the same whatever the units, and columns of very different sizes do no harm.
        coef_, intercept_, predictions and errors are in the units of X and y all the same; solution_ and dual_coef_
        are in those of the problem that was solved. Without an intercept, columns are scaled and not centred.
    weight_by : "rows" or "nodes"
        What counts alike. "nodes": c_i = 1, a node with one row counts like one with 900. "rows": c_i = m_i/m̄, where m̄
        is the mean of m_i over the nodes with labels, so that λ, ridge and alpha keep their size; the same where all
        nodes have as many rows. A sample weight counts as that many rows.
    tol : float
        The relative duality gap to reach.
    max_iter : int
    time_limit : float, optional
        Seconds for the solve; what a CV form does before, to choose λ, does not count.
    engine : str
        See :func:`coterie.solve`.
    threads : int, optional
        How many the solve uses; by default as many as pay, and not more than the environment allows.
    warm_start : bool
        Begin a fit where the last one ended; the graph may have changed.
    verbose : int or callable
        Above 0: print progress. A callable is called instead as ``verbose(line, done)``, done being from 0 to 1.

    Attributes
    ----------
    coef_ : array of shape (nodes, features)
    intercept_ : array of shape (nodes,)
    nodes_ : array of shape (nodes,)
        The ids of the nodes, in the order of coef_.
    dual_coef_ : array of shape (edges, features + 1)
        The dual variables u of the edges, in the order of ``graph_.edges``.
    gap_ : float
        How far the objective is from the best possible, at most, relative to it.
    n_iter_ : int
        At least 1, also where no iteration was needed.
    clusters_ : array of shape (nodes,)
        Nodes with the same number are connected and have exactly the same model.
    undetermined_nodes_ : array
        Ids of nodes that no label reaches; their model is zero.
    n_labelled_ : array of shape (nodes,)
        m_i, the number of labelled rows of each node.
    node_errors_ : array of shape (nodes,)
        Mean error (squared, or log-loss) of the labelled rows of each node; nan where there are none.
    lam_ : float
    solution_ : Solution
        What the solver returned, with its certificate.
    graph_ : EmpiricalGraph
    n_features_in_, feature_names_in_
        As in all of scikit-learn.
    """

    def __init__(
        self,
        graph: Any = None,
        lam: float = 0.1,
        *,
        penalty: str | Penalty = "l1",
        ridge: float = 0.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        weight_by: str = "rows",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        time_limit: float | None = None,
        engine: str = "auto",
        threads: int | None = None,
        warm_start: bool = False,
        verbose: Verbose = 0,
    ) -> None:
        super().__init__(
            graph,
            penalty,
            fit_intercept,
            standardize,
            weight_by,
            tol,
            max_iter,
            time_limit,
            engine,
            threads,
            warm_start,
            verbose,
        )
        self.lam = lam
        self.ridge = ridge

    def _loss(self, unpenalised: tuple[int, ...]) -> Loss:
        return SquaredError(self._reduction, self.ridge, unpenalised)


class NetworkedLinearRegressionCV(ChoosesLam, NetworkedLinearRegression):
    """Networked linear regression with λ chosen by cross-validation.

    Parameters
    ----------
    graph, penalty, ridge, fit_intercept, standardize, weight_by, tol, max_iter, time_limit, engine, threads,
    warm_start, random_state, verbose
        As for :class:`NetworkedLinearRegression`.
    lams : sequence of float, optional
        The values of λ to try. By default n_lams, evenly spaced in logarithms below the largest useful one.
    n_lams : int
    cv : int, splitter or iterable of (train, test)
        The number of folds; or what scikit-learn takes for cv, with nodes numbered as its groups.
    over : "auto", "nodes" or "rows"
        What a fold holds out. "nodes": all labels of some nodes (can the network predict a node it has not seen?).
        "rows": some labels of any node (can it predict new points of the nodes it knows?). "auto": nodes where
        the graph has nodes without labels or most nodes have one row, otherwise rows.
    cv_repeats : int
        How many times the folds are drawn; their errors are averaged. For a number of folds only.
    rule : "best" or "one_se"
        The λ of smallest mean error over the rows held out, or the largest λ within one standard error of it.

    Attributes
    ----------
    lam_ : float
        The λ chosen; all other attributes are of the fit to all data with it.
    cv_results_ : dict of arrays
        For each λ: lam, mean_error, standard_error, the error of each fold, and the largest gap any fold had left.
    lam_choice_ : LamChoice
        The same, with both rules.
    """

    def __init__(
        self,
        graph: Any = None,
        *,
        lams: Any = None,
        n_lams: int = 30,
        cv: Any = 5,
        over: str = "auto",
        cv_repeats: int = 1,
        rule: str = "best",
        penalty: str | Penalty = "l1",
        ridge: float = 0.0,
        fit_intercept: bool = True,
        standardize: bool = True,
        weight_by: str = "rows",
        tol: float = 1e-6,
        max_iter: int = 100_000,
        time_limit: float | None = None,
        engine: str = "auto",
        threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: Verbose = 0,
    ) -> None:
        NetworkedModel.__init__(
            self,
            graph,
            penalty,
            fit_intercept,
            standardize,
            weight_by,
            tol,
            max_iter,
            time_limit,
            engine,
            threads,
            warm_start,
            verbose,
        )
        self._set_choice(lams, n_lams, cv, over, cv_repeats, rule, random_state)
        self.ridge = ridge
