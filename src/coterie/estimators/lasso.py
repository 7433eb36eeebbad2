"""Networked Lasso."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.docstrings import CHOICE, documented
from coterie.estimators.progress import Verbose
from coterie.estimators.regression import NetworkedRegressor
from coterie.problem.losses import Lasso, Loss
from coterie.problem.penalties import Penalty


@documented()
class NetworkedLasso(NetworkedRegressor):
    """Linear regression with sparse weights at every node, for nodes with fewer rows than features.

    Minimises  Σ_i (c_i/m_i) Σ_r (y_r − ⟨x_r, w_i⟩ − b_i)² + alpha ‖w_i‖₁  +  lam Σ_edges A_e φ((w, b)_i − (w, b)_j).
    Note that scikit-learn's Lasso has ½ of this squared error: its alpha is half of this one.

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
    >>> X, y = [[1, 0], [2, 1], [1, 1], [3, 0], [2, 0], [4, 1], [1, 1], [3, 0]], [2, 4, 2, 6, 4, 8, 2, 6]
    >>> model = ct.NetworkedLasso(graph, lam=1.0, alpha=0.1).fit(X, y, groups=shops)
    >>> (model.coef_ != 0).tolist()
    [[True, False], [True, False], [True, False], [True, False]]
    """

    alpha: float
    ridge: float

    def __init__(
        self,
        graph: Any = None,
        lam: float = 0.1,
        *,
        alpha: float = 0.1,
        ridge: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
        penalty: str | Penalty = "l1",
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
        return Lasso(self.alpha, unpenalised, self._reduction, ridge=self.ridge, **self._bounds)


@documented(CHOICE)
class NetworkedLassoCV(ChoosesLam, NetworkedLasso):
    """Networked Lasso with λ chosen by cross-validation; alpha stays as given.

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
    >>> X, y = [[1, 0], [2, 1], [1, 1], [3, 0], [2, 0], [4, 1], [1, 1], [3, 0]], [2, 4, 2, 6, -2, -4, -1, -3]
    >>> model = ct.NetworkedLassoCV(graph, lams=[0.001, 0.1, 10], cv=2, random_state=0).fit(X, y, groups=shops)
    >>> model.lam_ in (0.001, 0.1)
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
        alpha: float = 0.1,
        ridge: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
        penalty: str | Penalty = "l1",
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
