"""From the tables that a model is given to the rows of the nodes of its graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie.estimators.coefficients import Coefficients
from coterie.estimators.column_strength import as_array, of_weights
from coterie.estimators.offsets import Offset
from coterie.estimators.scaling import Holders, Scaling
from coterie.estimators.shared import HUB, numbers_or_hub, with_hub
from coterie.estimators.space_time import SpaceTime, nodes_of_rows
from coterie.estimators.tables import (
    as_graph,
    as_row_weights,
    check_numbers,
    columns_of_groups,
    has_column,
    library_of,
    name_of,
    refuse_gaps,
    take_groups,
)
from coterie.graphs.similarity_recipe import SimilarityGraph, nodes_of
from coterie.io.preparation import Preparation
from coterie.problem import EmpiricalGraph, LocalDatasets, Problem
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses import LocalLosses, Loss
from coterie.problem.losses.base import with_offset
from coterie.problem.losses.squared import Reduction
from coterie.problem.penalties import Penalty, as_penalty

if TYPE_CHECKING:
    from coterie.estimators.new_nodes import NewRows


class InputMixin(Coefficients):
    """Read X, y and groups. Mixed into a networked model; the parameters and attributes are its own."""

    graph: Any
    penalty: str | Penalty
    column_strength: Mapping[Any, float] | None = None
    fit_intercept: bool
    standardize: bool
    weight_by: str
    node: str | Sequence[str] | None
    shared: bool
    groups_column_: str | list[str] | None
    n_features_in_: int
    scaling_: Scaling
    row_weight_: float
    strengths_: Array | None = None
    preparation_: Preparation | None = None
    time_strength: float = 1.0
    space_time_: SpaceTime | None = None
    time_strength_: float
    offset_: Offset | None = None

    @abstractmethod
    def _loss(self, unpenalised: tuple[int, ...]) -> Loss:
        """The loss, which leaves these columns (the intercept) out of ridge, l1 and alpha."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "lam": [Real],
        "l1": [Interval(Real, 0, None, closed="left")],
        "lower": [None, Real, "array-like", dict],
        "upper": [None, Real, "array-like", dict],
        "positive": ["boolean"],
        "column_strength": [None, dict],
        "refine_strength": ["boolean"],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "shared": ["boolean"],
        "warm_start": ["boolean"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_lams": [Interval(Integral, 1, None, closed="left")],
        "cv_repeats": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "time_limit": [None, Interval(Real, 0, None, closed="left")],
        "node": [None, str, list, tuple],
        "n_jobs": [None, Integral],
        "time_strength": [Interval(Real, 0, None, closed="neither")],
        "time_strengths": [None, "array-like"],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "adaptive": ["boolean"],
        "learn_graph": ["boolean"],
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "class_weight": [None, dict, StrOptions({"balanced"})],
    }

    _takes_offset = False
    """Whether something can be known of predictions beforehand: counts have exposures."""
    _scales_labels = True
    """Whether labels are numbers, which have a unit."""
    _robust = False
    """Whether that unit is one that outliers do not change."""
    _degree = 2
    """The loss is in units of the labels to this power, where they have one."""

    @abstractmethod
    def _labels(self, y: Any, n_rows: int, first: bool) -> Array:
        """Labels as the loss takes them, nan where there is none. `first`: learn which classes there are."""

    def _row_weights(self, sample_weight: Any, labels: Array, first: bool) -> Array | None:
        """How much each row counts; None where all count alike. `first`: learn what classes count."""
        return as_row_weights(sample_weight, len(labels))

    def _take_offset(self, X: Any, given: Offset | None, *, first: bool) -> tuple[Any, Array | None]:
        """X without the column of the offset, and what is added to ⟨x, w⟩ of each row. `first`: learn how it is given.

        Here nothing is: a model that has offsets says how.
        """
        return X, None

    def _check_labelled(self, rows: LabelledRows, holders: Holders) -> None:
        """Refuse rows that nothing can be learnt from; `holders` have them all."""
        if not holders.added(float(len(rows.M))):
            raise ValueError("there is nothing to learn from: every y is nan, or every sample weight zero")

    def _problem(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, offset: Offset | None = None
    ) -> tuple[Problem, Array]:
        """The problem at λ = 0, and the row of X that each row of its data was."""
        groups = self.node if groups is None else groups
        self.groups_column_ = columns_of_groups(X, groups)
        self.frame_library_, self.target_name_ = library_of(X), name_of(y)
        graph = self._as_graph(groups, X)
        data, nodes = self._rows(X, y, groups, sample_weight, graph, offset, first=True)
        return self._stated(graph, data), np.argsort(nodes, kind="stable")

    @property
    def _strengths(self) -> list[float]:
        """The strengths in time that may be chosen: one."""
        return [self.time_strength]

    def _as_graph(self, groups: Any, X: Any = None) -> EmpiricalGraph:
        """The graph to learn on: of two graphs, their product with the first of the strengths in time.

        Where the rows X make the graph, these are its nodes alone.
        """
        self.space_time_ = SpaceTime.of(self.graph)
        if isinstance(self.graph, SimilarityGraph):
            if groups is None or X is None:
                raise ValueError(
                    "SimilarityGraph joins the nodes of rows in memory; say with groups= which node each belongs to"
                )
            return nodes_of(take_groups(X, groups)[1])
        if self.space_time_ is None:
            if self.time_strength != 1 or getattr(self, "time_strengths", None) is not None:
                raise ValueError("a strength in time needs graph=(space, time), two graphs")
            return as_graph(self.graph, groups)
        if self.shared:
            raise ValueError("shared=True is for one graph; with graph=(space, time) leave it out")
        self.time_strength_ = self._strengths[0]
        return self.space_time_.graph(self.time_strength_)

    def _in_time(self, problem: Problem, strength: float) -> Problem:
        """The same problem with another strength in time."""
        if self.space_time_ is None:
            return problem
        return replace(problem, graph=self.space_time_.graph(strength))

    def _stated(self, graph: EmpiricalGraph, data: LocalDatasets) -> Problem:
        """The problem at λ = 0, in units of its own if asked."""
        self._check_parameters()
        self._check_labelled(data.labelled, Holders())
        first = data.labelled
        if self.shared:
            graph, data = with_hub(graph, data)
        self._find_units(first, data.labelled)
        loss, penalty = self._loss(self._unpenalised), as_penalty(self.penalty)
        return Problem(graph, self._in_units(data), loss, penalty, lam=0.0, strength=self._find_strengths(loss))

    def _find_strengths(self, loss: Loss) -> Array | None:
        """Learn the strengths of columns; return those of weights, None where nothing is said of them."""
        names = getattr(self, "feature_names_in_", None)
        self.strengths_ = as_array(self.column_strength, names, self.n_features_in_, self.fit_intercept)
        return None if self.strengths_ is None else of_weights(self.strengths_, loss)

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be used; what columns became before this fit is forgotten."""
        self._validate_params()  # type: ignore[attr-defined]
        self.preparation_ = None
        if self.weight_by not in ("rows", "nodes"):
            raise ValueError(f'weight_by must be "rows" or "nodes", got {self.weight_by!r}')

    def _find_units(self, rows: LabelledRows, scaled: LabelledRows, holders: Holders | None = None) -> None:
        """Learn what a row counts, and the units of rows `scaled`, where `holders` have them all."""
        holders = holders or Holders()
        per_node = float(holders.added(rows.weights.sum()) / holders.added(float(len(rows.M))))
        self.row_weight_ = 1 / per_node if self.weight_by == "rows" else 1.0
        n, labels = self.n_features_in_, self._scales_labels
        self.scaling_ = Scaling.none(n)
        if self.standardize:
            self.scaling_ = Scaling.of(scaled, n, labels, self._robust, holders)

    def _rows(
        self,
        X: Any,
        y: Any,
        groups: Any,
        sample_weight: Any,
        graph: EmpiricalGraph,
        offset: Offset | None = None,
        *,
        first: bool,
    ) -> tuple[LocalDatasets, Array]:
        """The rows of X in the nodes of the graph, and the node of each as they came. `first`: learn what X is like."""
        X, known = self._take_offset(X, offset, first=first)
        features, nodes = self._features_and_nodes(X, groups, graph, first=first)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        labels = self._labels(y, len(features), first)
        weights = self._row_weights(sample_weight, labels, first)
        data = LocalDatasets.from_rows(self._design(features), labels, nodes, graph.n_nodes, weights, known)
        return data if first else self._in_units(data), nodes

    def _in_units(self, data: LocalDatasets) -> LocalDatasets:
        """Rows and labels in the units that are solved in."""
        data = replace(data, weights=self.row_weight_ * data.weights)
        return self.scaling_.data(data) if self.standardize else data

    def _rows_and_weights(self, X: Any, groups: Any, offset: Offset | None = None) -> tuple[Array, Array]:
        """The rows of X, with intercept and offset, and the weights of the node of each."""
        check_is_fitted(self)
        X, known = self._take_offset(X, offset, first=False)
        solution = self.solution_  # type: ignore[attr-defined]
        features, nodes = self._features_and_nodes(X, groups, solution.graph, first=False, later=True)
        design = self._design(features)
        w = self._weights_and_groups()[0][nodes]  # type: ignore[attr-defined]
        return with_offset(self.scaling_.rows(design) if self.standardize else design, w, known)

    def _features_and_nodes(
        self, X: Any, groups: Any, graph: EmpiricalGraph, *, first: bool, later: bool = False
    ) -> tuple[Array, NDArray[np.int64]]:
        """The features as numbers, and the node of each row; a column that the fit found them in is found again.

        later : times after the last one of the graph are meant to be that one.
        """
        known = [self.groups_column_] if isinstance(self.groups_column_, str) else self.groups_column_ or []
        if groups is None and any(has_column(X, name) for name in known):
            groups = self.groups_column_
        X, ids = take_groups(X, groups)
        check_numbers(X)
        how: dict[str, Any] = {"dtype": np.float64, "order": "C", "ensure_all_finite": False, "reset": first}
        features = validate_data(self, X, **how)  # the same sums for every library
        refuse_gaps(features, getattr(self, "feature_names_in_", None))
        hub = self.shared and graph.ids is not None and graph.ids[-1] == HUB
        if ids is None and (n_nodes := graph.n_nodes - hub) > 1:
            raise ValueError(f"there are {n_nodes} nodes; say with groups= which one each row belongs to")
        if ids is None:
            nodes = np.zeros(len(features), dtype=np.int64)
        elif hub:  # other nodes have the shared model
            nodes = numbers_or_hub(graph, ids)
        else:
            nodes = nodes_of_rows(graph, ids, later)
        if len(nodes) != len(features):
            raise ValueError(f"X has {len(features)} rows, groups {len(nodes)}")
        return features, nodes

    def _loss_of_one(self, given: NewRows) -> LocalLosses | None:
        """L of one node with these rows; None where none of them has a label."""
        if has_column(given.X, self.groups_column_):
            X, ids = take_groups(given.X, self.groups_column_)
            if len(set(ids)) > 1:
                raise ValueError(f"the rows of one node are wanted; {self.groups_column_!r} names {len(set(ids))}")
            given = given._replace(X=X)
        rows = given.in_nodes(self, as_graph(None, None)).labelled  # type: ignore[arg-type]
        return self._loss(self._unpenalised).bind(rows) if len(rows.M) else None

    @property
    def _reduction(self) -> Reduction:
        """How a loss adds up the rows of a node."""
        return "sum" if self.weight_by == "rows" else "mean"

    @property
    def _unpenalised(self) -> tuple[int, ...]:
        return (self.n_features_in_,) if self.fit_intercept else ()

    def _design(self, features: Array) -> Array:
        """Features with the column of the intercept at the end."""
        return np.column_stack([features, np.ones(len(features))]) if self.fit_intercept else features
