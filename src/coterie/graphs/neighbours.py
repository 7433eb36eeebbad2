"""A connected graph of near points, with weights that fall with the distance: what points are clustered on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.graphs.knn import check_k, nearest, unite
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array

LEAST = 1e-12  # no weight is smaller, so that remote points keep their edges


def neighbour_graph(X: Array, k: int, phi: float) -> EmpiricalGraph:
    """Join every point to its k nearest, and components by their shortest links, with weights exp(−φ d²/s).

    s is the mean of the squared lengths d² of the edges, those between equal points left out.
    """
    if len(X) == 1:
        return EmpiricalGraph.from_edges([], n_nodes=1)
    found, distances = nearest(X, check_k(min(k, len(X) - 1), len(X)), "euclidean")
    pairs, d = unite(np.arange(len(X)), found, distances)
    pairs, d = _joined(X, pairs, d)
    s = float((d[d > 0] ** 2).mean()) if d.any() else 1.0
    A = np.exp(-phi * d**2 / s)
    return EmpiricalGraph.from_edges(pairs, np.maximum(A, LEAST), n_nodes=len(X))


def _joined(X: Array, pairs: NDArray[np.int64], d: Array) -> tuple[NDArray[np.int64], Array]:
    """Add the shortest link of each component to another one, again and again, until there is one."""
    from sklearn.neighbors import NearestNeighbors

    while (component := EmpiricalGraph.from_edges(pairs, n_nodes=len(X)).components).any():
        links, lengths = [], []
        for c in range(component.max() + 1):
            inside, outside = np.flatnonzero(component == c), np.flatnonzero(component != c)
            far, near = NearestNeighbors(n_neighbors=1).fit(X[outside]).kneighbors(X[inside])
            shortest = int(far[:, 0].argmin())
            links.append(sorted((inside[shortest], outside[near[shortest, 0]])))
            lengths.append(far[shortest, 0])
        links_, first = np.unique(np.array(links), axis=0, return_index=True)
        pairs, d = np.concatenate([pairs, links_]), np.concatenate([d, np.array(lengths)[first]])
    return pairs, d
