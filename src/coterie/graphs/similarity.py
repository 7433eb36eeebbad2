"""A graph from the data alone: nodes whose local models, means or gradients are alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.graphs.frames import as_matrix
from coterie.graphs.knn import Weight, check_k, edge_weights, nearest, unite
from coterie.problem import EmpiricalGraph, LocalDatasets
from coterie.problem.arrays import Array
from coterie.problem.ids import as_ids, is_absent, look_up, numbering
from coterie.problem.losses import Loss, SquaredError
from coterie.problem.losses.base import by_node, check_strength

SQUARED = SquaredError()
FEW, DRAWN = 500, 100_000  # up to so many points the median is over all pairs; above, over so many random ones
MOST_PAIRS = 10**7  # that a threshold may join: beyond that, they take gigabytes
SEEN = 1e-10  # of the largest curvature, columns in unit length: directions with less are not compared


def similarity_graph(
    X: Any,
    y: Any,
    groups: Any,
    k: int = 5,
    weight: Weight = "inverse",
    loss: Loss = SQUARED,
    ridge: float = 0.1,
    by: str = "models",
    threshold: float | None = None,
) -> EmpiricalGraph:
    """Join every node to the k labelled nodes whose local models predict most alike, or to all that are near enough.

    Each labelled node gets a local model, drawn towards the pooled model w₀ of all nodes as if it had `ridge` more
    points that agree with w₀. With g_i and H_i the gradient and the Hessian of its loss at w₀, and H the mean of the
    H_i, that is one Newton step (for squared error, the exact minimiser):

        ŵ_i = w₀ − (H_i + (ridge/m_i) H)⁻¹ g_i,      d(i, j)² = (ŵ_i − ŵ_j)ᵀ H (ŵ_i − ŵ_j).

    For squared error d² is twice the mean squared difference of what two models predict. Scaling or mixing the
    features changes nothing. Where two nodes have few points, their models are alike because both are close to w₀.

    Parameters
    ----------
    X : array-like of shape (N, n), or a frame
        Features; add a column of ones for an intercept.
    y : array-like of shape (N,)
        Labels; nan means unlabelled.
    groups : sequence of shape (N,)
        The node of each row, by any id.
    k : int, default=5
        How many neighbours each node looks for.
    weight : {"inverse", "gaussian"} or callable, default="inverse"
        As in :func:`knn_graph`, of the distances d.
    loss : Loss, default=SquaredError()
        A smooth one: ``SquaredError()``, ``Logistic(ridge=…)``.
    ridge : float, default=0.1
        > 0 where a node may have fewer points than there are features.
    by : {"models", "gradients", "means"}, default="models"
        What is compared. "gradients": H^−½ g_i, where the data of a node would move the pooled model to; it takes
        no inverse of H_i, and says little of nodes with few points that agree. "means": the means of features and
        label, in units of their spread; it knows nothing of how labels follow from features.
    threshold : float, default=None
        In place of k, which is ignored then: join labelled nodes whose distance d is at most so many times the
        median distance of two of them that differ. A node that is near none stays alone.

    Returns
    -------
    EmpiricalGraph
        Its ids are the different groups in the order of their first rows. A node without labels has the pooled
        model, so it is joined to the labelled nodes closest to that (k of them, or those within the threshold, and at
        least one), and never to another such node.

    Raises
    ------
    ValueError
        If fewer than two nodes have labels, rows lack a node, every feature is zero, or `by` has no such value.
    TypeError
        If the loss is not smooth.

    Notes
    -----
    The graph is made from the same labels that a model is then fitted to. Do not judge the fit by these labels:
    inside cross-validation, make the graph again from the training rows.

    Examples
    --------
    >>> import coterie as ct
    >>> X, y = [[1], [2], [1], [2], [1], [2], [1], [2]], [1, 2, 1, 2, -1, -2, -1, -2]
    >>> ct.similarity_graph(X, y, list("aabbccdd"), k=1).edges.tolist()
    [[0, 1], [2, 3]]
    """
    return similar_nodes(*_as_data(X, y, groups), k, weight, loss, ridge, by, threshold)


def similar_nodes(
    data: LocalDatasets,
    ids: Sequence[Hashable] | None,
    k: int,
    weight: Weight,
    loss: Loss,
    ridge: float,
    by: str,
    threshold: float | None = None,
) -> EmpiricalGraph:
    """See :func:`similarity_graph`; here of rows that are in the nodes of a graph already."""
    check_strength(ridge, "ridge")
    if by not in ("models", "gradients", "means"):
        raise ValueError(f'by must be "models", "gradients" or "means", got {by!r}')
    if len(data.labelled.M) < 2:
        raise ValueError(f"at least two nodes need labels; {len(data.labelled.M)} of {data.n_nodes} have any")
    z = _means(data) if by == "means" else _embed(data, loss, ridge, by)
    M, from_pooled = data.labelled.M, np.linalg.norm(z, axis=1)
    if threshold is None:
        k = check_k(k, len(M), "nodes with labels, of which a fold has fewer")
        pairs, d = unite(np.arange(len(M)), *nearest(z, k, "euclidean"))
    else:
        reach = check_threshold(threshold) * _median_distance(z)
        pairs, d = _within(z, reach)
        k = max(int((from_pooled <= reach).sum()), 1)
    pairs, unlabelled = M[pairs], np.setdiff1d(np.arange(data.n_nodes), M)
    if unlabelled.size:
        closest = np.argsort(from_pooled, kind="stable")[:k]
        pairs = np.concatenate([pairs, np.stack([np.repeat(unlabelled, k), np.tile(M[closest], len(unlabelled))], 1)])
        d = np.concatenate([d, np.tile(from_pooled[closest], len(unlabelled))])
    called = range(data.n_nodes) if ids is None else ids
    A = edge_weights(d, weight, pairs, called) if len(d) else d
    return EmpiricalGraph.from_edges(pairs, A, n_nodes=data.n_nodes, ids=ids)


def check_threshold(threshold: Any) -> float:
    """Return the threshold, or say what it has to be."""
    if isinstance(threshold, bool) or not isinstance(threshold, Real) or not 0 < float(threshold) < np.inf:
        raise ValueError(f"threshold must be a number > 0, in median distances of two nodes; got {threshold!r}")
    return float(threshold)


def _median_distance(z: Array) -> float:
    """Of two of these points that differ; where there are many pairs, of some drawn from a fixed seed."""
    i, j = np.triu_indices(len(z), 1) if len(z) <= FEW else np.random.default_rng(0).integers(len(z), size=(2, DRAWN))
    d = np.linalg.norm(z[i] - z[j], axis=1)
    return float(np.median(d[d > 0])) if d.any() else 0.0


def _within(z: Array, reach: float) -> tuple[NDArray[np.int64], Array]:
    """Every pair of points that are no further apart than that, and how far they are."""
    from scipy.spatial import cKDTree

    tree, reach_up = cKDTree(z), reach * (1 + 1e-9)
    if len(z) > FEW and (many := (tree.count_neighbors(tree, reach_up) - len(z)) // 2) > MOST_PAIRS:
        raise ValueError(f"this threshold joins {many:,} pairs of nodes; choose a smaller one, or k")
    pairs = tree.query_pairs(reach_up, output_type="ndarray").astype(np.int64)
    d = np.linalg.norm(z[pairs[:, 0]] - z[pairs[:, 1]], axis=1)
    near = d <= reach * (1 + 1e-12)  # a distance that is the median may be rounded in another way
    return pairs[near], d[near]


def as_rows(groups: Any) -> list[Hashable]:
    """The node of each row."""
    rows = as_ids(groups, "groups")
    gap = next((r for r, name in enumerate(rows) if is_absent(name)), None)
    if gap is not None:
        raise ValueError(f"groups is empty in row {gap}; every row belongs to a node")
    return rows


def _as_data(X: Any, y: Any, groups: Any) -> tuple[LocalDatasets, list[Hashable]]:
    rows = as_rows(groups)
    matrix, _ = as_matrix(X, "X")
    if len(rows) != len(matrix):
        raise ValueError(f"X has {len(matrix)} rows but groups has {len(rows)}")
    ids = list(dict.fromkeys(rows))
    return LocalDatasets.from_rows(matrix, y, look_up(rows, numbering(ids)), n_nodes=len(ids)), ids


def _means(data: LocalDatasets) -> NDArray[np.float64]:
    """Means of features and label at the labelled nodes, from those of all and in units of their spread."""
    rows = data.labelled
    Z = np.column_stack([rows.X, rows.y])
    centre, spread = np.average(Z, axis=0, weights=rows.weights), Z.std(axis=0)
    of = np.repeat(np.arange(len(rows.M)), rows.m)
    sums = np.stack([np.bincount(of, rows.shares * column) for column in (Z - centre).T], axis=1)
    return np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0)


def _embed(data: LocalDatasets, loss: Loss, ridge: float, by: str) -> NDArray[np.float64]:
    """z_i = H^½ (ŵ_i − w₀) of the labelled nodes, or H^−½ g_i, in coordinates that whiten H; shape (|M|, r)."""
    rows = data.labelled
    f = loss.bind(rows)
    if not f.smooth:
        raise TypeError(f"local models are compared by a smooth loss, such as SquaredError(); {loss!r} is not smooth")
    w0 = np.repeat(f.pooled(np.zeros(len(rows.M), dtype=np.int64), 1)[0], len(rows.M), axis=0)
    g, H_i = f.gradient(w0), f.hessian(w0)
    H = H_i.mean(axis=0)
    size = np.sqrt(np.diag(H))
    if not size.any():
        raise ValueError("X tells no two models apart: every feature is zero in all labelled rows")
    unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    h, Q = np.linalg.eigh(H * unit * unit[:, None])
    seen = h > SEEN * h[-1]
    T: Array = unit[:, None] * Q[:, seen] / np.sqrt(h[seen])  # whitens: Tᵀ H T = I
    if by == "gradients":
        return g @ T
    eye = np.eye(T.shape[1])
    whitened = T.T @ H_i @ T + (ridge / rows.m)[:, None, None] * eye
    return -by_node(np.linalg.pinv(whitened, hermitian=True), g @ T)
