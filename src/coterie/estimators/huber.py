"""Networked regression that outliers do not spoil."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.metrics import d2_absolute_error_score

from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.docstrings import CHOICE, documented
from coterie.estimators.intervals import IntervalsMixin
from coterie.estimators.progress import Verbose
from coterie.estimators.row_regression import NetworkedRowRegressor
from coterie.problem.arrays import Array
from coterie.problem.losses import Huber
from coterie.problem.penalties import Penalty


@documented()
class NetworkedHuberRegression(IntervalsMixin, NetworkedRowRegressor):
    """Linear regression at every node that outliers do not spoil, neighbours pulled together by total variation.

    Minimises  Σ_i (c_i/m_i) Σ_r h(y_r − ⟨x_r, w_i⟩ − b_i) + ridge ‖w_i‖₂²  +  lam Σ_edges A_e φ((w, b)_i − (w, b)_j)
    with h(e) = e² for |e| ≤ δ and 2δ|e| − δ² beyond: squared errors for a large δ, nearly absolute ones for a small δ.
    Errors are mean absolute errors.

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
    >>> X, y = [[1], [2], [1], [3], [2], [4], [1], [3]], [2, 4, 2, 600, -2, -4, -1, -3]
    >>> model = ct.NetworkedHuberRegression(graph, lam=0.1, delta=0.5).fit(X, y, groups=shops)
    >>> model.predict([[3]], groups=["B"]).round().tolist()
    [6.0]
    """

    delta: float
    ridge: float

    def __init__(
        self,
        graph: Any = None,
        lam: float = 0.1,
        *,
        delta: float = 1.0,
        penalty: str | Penalty = "l1",
        column_strength: Mapping[Any, float] | None = None,
        ridge: float = 0.0,
        l1: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
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

    _robust = True

    def _loss(self, unpenalised: tuple[int, ...]) -> Huber:
        delta = self.delta / self.scaling_.y_spread  # where labels are solved for in units of their spread, so is δ
        return Huber(self.ridge, unpenalised, self._reduction, delta=delta, **self._regularisation)

    def _explained(self, y: Array, predicted: Array, s: Array | None) -> float:
        return d2_absolute_error_score(y, predicted, sample_weight=s)


@documented(CHOICE)
class NetworkedHuberRegressionCV(ChoosesLam, NetworkedHuberRegression):
    """Networked regression that outliers do not spoil, with λ chosen by cross-validation of the mean absolute error.

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
    >>> X, y = [[1], [2], [1], [3], [2], [4], [1], [3]], [2, 4, 2, 60, -2, -4, -1, -3]
    >>> model = ct.NetworkedHuberRegressionCV(graph, delta=0.5, n_lams=3, cv=2, random_state=0).fit(X, y, groups=shops)
    >>> model.held_out_.measure
    'mean absolute error'
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
        delta: float = 1.0,
        penalty: str | Penalty = "l1",
        column_strength: Mapping[Any, float] | None = None,
        refine_strength: bool = False,
        ridge: float = 0.0,
        l1: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
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
