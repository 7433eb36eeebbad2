"""The stochastic block model of the paper: clusters of nodes, each cluster with one true weight vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from coterie.problem import EmpiricalGraph, LocalDatasets
from coterie.problem.arrays import Array
from coterie.problem.losses.base import linear_predictor

Normal = tuple[float, float]  # mean and standard deviation


@dataclass(frozen=True, eq=False)
class SyntheticNetwork:
    """A network whose true weights are known.

    Attributes
    ----------
    graph : EmpiricalGraph
        Its edges and their weights.
    data : LocalDatasets
        What a learner may see: the labels of unlabelled nodes are nan.
    labels : array of shape (N,)
        The labels of all rows of `data`, also of those that it hides.
    weights : array of shape (V, n)
        The true weight vector w̄ of every node.
    cluster : array of shape (V,)
        The cluster of every node, 0, 1, …

    Examples
    --------
    >>> from coterie.datasets import stochastic_block_model
    >>> network = stochastic_block_model((4, 4), labelled=2)
    >>> int(network.held_out.sum()), network.weights.shape
    (30, (8, 2))
    """

    graph: EmpiricalGraph
    data: LocalDatasets
    labels: Array
    weights: Array
    cluster: NDArray[np.int64]

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Mask of the rows whose label is hidden from the learner: the test set."""
        return np.isnan(self.data.y)


def stochastic_block_model(
    sizes: Sequence[int] = (150, 150),
    weights: ArrayLike = ((2.0, 2.0), (-2.0, 2.0)),
    *,
    p_in: float = 0.5,
    p_out: float = 1e-3,
    points: int = 5,
    labelled: int = 30,
    edge_weights: tuple[Normal, Normal] | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> SyntheticNetwork:
    """Draw the paper's synthetic network; the defaults are the printed ones.

    Features are standard normal and labels are y = ⟨x, w̄_i⟩ + noise · N(0, 1). Memory goes with the number of
    edges and rows, never with V². The graph, the features and the order in which nodes get labelled come from
    separate random streams: with the same seed, changing `labelled` or `edge_weights` leaves the rest alone.

    Parameters
    ----------
    sizes : sequence of int, default=(150, 150)
        The number of nodes of each cluster; nodes are numbered cluster by cluster.
    weights : array-like of shape (clusters, n), default=((2.0, 2.0), (-2.0, 2.0))
        The true weight vector of each cluster.
    p_in : float, default=0.5
        The probability of an edge inside a cluster.
    p_out : float, default=0.001
        The probability of an edge across two clusters.
    points : int, default=5
        m_i, the number of rows of each node.
    labelled : int, default=30
        How many nodes, chosen at random, show their labels.
    edge_weights : ((mean, sd), (mean, sd)), default=None
        Normal edge weights A_e inside a cluster and across. None: all 1.
    noise : float, default=0.0
        The standard deviation of the labels' noise.
    seed : int, default=0
        Of all random streams.

    Returns
    -------
    SyntheticNetwork
        The graph, the data, and what is true of them.

    Examples
    --------
    >>> from coterie.datasets import stochastic_block_model
    >>> network = stochastic_block_model((4, 4), labelled=2, p_in=1.0, p_out=0.0)
    >>> network.graph, network.cluster.tolist()
    (EmpiricalGraph(8 nodes, 12 edges), [0, 0, 0, 0, 1, 1, 1, 1])
    """
    w = np.asarray(weights, dtype=np.float64)
    _check(sizes, w, p_in, p_out, points, labelled, noise)
    for_edges, for_strengths, for_rows, for_labelled, for_noise = np.random.default_rng(seed).spawn(5)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    V = len(cluster)
    edges = _draw_edges(for_edges, sizes, p_in, p_out)
    graph = EmpiricalGraph.from_edges(edges, _draw_strengths(for_strengths, edges, cluster, edge_weights), n_nodes=V)
    nodes = np.repeat(np.arange(V), points)
    X = for_rows.standard_normal((len(nodes), w.shape[1]))
    labels = linear_predictor(X, w[cluster[nodes]]) + noise * for_noise.standard_normal(len(nodes))
    shown = np.zeros(V, dtype=bool)
    shown[for_labelled.permutation(V)[:labelled]] = True
    data = LocalDatasets.from_rows(X, np.where(shown[nodes], labels, np.nan), nodes, n_nodes=V)
    return SyntheticNetwork(graph, data, labels, w[cluster], cluster)


def _check(sizes: Sequence[int], w: Array, p_in: float, p_out: float, points: int, labelled: int, noise: float) -> None:
    if not sizes or min(sizes) < 1:
        raise ValueError(f"every cluster needs at least one node; got sizes {tuple(sizes)}")
    if w.ndim != 2 or len(w) != len(sizes):
        raise ValueError(f"there are {len(sizes)} clusters, so weights needs {len(sizes)} rows; got shape {w.shape}")
    for name, p in (("p_in", p_in), ("p_out", p_out)):
        if not 0 <= p <= 1:
            raise ValueError(f"{name} is a probability, between 0 and 1; got {p}")
    if points < 1:
        raise ValueError(f"every node needs at least one point; got points={points}")
    if not 0 <= labelled <= sum(sizes):
        raise ValueError(f"labelled must lie between 0 and the number of nodes, {sum(sizes)}; got {labelled}")
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise must be a finite number ≥ 0, got {noise}")


def _draw_edges(rng: Generator, sizes: Sequence[int], p_in: float, p_out: float) -> NDArray[np.int64]:
    """Edges inside each cluster, and from each cluster to all later ones."""
    V, first, parts = sum(sizes), 0, []
    for size in sizes:
        i, j = _triangle(_chosen(rng, size * (size - 1) // 2, p_in))
        parts.append(np.stack([first + i, first + j], axis=1))
        later = V - first - size
        places = _chosen(rng, size * later, p_out)
        parts.append(np.stack([first + places // max(later, 1), first + size + places % max(later, 1)], axis=1))
        first += size
    return np.concatenate(parts)


def _chosen(rng: Generator, N: int, p: float) -> NDArray[np.int64]:
    """Places among 0 … N − 1 that N coins of probability p would choose, by drawing the gaps between them."""
    if N == 0 or p == 0:
        return np.empty(0, dtype=np.int64)
    chunk = int(N * p + 4 * np.sqrt(N * p)) + 8
    parts, last = [], -1
    while last < N:
        gaps = np.minimum(rng.geometric(p, chunk), N + 1)
        parts.append(last + np.cumsum(gaps))
        last = int(parts[-1][-1])
    places = np.concatenate(parts)
    return places[places < N]


def _triangle(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs i < j, numbered (0, 1), (0, 2), (1, 2), (0, 3), …: place j(j − 1)/2 + i."""
    j = ((1 + np.sqrt(1 + 8 * places.astype(np.float64))) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > places  # the square root may be off by one unit in the last place
    j += j * (j + 1) // 2 <= places
    return places - j * (j - 1) // 2, j


def _draw_strengths(
    rng: Generator, edges: NDArray[np.int64], cluster: NDArray[np.int64], law: tuple[Normal, Normal] | None
) -> Array | None:
    if law is None:
        return None
    inside = cluster[edges[:, 0]] == cluster[edges[:, 1]]
    means, sds = np.where(inside[:, None], law[0], law[1]).T
    return means + sds * rng.standard_normal(len(edges))
