"""Networked logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from coterie.estimators.base import NetworkedModel
from coterie.estimators.cross_validation import ChoosesLam
from coterie.estimators.docstrings import CHOICE, CLASSES, documented
from coterie.estimators.no_intervals import NoIntervals
from coterie.estimators.progress import Verbose
from coterie.estimators.scaling import Holders
from coterie.estimators.tables import WEIGHTS, as_classes, as_row_weights
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import Logistic, Multinomial
from coterie.problem.losses.base import linear_predictor
from coterie.problem.penalties import Penalty

OF_CLASSES = "labels are classes, not numbers; predict_proba says how likely each of them is"


@documented(CLASSES)
class NetworkedLogisticRegression(ClassifierMixin, NetworkedModel):
    """Classification into two or more classes at every node.

    Minimises  Σ_i (c_i/m_i) Σ_r log(1 + e^{z_r}) − y_r z_r + ridge ‖w_i‖₂²  +  lam Σ_edges A_e φ((w, b)_i − (w, b)_j)
    with z_r = ⟨x_r, w_i⟩ + b_i, and y_r = 1 for the second of two classes, 0 for the first. With ridge above 0,
    nodes whose rows separate perfectly have a finite model of their own. With more than two classes, each has weights
    of its own, z_rk = ⟨x_r, w_ik⟩ + b_ik, and a row of class y costs log Σ_k e^{z_rk} − z_ry: see :class:`Multinomial`.

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
    >>> X, y = [[1], [2], [1], [3], [1], [2], [1], [3]], ["no", "yes", "no", "yes", "yes", "no", "yes", "no"]
    >>> model = ct.NetworkedLogisticRegression(graph, lam=0.01).fit(X, y, groups=shops)
    >>> model.predict([[3], [3]], groups=["A", "D"]).tolist()
    ['yes', 'no']
    """

    __metadata_request__predict_proba = {"groups": True}  # noqa: RUF012
    __metadata_request__predict_log_proba = {"groups": True}  # noqa: RUF012
    __metadata_request__decision_function = {"groups": True}  # noqa: RUF012

    ridge: float
    class_weight: Any

    def __init__(
        self,
        graph: Any = None,
        lam: float = 0.1,
        *,
        penalty: str | Penalty = "l1",
        ridge: float = 1e-3,
        l1: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
        class_weight: Any = None,
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

    calibrate = NoIntervals(OF_CLASSES)
    predict_interval = NoIntervals(OF_CLASSES)

    _scales_labels = False

    @property
    def _weighs_classes(self) -> bool:  # type: ignore[override]
        return self.class_weight is not None

    def decision_function(self, X: Any, groups: Any = None) -> Array:
        """Return ⟨x, w⟩ + b of each row: the log-odds of the second of two classes, or the score of each of more.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.

        Returns
        -------
        array of shape (rows,), or (rows, classes) for more than two
            Positive where the second class is the likelier one; or largest for the likeliest class.
        """
        rows, w = self._rows_and_weights(X, groups)
        loss = self._loss(())
        return loss.scores(rows, w) if isinstance(loss, Multinomial) else linear_predictor(rows, w)

    def predict_proba(self, X: Any, groups: Any = None) -> Array:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.

        Returns
        -------
        array of shape (rows, classes)
            In the order of classes_.
        """
        p = self._loss(()).predict_proba(*self._rows_and_weights(X, groups))
        return np.column_stack([1 - p, p]) if p.ndim == 1 else p

    def predict_log_proba(self, X: Any, groups: Any = None) -> Array:
        """Return the logarithms of the probabilities, exact also where a probability rounds to 0 or 1.

        Parameters
        ----------
        X : array or frame of shape (rows, features)
            The features of each row.
        groups : sequence of shape (rows,) or str, default=None
            The node of each row, or the column of the frame X that says so. None: the column that the fit found them
            in, or the one node there is.

        Returns
        -------
        array of shape (rows, classes)
            In the order of classes_.
        """
        z = self.decision_function(X, groups)
        if z.ndim == 2:
            return np.asarray(log_softmax(z, axis=1))
        return -np.column_stack([np.logaddexp(0, z), np.logaddexp(0, -z)])

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy over the rows that have a label.

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
            The share of rows whose class is predicted.
        """
        predicted = self.predict(X, groups)
        classes, code = as_classes(y, len(predicted))
        known = ~np.isnan(code)
        s = as_row_weights(sample_weight, len(known))
        truth = classes[code[known].astype(int)]
        return float(accuracy_score(truth, predicted[known], sample_weight=s if s is None else s[known]))

    def _loss(self, unpenalised: tuple[int, ...]) -> Logistic | Multinomial:
        if (K := self._n_classes) > 2:
            return Multinomial(K, self.ridge, unpenalised, self._reduction, **self._regularisation)
        return Logistic(self.ridge, unpenalised, self._reduction, **self._regularisation)

    @property
    def _n_classes(self) -> int:
        return len(getattr(self, "classes_", ()))

    def _by_class(self, w: Array) -> Array:
        return w.reshape(len(w), self._n_classes, -1) if self._n_classes > 2 else w

    def _labels(self, y: Any, n_rows: int, first: bool) -> Array:
        classes, code = as_classes(y, n_rows)
        if not first:
            return self._known(classes, code)
        check_classification_targets(classes)
        self.classes_ = classes
        return code

    def _row_weights(self, sample_weight: Any, labels: Array, first: bool) -> Array | None:
        s, known = as_row_weights(sample_weight, len(labels)), ~np.isnan(labels)
        code = labels[known].astype(int)
        if first:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[code])
            for c, weight in zip(self.classes_.tolist(), self.class_weight_.tolist(), strict=True):
                if not 0 <= weight < np.inf:
                    raise ValueError(f"class_weight of {c!r} is {weight:g}; {WEIGHTS}")
        if self.class_weight is None:
            return s
        s = np.ones(len(labels)) if s is None else s.copy()
        s[known] *= self.class_weight_[code]
        return s

    def _check_labelled(self, rows: LabelledRows, holders: Holders) -> None:
        super()._check_labelled(rows, holders)
        counts = holders.added(np.bincount(rows.y.astype(int), minlength=self._n_classes).astype(float))
        there = self.classes_[counts > 0].tolist()
        if len(there) < 2:
            raise ValueError(f"{type(self).__name__} needs two classes, but y holds one class only: {there}")
        if self._n_classes > 2 and (unseen := [c for c in self.classes_.tolist() if c not in there]):
            raise ValueError(f"every row of the class {unseen[0]!r} has the sample weight zero; leave these rows out")

    def _known(self, classes: Array, code: Array) -> Array:
        """Number the classes as the fit did."""
        place = [np.flatnonzero(self.classes_ == c) for c in classes.tolist()]
        for number, k in enumerate(place):
            if not len(k):
                r, c = int(np.argmax(code == number)), classes.tolist()[number]
                raise ValueError(f"y[{r}] is of the class {c!r}; the model knows {self.classes_.tolist()}")
        labelled = ~np.isnan(code)
        code[labelled] = np.array([k[0] for k in place], dtype=float)[code[labelled].astype(int)]
        return code

    def _as_labels(self, predicted: Array) -> Array:
        return self.classes_[predicted.astype(int)]


@documented(CHOICE, CLASSES)
class NetworkedLogisticRegressionCV(ChoosesLam, NetworkedLogisticRegression):
    """Networked logistic regression with λ chosen by cross-validation of the log-loss.

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
    >>> X, y = [[1], [2], [1], [3], [1], [2], [1], [3]], ["no", "yes", "no", "yes", "yes", "no", "yes", "no"]
    >>> model = ct.NetworkedLogisticRegressionCV(graph, n_lams=3, cv=2, random_state=0).fit(X, y, groups=shops)
    >>> model.predict_proba([[3]], groups=["A"]).shape
    (1, 2)
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
        ridge: float = 1e-3,
        l1: float = 0.0,
        lower: Any = None,
        upper: Any = None,
        positive: bool = False,
        class_weight: Any = None,
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
