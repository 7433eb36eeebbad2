from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coterie.kernels import contract
from problems import Graph, graphs


def other_end(edge: np.ndarray, i: int) -> int:
    return int(edge[0] if edge[1] == i else edge[1])


def dominant(graph: Graph, labelled: np.ndarray, leaves_only: bool = False) -> np.ndarray:
    built = graph.build()
    via = np.empty(built.n_nodes, dtype=np.int64)
    contract.dominant_edges(built.n_nodes, built.edges, built.weights, labelled, leaves_only, via)
    return via


def some_labels(graph: Graph, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(graph.n_nodes) < 0.3


@given(graphs(), st.integers(0, 99), st.booleans())
def test_dominant_edges(graph: Graph, seed: int, leaves_only: bool) -> None:
    labelled, built = some_labels(graph, seed), graph.build()
    via = dominant(graph, labelled, leaves_only)
    for i in range(built.n_nodes):
        mine = [e for e in range(built.n_edges) if i in built.edges[e]]
        total = sum(built.weights[mine])
        if labelled[i] or not mine:
            assert via[i] == -1
        elif leaves_only:
            assert via[i] == (mine[0] if len(mine) == 1 else -1)
        elif via[i] >= 0:
            assert via[i] in mine
            assert built.weights[via[i]] >= (total - built.weights[via[i]]) * (1 - 1e-12)
        else:
            assert all(built.weights[e] < (total - built.weights[e]) * (1 + 1e-12) for e in mine)


@given(graphs(), st.integers(0, 99))
def test_break_cycles(graph: Graph, seed: int) -> None:
    built, via = graph.build(), dominant(graph, some_labels(graph, seed))
    before = via.copy()
    root, order = np.full((2, built.n_nodes), -1)
    assert contract.break_cycles(built.edges, via, root, order) == built.n_nodes
    assert sorted(order) == list(range(built.n_nodes))
    assert ((via == before) | (via == -1)).all()
    place = np.argsort(order)
    dropped = np.flatnonzero(via != before)
    for i in range(built.n_nodes):
        if via[i] < 0:
            assert root[i] == i
        else:
            parent = other_end(built.edges[via[i]], i)
            assert root[i] == root[parent]
            assert place[i] > place[parent] or via[parent] < 0  # a root is never pushed from: its place is free
    for i in dropped:  # only a cycle costs a link: going on from there leads back
        assert root[other_end(built.edges[before[i]], i)] == i


@given(graphs(), st.integers(0, 99), st.integers(1, 3))
def test_push_flows(graph: Graph, seed: int, n: int) -> None:
    """Nothing is left at a node that was contracted; other edges keep their flow; what is pushed fits the edge."""
    built, via = graph.build(), dominant(graph, some_labels(graph, seed))
    root, order = np.full((2, built.n_nodes), -1)
    contract.break_cycles(built.edges, via, root, order)
    u = built.weights[:, None] * np.random.default_rng(seed).uniform(-1, 1, (built.n_edges, n))
    before = u.copy()
    contract.push_flows(built.edges, via, order, np.zeros((built.n_nodes, n)), u)
    used = np.zeros(built.n_edges, dtype=bool)
    used[via[via >= 0]] = True
    np.testing.assert_array_equal(u[~used], before[~used])
    rest = built.D.T @ u
    size = built.weights.max(initial=1.0)
    np.testing.assert_allclose(rest[via >= 0], 0.0, atol=1e-13 * size)
    np.testing.assert_allclose(rest.sum(axis=0), 0.0, atol=1e-12 * size)
    assert (np.abs(u) <= built.weights[:, None] * (1 + 1e-12)).all()


def test_a_tie_between_two_nodes_contracts_one_of_them() -> None:
    graph = Graph(2, {(0, 1): 1.0})
    via = dominant(graph, np.zeros(2, dtype=bool))
    assert via.tolist() == [0, 0]
    root, order = np.full((2, 2), -1)
    contract.break_cycles(graph.build().edges, via, root, order)
    assert sorted(via.tolist()) == [-1, 0]
    assert root[0] == root[1]
