"""The problem families: what is solved. Every family is a function of a scale and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import coterie as ct
from coterie.datasets import stochastic_block_model

Array = np.ndarray
DEGREE = 20  # of the block models: edges per node


@dataclass(frozen=True)
class Family:
    """A kind of problem; `build(scale, seed)` draws one with `scale` times the usual number of nodes."""

    what: str
    build: Callable[[float, int], ct.Problem]
    targets: tuple[float, ...] = (1e-4, 1e-6)  # relative suboptimality, or the certified gap


def paper(scale: float = 1.0, seed: int = 0) -> ct.Problem:
    """The paper's stochastic block model."""
    half = max(round(150 * scale), 30)
    network = stochastic_block_model((half, half), p_out=0.15 / half, labelled=half // 5, seed=seed)
    return ct.Problem(network.graph, network.data, lam=1e-3)


def blocks(
    scale: float = 1.0, seed: int = 0, loss: ct.Loss | None = None, across: float = 0.02, spread: float = 1.0
) -> ct.Problem:
    """A block model with fewer points than features at each node, and weights of size `spread`."""
    loss = loss or ct.SquaredError()
    size = max(round(500 * scale), 30)
    truth = spread * np.random.default_rng(seed).standard_normal((4, 10))
    network = stochastic_block_model(
        (size,) * 4,
        truth,
        **_edge_laws(4, size, across),
        points=5,
        labelled=round(0.2 * 4 * size),
        noise=0.1,
        seed=seed,
    )
    return ct.Problem(network.graph, _labels_for(loss, network.data), loss, lam=0.01)


def spatial(scale: float = 1.0, seed: int = 0, loss: ct.Loss | None = None) -> ct.Problem:
    """The six nearest neighbours of random points; weights differ between ten Voronoi regions."""
    from sklearn.neighbors import kneighbors_graph

    loss = loss or ct.SquaredError()
    rng = np.random.default_rng(seed)
    V = max(round(10_000 * scale), 30)
    places, centres = rng.random((V, 2)), rng.random((10, 2))
    near = kneighbors_graph(places, 6)
    region = ((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    data = _draw_rows(rng, rng.standard_normal((10, 5))[region], np.arange(V), points=3, noise=0.5)
    return ct.Problem(ct.EmpiricalGraph.from_any(near.maximum(near.T)), _labels_for(loss, data), loss, lam=0.2)


def hospitals(scale: float = 1.0, seed: int = 0, loss: ct.Loss | None = None) -> ct.Problem:
    """Few nodes with thirty to a thousand rows each, in three groups; six neighbours, most of the same group."""
    loss = loss or ct.SquaredError()
    rng = np.random.default_rng(seed)
    V, n = max(round(60 * scale), 9), 8
    group, rows = np.arange(V) % 3, np.clip(np.exp(rng.normal(5.5, 0.9, V)), 30, 1_000).astype(int)
    others = np.argsort(rng.random((V, V)) + (group[:, None] != group) + 9 * np.eye(V), axis=1)[:, :6]
    pairs = np.stack([np.repeat(np.arange(V), 6), others.ravel()], axis=1)
    nodes = np.repeat(np.arange(V), rows)
    X = np.column_stack([rng.standard_normal((len(nodes), n - 1)), np.ones(len(nodes))])
    truth = rng.standard_normal((3, n))[group] + 0.05 * rng.standard_normal((V, n))
    y = np.einsum("rk,rk->r", X, truth[nodes]) + rng.standard_t(3, len(nodes))
    data = ct.LocalDatasets.from_rows(X, y, nodes)
    graph = ct.EmpiricalGraph.from_edges(np.unique(np.sort(pairs, axis=1), axis=0))
    return ct.Problem(graph, _labels_for(loss, data), loss, lam=0.02)


def image(scale: float = 1.0, seed: int = 0) -> ct.Problem:
    """A noisy piecewise-constant image on a square grid."""
    side = max(round(300 * np.sqrt(scale)), 5)
    rng = np.random.default_rng(seed)
    truth = np.zeros((side, side))
    truth[side // 4 : side // 2, side // 4 : 3 * side // 4] = 1.0
    truth[2 * side // 3 :, side // 2 :] = -0.5
    y = (truth + 0.3 * rng.standard_normal(truth.shape)).ravel()
    return _denoising(side, y)


def regions(scale: float = 1.0, seed: int = 0) -> ct.Problem:
    """A noisy image of twelve Voronoi regions, less noisy than d, so that regions are found whole."""
    side = max(round(300 * np.sqrt(scale)), 5)
    rng = np.random.default_rng(seed)
    centres, values = side * rng.random((12, 2)), rng.standard_normal(12)
    places = np.stack(np.divmod(np.arange(side**2), side), axis=1)
    truth = values[((places[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)]
    return _denoising(side, truth + 0.2 * rng.standard_normal(side**2))


def path(scale: float = 1.0, seed: int = 0) -> ct.Problem:
    """A path in five pieces, with few labels."""
    rng = np.random.default_rng(seed)
    V = max(round(10_000 * scale), 20)
    truth = rng.standard_normal((5, 2))[np.arange(V) * 5 // V]
    labelled = rng.choice(V, max(round(0.01 * V), 5), replace=False)
    edges = np.stack([np.arange(V - 1), np.arange(1, V)], axis=1)
    data = _draw_rows(rng, truth, np.sort(labelled), points=5, noise=0.1)
    return ct.Problem(ct.EmpiricalGraph.from_edges(edges), data, lam=0.01)


def large_blocks(scale: float = 1.0, seed: int = 0) -> ct.Problem:
    """A block model of a million nodes; rows exist at labelled nodes only, so that memory goes to the problem."""
    size = max(round(50_000 * scale), 30)
    rng = np.random.default_rng(seed)
    no_weights = np.zeros((20, 1))
    network = stochastic_block_model(
        (size,) * 20, no_weights, **_edge_laws(20, size, across=0.02), points=1, labelled=0, seed=seed
    )
    V = network.graph.n_nodes
    labelled = np.sort(rng.choice(V, V // 10, replace=False))
    data = _draw_rows(rng, rng.standard_normal((20, 10))[network.cluster], labelled, points=5, noise=0.1)
    return ct.Problem(network.graph, data, lam=5e-3)


def _denoising(side: int, y: Array) -> ct.Problem:
    data = ct.LocalDatasets.from_rows(np.ones((side**2, 1)), y, np.arange(side**2))
    return ct.Problem(ct.EmpiricalGraph.from_edges(grid_edges(side)), data, lam=0.4)


def grid_edges(side: int) -> Array:
    """The edges of a square grid, nodes numbered row by row."""
    node = np.arange(side * side).reshape(side, side)
    across = np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1)
    down = np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def _edge_laws(clusters: int, size: int, across: float) -> dict[str, float]:
    """Probabilities of edges that give DEGREE neighbours, a part `across` of them in other clusters."""
    inside = DEGREE * (1 - across) / (size - 1)
    return {"p_in": min(inside, 1.0), "p_out": DEGREE * across / (size * (clusters - 1))}


def _draw_rows(rng: np.random.Generator, truth: Array, labelled: Array, points: int, noise: float) -> ct.LocalDatasets:
    """`points` rows for each labelled node, y = ⟨x, w̄⟩ + noise."""
    nodes = np.repeat(labelled, points)
    X = rng.standard_normal((len(nodes), truth.shape[1]))
    y = np.einsum("rk,rk->r", X, truth[nodes]) + noise * rng.standard_normal(len(nodes))
    return ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=len(truth))


def _labels_for(loss: ct.Loss, data: ct.LocalDatasets) -> ct.LocalDatasets:
    """Labels as the loss wants them: signs, as many of each class, or counts around e^{.3y}."""
    y, known = data.y.copy(), ~np.isnan(data.y)
    if isinstance(loss, ct.Logistic | ct.SquaredHinge):
        y[known] = y[known] > 0
    elif isinstance(loss, ct.Multinomial):
        K = loss.n_classes
        y[known] = np.searchsorted(np.quantile(y[known], np.arange(1, K) / K), y[known])
    elif isinstance(loss, ct.Poisson):
        y[known] = np.random.default_rng(0).poisson(np.exp(0.3 * y[known]))
    else:
        return data
    return ct.LocalDatasets.from_rows(data.X, y, data.nodes, n_nodes=data.n_nodes)


_LASSO, _LOGISTIC = ct.Lasso(alpha=0.02), ct.Logistic(ridge=0.01)

FAMILIES = {
    "a": Family("the paper's block model, 300 nodes, 30 labelled", paper),
    "b": Family("block model, 2,000 nodes, degree 20, n = 10, m = 5, 20 % labelled", blocks),
    "b2": Family(
        "b with 10 % of the edges across clusters and weights twice as large", partial(blocks, across=0.1, spread=2.0)
    ),
    "c": Family("6 nearest neighbours of 10,000 points, n = 5, m = 3, all labelled", spatial),
    "d": Family("300 × 300 grid, n = 1, denoising", image),
    "d2": Family("300 × 300 grid, n = 1, twelve Voronoi regions", regions),
    "e": Family("path of 10,000 nodes, n = 2, m = 5, 1 % labelled", path, (1e-4, 1e-6, 1e-8)),
    "b-lasso": Family("b with Lasso, alpha = .02", partial(blocks, loss=_LASSO)),
    "b-logistic": Family("b with logistic loss, ridge = .01", partial(blocks, loss=_LOGISTIC)),
    "c-lasso": Family("c with Lasso, alpha = .02", partial(spatial, loss=_LASSO)),
    "c-logistic": Family("c with logistic loss, ridge = .01", partial(spatial, loss=_LOGISTIC)),
    "f": Family("block model, 10⁶ nodes, 10⁷ edges, n = 10, m = 5, 10 % labelled", large_blocks, (1e-4,)),
}
