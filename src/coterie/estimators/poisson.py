"""Networked regression of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.validation import check_is_fitted

from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.docstrings import CHOICE, documented
from coterie.estimators.no_intervals import NoIntervals
from coterie.estimators.offsets import Offset
from coterie.estimators.progress import Verbose
from coterie.estimators.row_regression import NetworkedRowRegressor
from coterie.estimators.scaling import Holders
from coterie.estimators.tables import as_labels, as_row_weights, where_labelled
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import Poisson
from coterie.problem.penalties import Penalty

OFFSET = """\
offset_ : (str, str or None), or None
    How the known part of predictions was given: "offset" or "exposure", and the column that it was in; None: not at
    all."""

UNEVEN = (
    "counts vary the more the more are expected, so that intervals of one width for all are wrong; fit two "
    "NetworkedQuantileRegression to the counts, such as quantile=0.05 and quantile=0.95"
)


@documented(OFFSET)
class NetworkedPoissonRegression(NetworkedRowRegressor):
    """Poisson regression of counts at every node, with a log link, neighbours pulled together by total variation.

    Minimises  Σ_i (c_i/m_i) Σ_r e^{z_r} − y_r z_r + ridge ‖w_i‖₂²  +  lam Σ_edges A_e φ((w, b)_i − (w, b)_j)
    with z_r = ⟨x_r, w_i⟩ + b_i + offset_r: e^{z_r} is the count that is expected. Counts are numbers ≥ 0, whole or not,
    and are neither scaled nor centred. With ridge above 0, only nodes whose counts are all zero have no finite model of
    their own. Errors are mean deviances.

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
    >>> X, y = [[0], [1], [0], [2], [0], [1], [0], [2]], [2, 4, 2, 8, 8, 4, 8, 2]
    >>> model = ct.NetworkedPoissonRegression(graph, lam=0.01).fit(X, y, groups=shops, exposure=1.0)
    >>> model.predict([[1], [1]], groups=["A", "A"], exposure=[1, 100]).round(-1).tolist()
    [0.0, 400.0]
    """

    ridge: float

    def __init__(
        self,
        graph: Any = None,
        lam: float = 0.1,
        *,
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

    __metadata_request__fit = {"groups": True, "offset": True, "exposure": True}  # noqa: RUF012
    __metadata_request__predict = {"groups": True, "offset": True, "exposure": True}  # noqa: RUF012
    __metadata_request__score = {"groups": True, "offset": True, "exposure": True}  # noqa: RUF012

    calibrate = NoIntervals(UNEVEN)
    predict_interval = NoIntervals(UNEVEN)

    _takes_offset = True
    _scales_labels = False  # e^{z/s} is no scaled e^z, and a count less its mean is no count

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> Self:
        """Learn a model for every node of the graph.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        y : sequence of shape (rows,)
            Counts, numbers ≥ 0; nan (or None) where a row has none.
        groups : sequence of shape (rows,), str or list of str, default=None
            The node that each row belongs to, or the columns of the frame X that say so: as for other models.
        sample_weight : sequence of shape (rows,), default=None
            A row of weight 2 counts like two rows. None: all count alike.
        offset : sequence of shape (rows,), float or str, default=None
            What is added to ⟨x, w⟩ + b of each row; or the column of the frame X that holds it, which is no feature
            then.
        exposure : sequence of shape (rows,), float or str, default=None
            How long, how many, how large: what an expected count is in proportion to. In place of an offset, which is
            its logarithm.

        Returns
        -------
        NetworkedPoissonRegression
            The model itself. A ConvergenceWarning says where the gap is above tol.
        """
        problem, order = self._problem(X, y, groups, sample_weight, Offset.of(offset, exposure))
        return self._learn(*self._prepare(problem, order))

    def predict(self, X: Any, groups: Any = None, *, offset: Any = None, exposure: Any = None) -> Array:
        """Return the count that is expected of each row.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.
        offset : sequence of shape (rows,), float or str, default=None
            As for `fit`. None: in the column that the fit found it in.
        exposure : sequence of shape (rows,), float or str, default=None
            In place of an offset. A model that was fitted with either needs one here; an exposure of 1 gives rates.

        Returns
        -------
        array of shape (rows,)
            Numbers > 0.
        """
        return self._loss(()).predict(*self._rows_and_weights(X, groups, Offset.of(offset, exposure)))

    def score(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> float:
        """Return D² over the rows that have a label: the part of the deviance of one rate for all that is gone.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        y : sequence of shape (rows,)
            Counts; rows without one do not matter.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.
        sample_weight : sequence of shape (rows,), default=None
            A row of weight 2 counts like two rows. None: all count alike.
        offset : sequence of shape (rows,), float or str, default=None
            As for `predict`.
        exposure : sequence of shape (rows,), float or str, default=None
            As for `predict`.

        Returns
        -------
        float
            1 for perfect predictions, 0 for predictions as good as one rate for all.
        """
        check_is_fitted(self)
        given = Offset.of(offset, exposure)
        predicted, known = self.predict(X, groups, offset=offset, exposure=exposure), self._take_offset(X, given)[1]
        y = _checked_counts(as_labels(y, len(predicted)))
        s = as_row_weights(sample_weight, len(predicted))
        if known is None:
            return self._explained(*where_labelled(y, predicted, s))
        E = np.exp(known)  # the deviance of counts is that of rates, with weights E
        rates = y / E, predicted / E
        return self._explained(*where_labelled(*rates, E if s is None else s * E))

    def _loss(self, unpenalised: tuple[int, ...]) -> Poisson:
        return Poisson(self.ridge, unpenalised, self._reduction, **self._regularisation)

    def _explained(self, y: Array, predicted: Array, s: Array | None) -> float:
        return d2_tweedie_score(y, np.maximum(predicted, np.finfo(float).tiny), sample_weight=s, power=1)

    def _labels(self, y: Any, n_rows: int, first: bool) -> Array:
        return _checked_counts(super()._labels(y, n_rows, first))

    def _check_labelled(self, rows: LabelledRows, holders: Holders) -> None:
        super()._check_labelled(rows, holders)
        if not holders.added(float(np.count_nonzero(rows.y))):
            raise ValueError("every count is zero: the best rate is 0, of which no logarithm is finite")

    def _take_offset(self, X: Any, given: Offset | None, *, first: bool = False) -> tuple[Any, Array | None]:
        if first:
            self.offset_ = None if given is None else given.named
        elif given is None and self.offset_ is not None:
            given = self.offset_.found_again(X)
            if given is None:
                raise ValueError(self.offset_.missing)
        return (X, None) if given is None else given.taken(X)


def _checked_counts(counts: Array) -> Array:
    """The counts; numbers below zero are refused."""
    if (counts < 0).any():
        r = int(np.argmax(counts < 0))
        raise ValueError(f"y[{r}] is {counts[r]:g}; counts are numbers ≥ 0, or nan where unknown")
    return counts


@documented(CHOICE, OFFSET)
class NetworkedPoissonRegressionCV(ChoosesLam, NetworkedPoissonRegression):
    """Networked regression of counts, with λ chosen by cross-validation of the mean deviance.

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
    >>> X, y = [[0], [1], [0], [2], [0], [1], [0], [2]], [2, 4, 2, 8, 8, 4, 8, 2]
    >>> model = ct.NetworkedPoissonRegressionCV(graph, n_lams=3, cv=2, random_state=0).fit(X, y, groups=shops)
    >>> model.held_out_.measure
    'mean deviance'
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
