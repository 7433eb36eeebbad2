"""Which nodes share a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array


@dataclass(frozen=True, eq=False)
class Clusters:
    """Connected sets of nodes with exactly equal weights, numbered from 0 in the order of their first nodes.

    Attributes
    ----------
    joint : array of shape (V,)
        The cluster of each node when all coordinates must agree.
    by_coordinate : array of shape (V, n)
        The cluster of each node in each coordinate alone.

    Examples
    --------
    >>> import numpy as np
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> clusters = ct.Clusters.of(graph, np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 3.0]]))
    >>> clusters.joint.tolist(), clusters.sizes.tolist(), clusters.by_coordinate[:, 0].tolist()
    ([0, 1, 1], [1, 2], [0, 0, 0])
    """

    joint: NDArray[np.int64]
    by_coordinate: NDArray[np.int64]

    @classmethod
    def of(cls, graph: EmpiricalGraph, w: Array) -> Clusters:
        """Find the clusters of weights.

        Parameters
        ----------
        graph : EmpiricalGraph
            Clusters are connected in it.
        w : array of shape (V, n)
            The weights of every node.

        Returns
        -------
        Clusters
            Jointly and by coordinate.
        """
        i, j = graph.edges.T
        equal = w[i] == w[j]
        columns = [_connected(graph, equal[:, k]) for k in range(w.shape[1])]
        return cls(_connected(graph, equal.all(axis=1)), np.stack(columns, axis=1))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many nodes each joint cluster has."""
        return np.bincount(self.joint)

    def __len__(self) -> int:
        return int(self.joint.max()) + 1

    def __repr__(self) -> str:
        return f"Clusters({len(self)} joint; {[int(m) + 1 for m in self.by_coordinate.max(axis=0)]} by coordinate)"


def _connected(graph: EmpiricalGraph, edge: NDArray[np.bool_]) -> NDArray[np.int64]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    i, j = graph.edges[edge].T
    links = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(graph.n_nodes, graph.n_nodes))
    return connected_components(links, directed=False)[1].astype(np.int64)
