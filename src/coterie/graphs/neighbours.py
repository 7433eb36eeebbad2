"""A connected graph of near points, with weights that fall with the distance: what points are clustered on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.graphs.knn import check_k, nearest, unite
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array

LEAST = 1e-12  # no weight is smaller, so that remote points keep their edges


def neighbour_graph(X: Array, k: int, phi: float) -> EmpiricalGraph:
    """Join every point to its k nearest that differ from it, and components by their shortest links.

    The weights are exp(−φ d²/s), with s the mean of the squared lengths d². Points that are equal are joined to the
    first of them alone, by as much weight as it has otherwise: then no pull on it is strong enough to part them, and
    that holds for the ℓ2 norm and for the ℓ1 norm.
    """
    first = first_alike(X)
    different, copies = np.unique(first), np.flatnonzero(first != np.arange(len(X)))
    pairs, A = _between(X[different], k, phi)
    pairs = different[pairs]
    pull = np.bincount(pairs.ravel(), np.repeat(A, 2), len(X))[first[copies]]
    pairs = np.concatenate([pairs, np.stack([first[copies], copies], axis=1)])
    return EmpiricalGraph.from_edges(pairs, np.append(A, np.where(pull > 0, pull, 1.0)), n_nodes=len(X))


def first_alike(X: Array) -> NDArray[np.int64]:
    """The first point that is equal to each."""
    _, first, of = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return first[of.ravel()].astype(np.int64)


def _between(X: Array, k: int, phi: float) -> tuple[NDArray[np.int64], Array]:
    """The edges between points that differ, and their weights."""
    if len(X) == 1:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    found, distances = nearest(X, check_k(min(k, len(X) - 1), len(X)), "euclidean")
    pairs, d = unite(np.arange(len(X)), found, distances)
    pairs, d = _joined(X, pairs, d)
    s = float((d**2).mean()) or 1.0  # squares of the smallest numbers are 0
    return pairs, np.maximum(np.exp(-phi * d**2 / s), LEAST)


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
