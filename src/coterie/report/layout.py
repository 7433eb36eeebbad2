"""Where to draw the nodes of a graph: each component on its own, then side by side."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from coterie.kernels.choice import Either, using
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array

kernels = Either("repulsion", "coterie.report.repulsion")

FEW = 500  # nodes, up to which all pairs take less time than compiling
FORCES_UP_TO = 20_000  # nodes; larger components keep their spectral layout
ITERATIONS = 100
SPRING = 4.0


def layout(graph: EmpiricalGraph, seed: int = 0) -> Array:
    """Return positions (V, 2): connected nodes near each other, components apart, area going with their size."""
    rng = np.random.default_rng(seed)
    i, j = graph.edges.T
    half = csr_array((np.ones(len(i)), (i, j)), shape=(graph.n_nodes, graph.n_nodes))
    W = (half + half.T).tocsr()
    order = np.argsort(graph.components, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(graph.components))[:-1])
    groups.sort(key=len, reverse=True)
    shapes = [_component(W[nodes][:, nodes], rng) if len(nodes) > 1 else np.zeros((1, 2)) for nodes in groups]
    positions = np.empty((graph.n_nodes, 2))
    for nodes, shape, place in zip(groups, shapes, _shelves(np.sqrt([len(g) for g in groups])), strict=True):
        positions[nodes] = place + shape * np.sqrt(len(nodes))
    return positions


def _component(W: csr_array, rng: np.random.Generator) -> Array:
    """Positions inside the unit disc."""
    x = _spectral(W) + 0.05 * rng.standard_normal((W.shape[0], 2))
    if W.shape[0] <= FORCES_UP_TO:
        x = _relax(W, x)
    x = x - x.mean(axis=0)
    return np.asarray(x / np.linalg.norm(x, axis=1).max())


def _spectral(W: csr_array) -> Array:
    """The two slowest eigenvectors of the random walk, scaled to unit variance."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    V = W.shape[0]
    root = 1 / np.sqrt(W.sum(axis=1))
    S = (W.multiply(root[:, None])).multiply(root[None, :]).tocsr()
    if V <= 400:
        _, vectors = eigh(S.toarray(), subset_by_index=[max(V - 3, 0), V - 1])
    else:
        _, vectors = eigsh(S, k=3, which="LA", v0=np.ones(V), tol=1e-3)
    x = np.zeros((V, 2))
    slow = (vectors * root[:, None])[:, -2::-1][:, :2]  # the last one is constant
    x[:, : slow.shape[1]] = slow / np.maximum(slow.std(axis=0), 1e-12)
    return x


def _relax(W: csr_array, x: Array) -> Array:
    """Balance three forces by steps that shrink: repulsion of all pairs, springs to neighbours, pull to the middle.

    Without edges, nodes would fill the unit disc; a spring pulls SPRING times as hard as the middle does.
    A step costs of the order of V^1.5.
    """
    V, degrees = len(x), W.sum(axis=1)[:, None]
    spring, side, apart = SPRING / degrees.mean(), max(1, round(np.sqrt(3 * np.sqrt(V)))), np.empty_like(x)
    for step in np.geomspace(0.3, 0.003, ITERATIONS):
        with using(compiled=V > FEW):
            kernels.repulsion(x, side, apart)
        force = apart / V - spring * (degrees * x - W @ x) - x
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-12)
        x = x + force / length * np.minimum(length, step)
    return x


def _shelves(radii: Array) -> Array:
    """Centres (·, 2) of discs, largest first, set in rows about as wide as all of them are high."""
    slots = 2 * radii + 1
    width = max(slots[0], np.sqrt(1.5 * (slots**2).sum()))
    centres, x, top, height = np.empty((len(radii), 2)), 0.0, 0.0, slots[0]
    for k, slot in enumerate(slots):
        if x > 0 and x + slot > width:
            x, top, height = 0.0, top - height, slot
        centres[k] = x + slot / 2, top - slot / 2
        x += slot
    return centres
