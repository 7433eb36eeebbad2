"""Networked linear regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from coterie.estimators.base import NetworkedModel
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.docstrings import CHOICE, documented
from coterie.estimators.intervals import IntervalsMixin
from coterie.estimators.progress import Verbose
from coterie.estimators.tables import as_labels, where_labelled
from coterie.io.moments import Moments
from coterie.io.rows import Columns
from coterie.problem.arrays import Array
from coterie.problem.losses import Loss, SquaredError
from coterie.problem.penalties import Penalty


class NetworkedRegressor(IntervalsMixin, RegressorMixin, NetworkedModel):
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

        Returns
        -------
        NetworkedRegressor
            The model itself.
        """
        graph = self._as_graph(moments.ids)
        self.n_features_in_, self.feature_names_in_ = moments.n_features, np.array(columns.features, dtype=object)
        self.groups_column_, self.frame_library_, self.target_name_ = columns.node, "polars", columns.target
        problem = self._stated(graph, moments.datasets(graph, self.fit_intercept))
        self._learn(*self._prepare(problem, None))
        self.n_labelled_ = np.zeros(graph.n_nodes, dtype=np.int64)
        self.n_labelled_[graph.numbers(list(moments.ids))] = moments.m
        return self

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Return R² over the rows that have a label.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        y : sequence of shape (rows,)
            Labels; rows without one do not count.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.
        sample_weight : sequence of shape (rows,), default=None
            A row of weight 2 counts like two rows. None: all count alike.

        Returns
        -------
        float
            1 for perfect predictions, 0 for predictions as good as the mean.
        """
        labels, predicted, s = where_labelled(y, self.predict(X, groups), sample_weight)
        return float(r2_score(labels, predicted, sample_weight=s))


@documented()
class NetworkedLinearRegression(NetworkedRegressor):
    """Linear regression at every node, neighbours pulled together by total variation.

    Minimises  Σ_i (c_i/m_i) Σ_r (y_r − ⟨x_r, w_i⟩ − b_i)² + ridge ‖w_i‖₂²  +  lam Σ_edges A_e φ((w, b)_i − (w, b)_j)
    over the weights w_i and intercepts b_i of all nodes, the first sum over the nodes with labels. What a node counts,
    c_i, follows from weight_by.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=["A", "B", "C", "D"])
    >>> shops = ["A", "A", "B", "B", "C", "C", "D", "D"]
    >>> X, y = [[1], [2], [1], [3], [2], [4], [1], [3]], [2, 4, 2, 6, -2, -4, -1, -3]
    >>> model = ct.NetworkedLinearRegression(graph, lam=0.01).fit(X, y, groups=shops)
    >>> model.clusters_.tolist()
    [0, 0, 1, 1]
    >>> model.gap_ <= 1e-6
    True
    """

    ridge: float

    def __init__(
        self,
        graph: Any = None,
        lam: float = 0.1,
        *,
        penalty: str | Penalty = "l1",
        ridge: float = 0.0,
        l1: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
        column_strength: Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        weight_by: str = "rows",
        refit: str | None = None,
        shared: bool = False,
        tol: float = 1e-6,
        max_iter: int = 100_000,
        time_limit: float | None = None,
        engine: str = "auto",
        threads: int | None = None,
        warm_start: bool = False,
        verbose: Verbose = 0,
        node: str | Sequence[str] | None = None,
        time_strength: float = 1.0,
        n_clusters: int | None = None,
        adaptive: bool = False,
        learn_graph: bool = False,
    ) -> None:
        self._keep(locals())

    def _loss(self, unpenalised: tuple[int, ...]) -> Loss:
        return SquaredError(self._reduction, self.ridge, unpenalised, **self._regularisation)


@documented(CHOICE)
class NetworkedLinearRegressionCV(ChoosesLam, NetworkedLinearRegression):
    """Networked linear regression with λ chosen by cross-validation.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=["A", "B", "C", "D"])
    >>> shops = ["A", "A", "B", "B", "C", "C", "D", "D"]
    >>> X, y = [[1], [2], [1], [3], [2], [4], [1], [3]], [2, 4, 2, 6, -2, -4, -1, -3]
    >>> model = ct.NetworkedLinearRegressionCV(graph, n_lams=5, cv=2, random_state=0).fit(X, y, groups=shops)
    >>> model.lam_choice_.over
    'rows'
    >>> len(model.cv_results_["mean_error"])
    5
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
        criterion: str = "cv",
        penalty: str | Penalty = "l1",
        ridge: float = 0.0,
        l1: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
        column_strength: Mapping[Any, float] | None = None,
        refine_strength: bool = False,
        fit_intercept: bool = True,
        standardize: bool = True,
        weight_by: str = "rows",
        refit: str | None = None,
        shared: bool = False,
        tol: float = 1e-6,
        max_iter: int = 100_000,
        time_limit: float | None = None,
        engine: str = "auto",
        threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: Verbose = 0,
        node: str | Sequence[str] | None = None,
        time_strengths: Any = None,
        adaptive: bool = False,
        learn_graph: bool = False,
    ) -> None:
        self._keep(locals())
