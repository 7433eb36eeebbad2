"""Can these labels resolve these clusters? Asked of the graph alone, before anything is fitted."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.graphs.flow import Cut, Network, best_sink, min_cut
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.problem.ids import as_ids, look_up, numbering, some_of
from coterie.solver import Clusters

ENOUGH = 2.0  # the flow that a resolved cluster can take in, in units of its boundary
SAME_FLOW = 1e-7  # flows closer than this are equal
SHOWN = 20  # clusters that a printed result lists
COLUMNS = (
    *("cluster", "n_nodes", "n_labelled", "boundary", "flow"),
    *("ratio", "margin", "resolved", "next_label", "gain"),
)


@dataclass(frozen=True)
class ClusterFlow:
    """What the labels of one cluster can take in.

    Attributes
    ----------
    cluster : hashable
        The name of the cluster.
    n_nodes, n_labelled : int
        How many nodes it has, and how many of them are labelled.
    boundary : float
        Σ A_e over the edges that leave the cluster.
    flow : float
        How much arrives at the labelled nodes when every edge e that leaves the cluster feeds in 2A_e and every
        edge inside carries at most A_e; at most 2 · boundary.
    margin : float
        The largest c ≤ 2 such that all of it arrives when every edge e that leaves the cluster feeds in cA_e.
        0 where a connected piece of the cluster has no label.
    bottleneck : tuple of pairs of node ids
        The edges of the minimum cut, which hold the flow up; none where the cluster is resolved.
    next_label : node id or None
        The node whose label would add most to the flow; None where the cluster is resolved.
    gain : float
        What that label would add to the flow.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> first, second = ct.resolvability(graph, labelled=[0], partition=[0, 0, 1])
    >>> first.margin, first.resolved, second.next_label
    (1.0, False, 2)
    """

    cluster: Hashable
    n_nodes: int
    n_labelled: int
    boundary: float
    flow: float
    margin: float
    bottleneck: tuple[tuple[Hashable, Hashable], ...]
    next_label: Hashable | None
    gain: float

    @property
    def ratio(self) -> float:
        """Flow over boundary, at most 2; 2 for a cluster without boundary."""
        return self.flow / self.boundary if self.boundary > 0 else ENOUGH

    @property
    def resolved(self) -> bool:
        """Whether the whole of 2 · boundary arrives."""
        return self.margin >= ENOUGH


@dataclass(frozen=True)
class Resolvability:
    """Which clusters of a partition the labels resolve; iterate over it for one :class:`ClusterFlow` per cluster.

    Attributes
    ----------
    clusters : tuple of ClusterFlow
        One per cluster.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], weights=[2, 1, 2])
    >>> found = ct.resolvability(graph, labelled=[0, 3], partition=[0, 0, 1, 1])
    >>> found.resolved, len(found), found.next_label
    (True, 2, None)
    """

    clusters: tuple[ClusterFlow, ...]

    @property
    def resolved(self) -> bool:
        """Whether all clusters are."""
        return all(c.resolved for c in self.clusters)

    @property
    def next_label(self) -> Hashable | None:
        """The node to label next: of those of the clusters, the one that adds most flow; None if all are resolved."""
        open_clusters = [c for c in self.clusters if not c.resolved]
        return max(open_clusters, key=lambda c: c.gain).next_label if open_clusters else None

    def to_dict(self) -> dict[str, list]:
        """Return columns, as ``pandas.DataFrame`` or ``polars.DataFrame`` take them.

        Returns
        -------
        dict of lists
            One row per cluster.
        """
        return {name: [getattr(c, name) for c in self.clusters] for name in COLUMNS}

    def __iter__(self) -> Iterator[ClusterFlow]:
        return iter(self.clusters)

    def __len__(self) -> int:
        return len(self.clusters)

    def __repr__(self) -> str:
        count = sum(c.resolved for c in self.clusters)
        lines = [
            f"Resolvability: {count} of {len(self)} clusters resolved",
            f"{'cluster':>12} {'nodes':>8} {'labelled':>8} {'boundary':>9} {'ratio':>6} {'margin':>6}  label next",
        ]
        lines += [
            f"{c.cluster!s:>12.12} {c.n_nodes:8} {c.n_labelled:8} {c.boundary:9.4g} {c.ratio:6.3f} {c.margin:6.3f}  "
            + ("resolved" if c.resolved else repr(c.next_label))
            for c in self.clusters[:SHOWN]
        ]
        return "\n".join(lines + ["…"] * (len(self) > SHOWN))


def resolvability(graph: EmpiricalGraph, labelled: Any, partition: Any) -> Resolvability:
    """Check by maximum flows whether the labelled nodes of each cluster can hold it against its neighbours.

    A cluster is resolved when the flow that enters it with 2A_e over every edge e to another cluster can be routed
    to its labelled nodes within the capacities A_e of its own edges. Without noise, with labels that determine the
    weights of their nodes, and as λ → 0, clusters with a margin above 1 are recovered exactly; 2 leaves room for
    noise. docs/resolvability.md has the derivation, its limits, and what was measured.

    Parameters
    ----------
    graph : EmpiricalGraph
        Its weights are the capacities A_e.
    labelled : sequence of node ids, or mask of shape (V,)
        The nodes with labels.
    partition : array-like of shape (V,), mapping or Clusters
        The cluster of each node in the order of the graph, or by node id, or as `Solution.clusters()` returns it.

    Returns
    -------
    Resolvability
        One :class:`ClusterFlow` per cluster.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> ct.resolvability(graph, labelled=[0], partition=[0, 0, 1, 1]).next_label
    2
    """
    M = _as_mask(graph, labelled)
    cluster, names = _as_partition(graph, partition)
    i, j = graph.edges.T
    inside = cluster[i] == cluster[j]
    leaving = np.where(inside, 0.0, graph.weights)
    b = np.bincount(i, leaving, graph.n_nodes) + np.bincount(j, leaving, graph.n_nodes)
    flows = []
    for name, nodes, edges in zip(names, *_by_cluster(graph, cluster, inside, len(names)), strict=True):
        ends = np.searchsorted(nodes, graph.edges[edges])
        network = Network(ends, graph.weights[edges], M[nodes])
        flows.append(_check(graph, name, nodes, network, b[nodes]))
    return Resolvability(tuple(flows))


def _check(graph: EmpiricalGraph, name: Hashable, nodes: NDArray[np.int64], network: Network, b: Array) -> ClusterFlow:
    """One cluster: `nodes` are its nodes, and `b` the weight of the edges by which each leaves it."""
    boundary = float(b.sum())
    if len(nodes) == 1:  # learnt partitions may have very many of these
        node = graph.names[nodes[0]]
        if network.sinks[0]:
            return ClusterFlow(name, 1, 1, boundary, ENOUGH * boundary, ENOUGH, (), None, 0.0)
        return ClusterFlow(name, 1, 0, boundary, 0.0, 0.0, (), node, ENOUGH * boundary)
    cut = min_cut(network, ENOUGH * b)
    lost = _piece_without_label(network)
    margin = 0.0 if lost.size else _margin(network, b, cut)
    bottleneck: tuple[tuple[Hashable, Hashable], ...] = ()
    chosen, gain = None, 0.0
    if cut.flow < ENOUGH * boundary * (1 - SAME_FLOW):
        i, j = nodes[network.edges[network.cut_edges(cut.side)]].T
        bottleneck = tuple((graph.names[p], graph.names[q]) for p, q in zip(i, j, strict=True))
        chosen, gain = best_sink(network, cut, ENOUGH * boundary - cut.flow)
    elif lost.size:
        chosen = lost[np.argmax(network.capacity[lost])]
    next_label = None if chosen is None else graph.names[nodes[chosen]]
    counts = len(nodes), int(network.sinks.sum())
    return ClusterFlow(name, *counts, boundary, cut.flow, margin, bottleneck, next_label, gain)


def _margin(network: Network, b: Array, cut: Cut) -> float:
    """The least of A(cut of S) / b(S) over the sets S of unlabelled nodes, and 2.

    From above: while c·b cannot be routed, the set that holds it up has a smaller quotient, and that is the next c.
    """
    c, boundary = ENOUGH, float(b.sum())
    while cut.flow < c * boundary * (1 - SAME_FLOW):
        c = float(network.A[network.cut_edges(cut.side)].sum() / b[cut.side].sum())
        cut = min_cut(network, c * b)
    return c


def _piece_without_label(network: Network) -> NDArray[np.int64]:
    """The nodes of the largest connected piece without a sink; none if there is no such piece."""
    pieces = EmpiricalGraph(network.n_nodes, network.edges, network.A).components
    size = np.bincount(pieces)
    size[pieces[network.sinks]] = 0
    return np.flatnonzero(pieces == np.argmax(size)) if size.any() else np.empty(0, dtype=np.int64)


def _by_cluster(
    graph: EmpiricalGraph, cluster: NDArray[np.int64], inside: NDArray[np.bool_], n: int
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """The nodes of each cluster, ascending, and the edges inside it."""
    nodes = np.argsort(cluster, kind="stable")
    edges = np.flatnonzero(inside)
    of_edge = cluster[graph.edges[edges, 0]]
    edges = edges[np.argsort(of_edge, kind="stable")]
    return (
        np.split(nodes, np.cumsum(np.bincount(cluster, minlength=n))[:-1]),
        np.split(edges, np.cumsum(np.bincount(of_edge, minlength=n))[:-1]),
    )


def _as_mask(graph: EmpiricalGraph, labelled: Any) -> NDArray[np.bool_]:
    given = np.asarray(labelled) if isinstance(labelled, list | np.ndarray) and len(labelled) else None
    if given is not None and given.dtype == bool:
        if given.shape != (graph.n_nodes,):
            raise ValueError(f"labelled is a mask of shape {given.shape}, but the graph has {graph.n_nodes} nodes")
        return given
    ids = as_ids(labelled, "labelled")
    M = np.zeros(graph.n_nodes, dtype=bool)
    numbers = graph.numbers(ids)
    M[numbers] = True
    if M.sum() < len(numbers):
        again = np.flatnonzero(np.bincount(numbers) > 1)[0]
        raise ValueError(f"node {graph.names[again]!r} is listed twice in labelled; give ids, or a mask of booleans")
    return M


def _as_partition(graph: EmpiricalGraph, partition: Any) -> tuple[NDArray[np.int64], list[Hashable]]:
    """The number of each node's cluster, and the names of the clusters."""
    if isinstance(partition, Clusters):
        partition = partition.joint
    if isinstance(partition, Mapping):
        graph.numbers(list(partition))
        missing = [name for name in graph.names if name not in partition]
        if missing:
            raise ValueError(f"partition gives no cluster for {some_of(missing)}; give one for every node")
        partition = [partition[name] for name in graph.names]
    labels = as_ids(partition, "partition")
    if len(labels) != graph.n_nodes:
        raise ValueError(f"partition names {len(labels)} clusters for {graph.n_nodes} nodes; give one for every node")
    empty = next((k for k, label in enumerate(labels) if label is None or label != label), None)
    if empty is not None:
        raise ValueError(f"partition gives the cluster {labels[empty]} to node {graph.names[empty]!r}; name one")
    names = list(dict.fromkeys(labels))
    return look_up(labels, numbering(names)), names
