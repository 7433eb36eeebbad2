"""Networked regression of a quantile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.metrics import d2_pinball_score

from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.docstrings import CHOICE, documented
from coterie.estimators.no_intervals import NoIntervals
from coterie.estimators.progress import Verbose
from coterie.estimators.row_regression import NetworkedRowRegressor
from coterie.problem.arrays import Array
from coterie.problem.losses import Quantile
from coterie.problem.penalties import Penalty

TWO = (
    "a quantile is itself an end of an interval; fit two, such as quantile=0.05 and quantile=0.95, whose predictions "
    "are meant to hold 90 % of the labels"
)


@documented()
class NetworkedQuantileRegression(NetworkedRowRegressor):
    """Regression of a quantile, such as the median, at every node, neighbours pulled together by total variation.

    Minimises  Σ_i (c_i/m_i) Σ_r ρ(y_r − ⟨x_r, w_i⟩ − b_i) + ridge ‖w_i‖₂²  +  lam Σ_edges A_e φ((w, b)_i − (w, b)_j)
    with ρ(e) = q e for e ≥ 0 and (q − 1) e below. Errors are pinball losses, the means of ρ; held_out_.coverage says
    which part of the labels held out lies below the predictions. Often many models are equally good, of which a small
    ridge takes the smallest.

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
    >>> model = ct.NetworkedQuantileRegression(graph, lam=0.01, quantile=0.5).fit(X, y, groups=shops)
    >>> model.predict([[5], [5]], groups=["A", "D"]).round(3).tolist()
    [10.0, -5.0]
    """

    quantile: float
    ridge: float

    def __init__(
        self,
        graph: Any = None,
        lam: float = 0.1,
        *,
        quantile: float = 0.5,
        penalty: str | Penalty = "l1",
        column_strength: Mapping[Any, float] | None = None,
        ridge: float = 1e-3,
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

    calibrate = NoIntervals(TWO)
    predict_interval = NoIntervals(TWO)

    _degree, _robust = 1, True

    def _loss(self, unpenalised: tuple[int, ...]) -> Quantile:
        return Quantile(self.ridge, unpenalised, self._reduction, q=self.quantile, **self._regularisation)

    def _explained(self, y: Array, predicted: Array, s: Array | None) -> float:
        return d2_pinball_score(y, predicted, sample_weight=s, alpha=self.quantile)


@documented(CHOICE)
class NetworkedQuantileRegressionCV(ChoosesLam, NetworkedQuantileRegression):
    """Networked regression of a quantile, with λ chosen by cross-validation of the pinball loss.

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
    >>> model = ct.NetworkedQuantileRegressionCV(graph, quantile=0.8, n_lams=3, cv=2, random_state=0)
    >>> 0 <= model.fit(X, y, groups=shops).held_out_.coverage <= 1
    True
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
        quantile: float = 0.5,
        penalty: str | Penalty = "l1",
        column_strength: Mapping[Any, float] | None = None,
        refine_strength: bool = False,
        ridge: float = 1e-3,
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
