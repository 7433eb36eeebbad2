"""What is drawn of a network: its nodes, or clusters in their place where there are too many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.ids import Pairs
from coterie.report.network import principal_tone
from coterie.report.text import called, measure_of, plural

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

MOST_NODES, MOST_COLUMNS = 10_000, 40


@dataclass(frozen=True, eq=False)
class DisplayGraph:
    """Nodes to draw; each stands for one node of the model, or for a cluster of them.

    Attributes
    ----------
    graph : EmpiricalGraph
        Joins what is drawn; the weight of an edge between clusters is the sum over the edges between them.
    names : list of str
    of : array of shape (V,)
        Which drawn node each node of the model belongs to, −1 where it is not drawn.
    n_nodes, n_labelled : arrays of shape (drawn,)
        How many nodes of the model each one stands for, and how many labelled rows they have.
    w, cluster, undetermined : arrays with one row for each drawn node
    error, held_out : arrays of shape (drawn,)
        In units of the labels: the error of training, and of labels held out; nan where there were none.
    aggregated : str
        A sentence that says what is not shown one by one; empty where everything is.
    time : str
        The time that is shown of places at times; empty where there is none.
    """

    graph: EmpiricalGraph
    names: list[str]
    of: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    n_labelled: NDArray[np.int64]
    w: Array
    error: Array
    held_out: Array
    cluster: NDArray[np.int64]
    undetermined: NDArray[np.bool_]
    aggregated: str
    time: str = ""

    @classmethod
    def of_model(cls, model: NetworkedModel, most: int | None = None) -> DisplayGraph:
        most = MOST_NODES if most is None else most
        V, pairs = model.graph_.n_nodes, model.graph_.ids
        if isinstance(pairs, Pairs) and len(pairs.first) <= most:
            return cls._last_time(model, pairs)
        if most >= V:
            return cls._make(model, np.arange(V), model.graph_, [called(name) for name in model.graph_.names], "")
        clusters, sizes = by_size(model)
        kept = clusters[:most]
        place = np.full(len(clusters), -1)
        place[kept] = np.arange(len(kept))
        names = [f"cluster {k}" for k in kept]
        text = f"With {plural(V, 'node')}, more than the {most:,} that a page can show, each dot is a cluster."
        if len(kept) < len(clusters):
            share = sizes[kept].sum() / V
            text += f" Of {len(clusters):,} clusters, the largest {most:,} are drawn ({share:.0%} of the nodes)."
        of = place[model.clusters_]
        return cls._make(model, of, contracted(model.graph_, of, len(kept)), names, text)

    @classmethod
    def _last_time(cls, model: NetworkedModel, pairs: Pairs) -> DisplayGraph:
        """The places at the last of their times."""
        n_places = len(pairs.first)
        of = np.full(len(pairs), -1)
        of[-n_places:] = np.arange(n_places)
        names = [str(name) for name in pairs.first]
        drawn = cls._make(model, of, contracted(model.graph_, of, n_places), names, "")
        return replace(drawn, time=str(pairs.second[-1]))

    @classmethod
    def _make(
        cls, model: NetworkedModel, of: NDArray[np.int64], graph: EmpiricalGraph, names: list[str], aggregated: str
    ) -> DisplayGraph:
        drawn = np.flatnonzero(of >= 0)
        example = drawn[np.unique(of[drawn], return_index=True)[1]]
        undetermined = np.zeros(model.graph_.n_nodes, dtype=bool)
        undetermined[model.solution_.undetermined] = True
        count, rows = np.bincount(of[drawn]), np.bincount(of[drawn], model.n_labelled_[drawn]).astype(np.int64)
        measure, held_out = measure_of(model), getattr(model, "held_out_", None)
        nothing = np.full(model.graph_.n_nodes, np.nan)
        trained = _mean_over(of, model.node_errors_, model.n_labelled_)
        unseen = _mean_over(
            of, nothing if held_out is None else held_out.node_errors**measure.degree, model.n_labelled_
        )
        errors = (measure.of_mean(trained), measure.of_mean(unseen))
        w, cluster = model.weights_[example], model.clusters_[example]
        return cls(graph, names, of, count, rows, w, *errors, cluster, undetermined[example], aggregated)

    def mean_of(self, values: Array) -> Array:
        """Average rows, one for each node of the model, over what each drawn node stands for."""
        drawn = self.of >= 0
        known = drawn & np.isfinite(values).all(axis=1)
        count = np.bincount(self.of[known], minlength=len(self.names))
        sums = [np.bincount(self.of[known], column[known], minlength=len(self.names)) for column in values.T]
        return np.stack([np.where(count > 0, s / np.maximum(count, 1), np.nan) for s in sums], axis=1)


def _mean_over(of: NDArray[np.int64], values: Array, m: NDArray[np.int64]) -> Array:
    """The mean of values, where they are known, over what each drawn node stands for, by labelled rows."""
    known = (of >= 0) & np.isfinite(values) & (m > 0)
    count = int(of.max()) + 1
    rows = np.bincount(of[known], m[known], minlength=count)
    total = np.bincount(of[known], (m * values)[known], minlength=count)
    return np.divide(total, rows, out=np.full(count, np.nan), where=rows > 0)


def by_size(model: NetworkedModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the clusters, largest first and like beside like, and the size of each cluster."""
    sizes = np.bincount(model.clusters_)
    first = np.unique(model.clusters_, return_index=True)[1]
    tone = principal_tone(model.weights_[first])[0]
    return np.lexsort((tone, -sizes)), sizes


def contracted(graph: EmpiricalGraph, of: NDArray[np.int64], n_nodes: int) -> EmpiricalGraph:
    """Return the graph of the groups `of`, with the weights between two groups summed; −1 is left out."""
    ends = np.sort(of[graph.edges], axis=1)
    across = (ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])
    keys, edge = np.unique(ends[across] @ np.array([n_nodes, 1]), return_inverse=True)
    pairs = np.stack([keys // n_nodes, keys % n_nodes], axis=1)
    A = np.bincount(edge, graph.weights[across], minlength=len(keys))
    return EmpiricalGraph.from_edges(pairs, A, n_nodes=n_nodes)


def neighbours(graph: EmpiricalGraph) -> Any:
    """Return for each node its neighbours, strongest edges first."""
    i, j = graph.edges.T
    at, to, A = np.concatenate([i, j]), np.concatenate([j, i]), np.tile(graph.weights, 2)
    order = np.lexsort((to, -A, at))
    return np.split(to[order], np.cumsum(graph.degrees)[:-1])


def most_varied(w: Array, most: int) -> NDArray[np.int64]:
    """The columns that vary most between nodes, relative to their size, in their order."""
    spread = w.std(axis=0) / np.maximum(np.abs(w).max(axis=0), np.finfo(float).tiny)
    return np.sort(np.argsort(-spread, kind="stable")[:most])
