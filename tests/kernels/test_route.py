"""Maximum flow, beside SciPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from coterie.kernels.route import arcs_of, rooms, route
from problems import Graph, graphs


def largest_flow(edges: np.ndarray, up: np.ndarray, down: np.ndarray, rest: np.ndarray) -> int:
    """How much of the excess (rest > 0) can reach nodes that lack something, in whole numbers."""
    V = len(rest)
    i, j = edges.T
    nodes, source, sink = np.arange(V), np.full(V, V), np.full(V, V + 1)
    tails, heads = np.concatenate([i, j, source, nodes]), np.concatenate([j, i, nodes, sink])
    sizes = np.concatenate([up, down, np.maximum(rest, 0), np.maximum(-rest, 0)])
    network = coo_array((sizes, (tails, heads)), shape=(V + 2, V + 2), dtype=np.int32)
    return int(maximum_flow(network.tocsr(), V, V + 1).flow_value)


@given(graphs(), st.integers(0, 999))
def test_as_much_flows_as_can(graph: Graph, seed: int) -> None:
    built, rng = graph.build(), np.random.default_rng(seed)
    V, E = built.n_nodes, built.n_edges
    c, fixed = rng.integers(1, 9, E).astype(float), rng.random((E, 1)) < 0.2
    u = np.round(rng.uniform(-c, c))[:, None]
    before, rest = u.copy(), rng.integers(-6, 7, V).astype(float)
    given_rest, level, room = rest.copy(), np.empty(V, dtype=np.int64), np.empty(2 * E)
    rooms(0, c, fixed, u, room)
    while not route(0, 3, *arcs_of(built.edges, V), u, room, rest, 1e-9, level):
        pass
    D = built.D
    np.testing.assert_allclose(rest, given_rest + (D.T @ (u - before)).ravel(), atol=1e-9)
    assert (np.abs(u.ravel()) <= c + 1e-9).all()
    assert (u == before)[fixed].all()
    free = (~fixed).ravel()
    down, up = (c - before.ravel()) * free, (c + before.ravel()) * free
    moved = (np.maximum(given_rest, 0) - np.maximum(rest, 0)).sum()
    assert moved == largest_flow(built.edges, up.astype(int), down.astype(int), given_rest.astype(int))
    assert (level[rest > 1e-9] == 0).all()
