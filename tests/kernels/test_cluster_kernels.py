from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.kernels import borders, cluster_systems, clusters
from coterie.kernels.edges import L1, L2
from coterie.kernels.reference import borders as plain_borders
from coterie.kernels.reference import cluster_systems as plain_systems
from coterie.kernels.reference import clusters as plain_clusters
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


LINE = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])


def test_clusters_that_no_data_see_join_the_nearest_neighbour() -> None:
    """Node 1 is nearer to 2, which is not seen itself and nearer to 3."""
    w = np.array([[0.0], [5.0], [7.0], [8.0], [20.0]])
    label, counts = np.arange(5)[:, None].copy(), np.array([5])
    seen = np.array([[True], [False], [False], [True], [True]])
    clusters.join_unseen(LINE, seen, w, label, counts)
    assert label.ravel().tolist() == [0, 1, 1, 1, 2]
    assert counts.tolist() == [3]


def test_a_component_that_no_data_see_becomes_one_cluster() -> None:
    label, counts = np.arange(5)[:, None].copy(), np.array([5])
    clusters.join_unseen(LINE, np.zeros((5, 1), dtype=bool), np.arange(5.0)[:, None], label, counts)
    assert counts.tolist() == [1]
    assert not label.any()


def test_clusters_that_would_pass_each_other_become_one() -> None:
    """1 would pass 2 and, later, 3: it joins 2, and both stay where they were until the next round."""
    w, moved = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([[0.0], [20.0], [2.0], [9.5]])
    edges = np.array([[0, 1], [1, 2], [1, 3]])
    label, counts = np.arange(4)[:, None].copy(), np.array([4])
    assert clusters.join_crossed(edges, w, moved, 1e-9, label, counts)
    assert label.ravel().tolist() == [0, 1, 1, 2]
    assert counts.tolist() == [3]
    np.testing.assert_array_equal(moved.ravel(), [0.0, 1.0, 2.0, 9.0])
    assert not clusters.join_crossed(edges, clusters_of(label, w), clusters_of(label, w + 1), 1e-9, label, counts)


def clusters_of(label: np.ndarray, w: np.ndarray) -> np.ndarray:
    out = np.empty_like(w)
    clusters.average(label, label.max(axis=0) + 1, w, out)
    return out


def test_clusters_that_come_as_near_as_rounding_become_one() -> None:
    w, label, counts = np.array([[0.0], [1.0]]), np.arange(2)[:, None].copy(), np.array([2])
    assert not clusters.join_crossed(LINE[:1], w, np.array([[0.0], [1e-6]]), 1e-9, label, counts)
    assert clusters.join_crossed(LINE[:1], w, np.array([[0.0], [1e-12]]), 1e-9, label, counts)
    assert counts.tolist() == [1]


def test_split() -> None:
    label = np.array([[0], [0], [1], [1], [2]])
    assert clusters.split(np.array([0, -1, -1, -1, 3]), 0, label, 3) == 4
    assert label.ravel().tolist() == [3, 0, 1, 1, 2]


@pytest.mark.parametrize("n", [3, 12])
def test_both_forms_solve_the_systems_of_clusters(n: int) -> None:
    rng = np.random.default_rng(n)
    F, at, right = rng.standard_normal((40, n, n)), rng.integers(0, 20, (40, n)), rng.standard_normal(20)
    H, P = F @ F.transpose(0, 2, 1), np.eye(20)[at]
    A = np.einsum("ika,ikm,imb->ab", P, H, P)
    ridge = 0.01 * np.diag(A)
    A += np.diag(ridge)
    for systems in (cluster_systems, plain_systems):
        x = systems.solve(H, at, ridge, np.diag(A).copy(), right.copy(), right, 100, 1e-13)
        np.testing.assert_allclose(x, np.linalg.solve(A, right), rtol=1e-8, atol=1e-10)
        assert systems.solve(H, at, ridge, np.diag(A).copy(), right.copy(), right, 2, 1e-13) is None
        assert not systems.solve(H, at, ridge, np.diag(A).copy(), right.copy(), 1e20 * right, 100, 1e-13).any()


def test_systems_of_clusters_notice_a_limit_between_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    H, at, right = np.diag([1.0, 2.0, 3.0])[None] + 0.5, np.array([[0, 1, 2]]), np.ones(3)
    monkeypatch.setattr(cluster_systems, "WORK", 1)
    x = cluster_systems.solve(H, at, np.zeros(3), np.ones(3), right.copy(), right, 100, 1e-13)
    np.testing.assert_allclose(x, np.linalg.solve(H[0], right), rtol=1e-8)
    monkeypatch.setattr(cluster_systems, "time_is_up", lambda: True)
    assert cluster_systems.solve(H, at, np.zeros(3), np.ones(3), right.copy(), right, 100, 1e-13) is None


@given(graphs(), st.integers(1, 3), st.integers(0, 99))
def test_both_forms_find_the_same_borders_and_components(graph: Graph, n: int, seed: int) -> None:
    built, rng = graph.build(), np.random.default_rng(seed)
    V, E, K = built.n_nodes, built.n_edges, 3 * n
    unknown, u = rng.integers(0, 3, (V, n)) + 3 * np.arange(n), rng.standard_normal((E, n))
    found = [form.borders(built.edges, unknown, built.weights, u, K) for form in (borders, plain_borders)]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-14)
    pairs = found[0][0]
    (count, part), (expected, parts) = (form.connected(K, *pairs.T) for form in (clusters, plain_clusters))
    assert count == expected
    np.testing.assert_array_equal(part, parts)
