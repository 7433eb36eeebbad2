from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.kernels import clusters
from coterie.kernels.edges import L1, L2
from problems import Graph, graphs

MARGIN = 1e-6


@given(graphs(), st.sampled_from([L1, L2]), st.integers(1, 3), st.integers(0, 99))
def test_find_clusters(graph: Graph, kind: int, n: int, seed: int) -> None:
    """The connected components of the edges with slack, numbered by their first nodes."""
    built, rng = graph.build(), np.random.default_rng(seed)
    c = built.weights
    u = c[:, None] * rng.choice([0.0, 0.4, 1 - 2e-6, 1.0, -1.0, 1 - 1e-7], (len(c), n))
    label = np.full((built.n_nodes, n), -1)
    counts = clusters.find_clusters(kind, built.edges, c, u, MARGIN, label)
    for k in range(n):
        size = np.abs(u[:, k]) if kind == L1 else np.sqrt((u**2).sum(axis=1))
        joined = nx.Graph()
        joined.add_nodes_from(range(built.n_nodes))
        joined.add_edges_from(built.edges[size < c * (1 - MARGIN)].tolist())
        parts = sorted(nx.connected_components(joined), key=min)
        assert counts[k] == len(parts)
        for number, members in enumerate(parts):
            np.testing.assert_array_equal(label[sorted(members), k], number)


@pytest.mark.parametrize("n", [1, 3])
def test_average(n: int) -> None:
    rng = np.random.default_rng(0)
    label = np.stack([rng.permutation([0, 0, 1, 2, 2, 2]) for _ in range(n)], axis=1)
    x, out = rng.standard_normal((6, n)), np.full((6, n), np.nan)
    clusters.average(label, np.full(n, 3), x, out)
    for k in range(n):
        for i in range(6):
            assert out[i, k] == pytest.approx(x[label[:, k] == label[i, k], k].mean(), rel=1e-14)
        for number in range(3):
            assert len(set(out[label[:, k] == number, k])) == 1


def test_cut_forces() -> None:
    edges, c = np.array([[0, 1], [0, 2], [1, 2], [2, 3]]), np.array([1.0, 0.5, 2.0, 0.25])
    w = np.array([[1.0, 0.0], [1.0, 2.0], [-1.0, 0.0], [3.0, 0.0]])
    out = np.full((4, 2), np.nan)
    clusters.cut_forces(edges, c, w, out)
    expected = np.zeros((4, 2))
    for (i, j), strength in zip(edges, c, strict=True):
        force = strength * np.sign(w[i] - w[j])
        expected[i] += force
        expected[j] -= force
    np.testing.assert_array_equal(out, expected)
