"""A fitted model as things that other tools know."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.refit import Refit
from coterie.estimators.space_time import pairs_of
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.losses.multinomial import weight_names
from coterie.problem.penalties import SquaredVariation


class ExportMixin:
    """Frames and graphs of a fitted model. Mixed into a networked model; the attributes are its own."""

    fit_intercept: bool
    penalty: Any
    n_features_in_: int
    frame_library_: str | None
    groups_column_: str | list[str] | None
    graph_: EmpiricalGraph
    nodes_: Array
    coef_: Array
    intercept_: Array
    clusters_: NDArray[np.int64]
    n_labelled_: NDArray[np.int64]
    _refit: Refit | None

    @property
    def weights_(self) -> Array:
        """coef_ and, where there is one, intercept_ as the last column; those of one class after those of another."""
        return self._by_column.reshape(len(self.coef_), -1)

    @property
    def _by_column(self) -> Array:
        """The same (nodes, columns), or (nodes, classes, columns) where each class has its own."""
        each = [self.coef_, self.intercept_[..., None]] if self.fit_intercept else [self.coef_]
        return np.concatenate(each, axis=-1)

    def coef_frame(self, errors: bool = False) -> Any:
        """Return the coefficients, intercept and cluster of every node as a frame.

        Parameters
        ----------
        errors : bool, default=False
            Whether every coefficient is followed by its standard error, of a model with refit="clusters". The column
            "x_se_given_clusters" says what it is: it treats the clusters as if they had been known before the data
            were seen, and so is too small where other data would have given other clusters. Of more than two classes,
            coefficients are then what a class has beyond the mean of all classes at the node, which predicts the same,
            and which rows determine. nan: the rows do not determine it, it is held at zero, or classes are weighted,
            so that labels are not drawn as the model says.

        Returns
        -------
        DataFrame
            One row per node, of the library that X came from; of pandas, or else polars, where X was an array. Places
            at times have a column for each.

        Raises
        ------
        ValueError
            If a feature is called "node", "cluster" or "intercept", like a column of the frame, or errors are asked
            of a model without a refit.
        """
        return as_frame(self._coef_columns(errors), self.frame_library_)

    def _coef_columns(self, errors: bool = False) -> dict[str, Any]:
        """The same as a dictionary of columns."""
        w, nodes = self._by_column, node_columns(self)
        if errors and w.ndim == 3:
            w = w - w.mean(axis=1, keepdims=True)
        named = list(zip(column_names(self), w.reshape(len(w), -1).T, strict=True))
        if errors:
            if self._refit is None:
                smooth = self.penalty == "squared" or isinstance(self.penalty, SquaredVariation)
                how = 'with refit="clusters"' + (' and penalty="l1" or "l2", which make clusters' if smooth else "")
                raise ValueError(f"standard errors are those of a refit; fit a model {how}")
            pairs = zip(named, self._refit.errors[: len(self.nodes_)].T, strict=True)
            named = [one for (name, w), se in pairs for one in ((name, w), (f"{name}_se_given_clusters", se))]
        names = [*nodes, *(name for name, _ in named), "cluster"]
        columns = [*nodes.values(), *(values for _, values in named), self.clusters_]
        for k, name in enumerate(names):
            if name in names[:k]:
                raise ValueError(f"coef_frame has a column {name!r} of its own; give the feature {name!r} another name")
        return dict(zip(names, columns, strict=True))

    def to_networkx(self) -> Any:
        """Return the graph with the model of each node.

        Returns
        -------
        networkx.Graph
            Nodes have the attributes "weights" (a dict), "cluster" and "labelled_rows", edges the attribute "weight".

        Raises
        ------
        ImportError
            If networkx is not installed.
        """
        from importlib import import_module

        try:
            nx = import_module("networkx")
        except ImportError:
            raise ImportError("to_networkx needs networkx; install it with pip install networkx") from None
        graph, names, w, ids = nx.Graph(), column_names(self), self.weights_, self.graph_.names
        for k, name in enumerate(ids):
            here = dict(zip(names, w[k].tolist(), strict=True))
            graph.add_node(name, weights=here, cluster=int(self.clusters_[k]), labelled_rows=int(self.n_labelled_[k]))
        for (i, j), weight in zip(self.graph_.edges.tolist(), self.graph_.weights.tolist(), strict=True):
            graph.add_edge(ids[i], ids[j], weight=weight)
        return graph


def node_columns(model: ExportMixin) -> dict[str, list[Any]]:
    """The ids of the nodes: one column; or two, of places and times, called as those of the fit."""
    pairs = pairs_of(model.graph_)
    if pairs is None:
        return {"node": model.nodes_.tolist()}
    place, time = model.groups_column_ if isinstance(model.groups_column_, list) else ("place", "time")
    V, T = len(pairs.first), len(pairs.second)
    return {place: list(pairs.first) * T, time: [t for t in pairs.second for _ in range(V)]}


def column_names(model: ExportMixin) -> list[str]:
    """Names of the columns of weights_; where each class has weights of its own, with its name: "cat: weight"."""
    columns = names_of_design(model)
    if model.coef_.ndim == 2:
        return columns
    return weight_names(columns, model.classes_.tolist())  # type: ignore[attr-defined]


def names_of_design(model: ExportMixin) -> list[str]:
    """Names of what weights are about: the features, x0, x1, … where they have no names, and the intercept."""
    names = getattr(model, "feature_names_in_", None)
    features = [f"x{k}" for k in range(model.n_features_in_)] if names is None else [str(name) for name in names]
    return [*features, "intercept"] if model.fit_intercept else features


def as_frame(columns: dict[str, Any], library: str | None) -> Any:
    """Return a frame of this library; without one, of pandas or polars, whichever is there."""
    import narwhals.stable.v1 as nw

    backends: dict[Any, None] = dict.fromkeys((library or "pandas", "pandas", "polars"))
    for backend in backends:
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError:
            continue
    raise ImportError("a frame needs pandas or polars; install one of them")
