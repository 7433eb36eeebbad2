"""A fitted model as things that other tools know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel


def column_names(model: NetworkedModel) -> list[str]:
    """Names of the columns of weights_: the features, x0, x1, … where they have none, and the intercept."""
    names = getattr(model, "feature_names_in_", None)
    features = [f"x{k}" for k in range(model.n_features_in_)] if names is None else [str(name) for name in names]
    return [*features, "intercept"] if model.fit_intercept else features


def coef_frame(model: NetworkedModel) -> Any:
    """One row per node: its id, coefficients, intercept and cluster."""
    names = ["node", *column_names(model), "cluster"]
    columns = [model.nodes_.tolist(), *model.weights_.T, model.clusters_]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise ValueError(f"coef_frame has a column {name!r} of its own; give the feature {name!r} another name")
    return as_frame(dict(zip(names, columns, strict=True)), model.frame_library_)


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


def to_networkx(model: NetworkedModel) -> Any:
    """The graph with the models of its nodes."""
    from importlib import import_module

    try:
        nx = import_module("networkx")
    except ImportError:
        raise ImportError("to_networkx needs networkx; install it with pip install networkx") from None
    graph, names, w = nx.Graph(), column_names(model), model.weights_
    for k, name in enumerate(model.graph_.names):
        here = dict(zip(names, w[k].tolist(), strict=True))
        graph.add_node(name, weights=here, cluster=int(model.clusters_[k]), labelled_rows=int(model.n_labelled_[k]))
    ids = model.graph_.names
    for (i, j), weight in zip(model.graph_.edges.tolist(), model.graph_.weights.tolist(), strict=True):
        graph.add_edge(ids[i], ids[j], weight=weight)
    return graph
