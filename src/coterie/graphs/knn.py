"""A graph of nearest neighbours: places that are close get similar models."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from coterie.graphs.frames import as_matrix, index_of
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array, as_floats, as_whole
from coterie.problem.convert import typical_distance, weights_from_distances
from coterie.problem.ids import as_ids, numbering

EARTH_RADIUS = 6371.0088  # kilometres, the mean radius
LEAST_GAUSSIAN = 1e-6  # so that no weight is zero, nor millions of times smaller than another
MANY, WIDE = 100_000, 5  # trees are exact, and quicker than graph search on fewer nodes or columns

Weight = Literal["inverse", "gaussian"] | Callable[[Array], Any]


def knn_graph(
    coordinates: Any,
    k: int,
    weight: Weight = "inverse",
    metric: str = "haversine",
    ids: Sequence[Hashable] | None = None,
) -> EmpiricalGraph:
    """Join every node to its k nearest; two nodes are neighbours when either is among the other's k nearest.

    Parameters
    ----------
    coordinates : array-like of shape (V, d), or a frame (pandas, polars, …) of d columns
        One row per node. For "haversine": latitude, longitude in degrees.
    k : int
        1 ≤ k < V.
    weight : {"inverse", "gaussian"} or callable, default="inverse"
        How the weight A_e follows from the distance d_e, with s the median of the distances that are not zero:

        * "inverse": 1/(d + s/10), so that coincident points get 10/s and not infinity;
        * "gaussian": exp(−d²/2s²), but never below 1e-6 (d beyond 5.3 s), so that a remote node keeps its edges;
        * a callable gets the distances of all edges, shape (E,), and returns as many weights, all positive.

        Where all distances are zero, s = 1.
    metric : str, default="haversine"
        "haversine": the distance on the Earth's surface in kilometres. Or another metric of scikit-learn's
        NearestNeighbors, such as "euclidean", "manhattan" or "cosine", in the units of the coordinates.
    ids : sequence, default=None
        What the nodes are called, in the order of the rows. None: as in the index of a pandas frame, else their
        numbers.

    Returns
    -------
    EmpiricalGraph
        One node per row of coordinates.

    Raises
    ------
    ValueError
        If a coordinate is missing, k does not fit the number of nodes, or a weight is not positive.

    Notes
    -----
    The neighbours are exact (trees of scikit-learn), unless there are more than 100,000 nodes in more than 5
    columns and pynndescent is installed (the extra ``coterie[graphs]``): then they are nearly so, and much quicker.

    Examples
    --------
    Weights of 1/(miles + 0.1):

    >>> import coterie as ct
    >>> places = [[38.63, -121.43], [38.48, -121.43], [38.62, -121.44]]
    >>> ct.knn_graph(places, 1, weight=lambda km: 1 / (km / 1.609344 + 0.1))
    EmpiricalGraph(3 nodes, 2 edges)
    """
    points, columns = as_matrix(coordinates, "coordinates")
    call = as_ids(index_of(coordinates, len(points)) if ids is None else ids)
    if len(call) != len(points):
        raise ValueError(f"coordinates has {len(points)} rows, but there are {len(call)} ids")
    numbering(call)
    _refuse_gaps(points, call)
    if len(points) == 1:
        raise ValueError(f"there is one node only, {call[0]!r}, and nothing to join it to; a network has two or more")
    k = check_k(k, len(points))
    if metric == "haversine":
        neighbours, chords = nearest(_on_the_sphere(points, columns, call), k, "euclidean")
        distances = 2 * EARTH_RADIUS * np.arcsin(np.minimum(chords / 2, 1.0))
    else:
        neighbours, distances = nearest(points, k, metric)
    pairs, d = unite(np.arange(len(points)), neighbours, distances)
    return EmpiricalGraph.from_edges(pairs, edge_weights(d, weight, pairs, call), ids=call)


def latitude_and_longitude(names: Sequence[str]) -> tuple[int | None, int | None]:
    """Which of the columns are latitude and longitude, as their names begin; None where none is."""
    lat, lon = ([name.lower().startswith(begin) for name in names] for begin in (("lat",), ("lon", "lng")))
    return lat.index(True) if any(lat) else None, lon.index(True) if any(lon) else None


def check_k(k: Any, n_candidates: int, nodes: str = "nodes") -> int:
    """Return k, or say why there are not k neighbours."""
    k = as_whole(k, "k")
    if not 1 <= k < n_candidates:
        raise ValueError(f"k must lie between 1 and {n_candidates - 1}, the number of other {nodes}; got {k}")
    return k


def nearest(points: Array, k: int, metric: str) -> tuple[NDArray[np.int64], Array]:
    """The k nearest other points of every point, and their distances, both of shape (V, k)."""
    if len(points) > MANY and points.shape[1] > WIDE:
        try:
            from pynndescent import NNDescent
        except ImportError:
            pass
        else:
            found, distances = NNDescent(points, metric=metric, n_neighbors=k + 1, random_state=0).neighbor_graph
            return _without_self(found.astype(np.int64), distances.astype(np.float64))
    from sklearn.neighbors import NearestNeighbors

    distances, found = NearestNeighbors(n_neighbors=k, metric=metric).fit(points).kneighbors()
    return found.astype(np.int64), distances


def _without_self(found: NDArray[np.int64], distances: Array) -> tuple[NDArray[np.int64], Array]:
    """Drop each point from its own list, or the last of the list where it is not in there."""
    own = found == np.arange(len(found))[:, None]
    own[~own.any(axis=1), -1] = True
    return found[~own].reshape(len(found), -1), distances[~own].reshape(len(found), -1)


def unite(nodes: NDArray[np.int64], neighbours: NDArray[np.int64], distances: Array) -> tuple[NDArray[np.int64], Array]:
    """Every edge once, as (i, j) with i < j, from the lists of neighbours of `nodes`; and its length."""
    pairs = np.stack([np.repeat(nodes, neighbours.shape[1]), neighbours.ravel()], axis=1)
    pairs.sort(axis=1)
    _, first = np.unique(pairs[:, 0] * (pairs.max() + 1) + pairs[:, 1], return_index=True)
    return pairs[first], distances.ravel()[first]


def edge_weights(d: Array, weight: Weight, pairs: NDArray[np.int64], call: Sequence[Hashable]) -> Array:
    """A_e from the lengths of the edges; `call` names the nodes in messages."""
    if weight == "inverse":
        return weights_from_distances(d)
    if weight == "gaussian":
        return np.maximum(np.exp(-0.5 * (d / typical_distance(d)) ** 2), LEAST_GAUSSIAN)
    if not callable(weight):
        raise ValueError(f'weight must be "inverse", "gaussian" or a function of the distances, got {weight!r}')
    A = as_floats(weight(d.copy()), "what weight returns")
    if A.shape != d.shape:
        raise ValueError(f"weight got {len(d)} distances and must return as many weights; it returned shape {A.shape}")
    bad = np.flatnonzero(~(np.isfinite(A) & (A > 0)))
    if bad.size:
        i, j = pairs[bad[0]]
        raise ValueError(
            f"weight gives {A[bad[0]]} for the distance {d[bad[0]]:g} between nodes {call[i]!r} and {call[j]!r}; "
            "weights must be positive and finite"
        )
    return A


def _refuse_gaps(points: Array, call: Sequence[Hashable]) -> None:
    bad = np.argwhere(~np.isfinite(points))
    if bad.size:
        r, c = bad[0]
        raise ValueError(f"row {r} of coordinates (node {call[r]!r}) is {points[r, c]} in column {c}; fill or drop it")


def _on_the_sphere(points: Array, columns: list[str] | None, call: Sequence[Hashable]) -> Array:
    """Latitudes and longitudes as unit vectors, or an error where they cannot be that.

    Chords order places as arcs do, and trees of vectors are much quicker than trees of angles.
    """
    if points.shape[1] != 2:
        raise ValueError(
            f"haversine takes two columns, latitude and longitude; coordinates has {points.shape[1]} "
            '(for other coordinates give a metric, such as metric="euclidean")'
        )
    hint = "give latitude, then longitude, in degrees; are the columns swapped?"
    if columns is not None and latitude_and_longitude(columns)[1] == 0:
        raise ValueError(f"the first column of coordinates is {columns[0]!r}: {hint}")
    for c, (name, most) in enumerate((("latitude", 90), ("longitude", 360))):
        far = np.flatnonzero(np.abs(points[:, c]) > most)
        if far.size:
            r = far[0]
            raise ValueError(f"row {r} of coordinates (node {call[r]!r}) has the {name} {points[r, c]:g}: {hint}")
    lat, lon = np.radians(points).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
