from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import coterie as ct
from coterie.engines import ordering
from coterie.engines.ordering import Ordering, are_far
from problems import Graph, graphs


def shuffled_path(V: int = 400) -> ct.EmpiricalGraph:
    """A path whose nodes are numbered at random: an order with |i − j| = 1 exists."""
    order = np.random.default_rng(0).permutation(V)
    return ct.EmpiricalGraph.from_edges(np.stack([order[:-1], order[1:]], axis=1), np.arange(1.0, V))


def check(graph: ct.EmpiricalGraph, order: Ordering) -> None:
    """D and all values mean the same inside and outside."""
    rng = np.random.default_rng(1)
    w, u = rng.standard_normal((graph.n_nodes, 2)), rng.standard_normal((graph.n_edges, 2))
    np.testing.assert_array_equal(order.nodes_out(order.nodes_in(w)), w)
    np.testing.assert_array_equal(order.edges_out(order.edges_in(u)), u)
    i, j = order.ends.astype(np.int64).T
    assert (i < j).all()
    inside = order.nodes_in(w)
    np.testing.assert_array_equal(order.edges_out(inside[i] - inside[j]), graph.D @ w)
    for e, a in enumerate(order.edges_in(graph.weights)):
        ends = {int(np.flatnonzero(order.rank == k)[0]) for k in order.ends[e]}
        assert a in graph.weights[[set(pair) == ends for pair in graph.edges.tolist()]]


def test_an_order_that_is_local_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "FITS_IN_CACHE", 0)
    graph = ct.EmpiricalGraph.from_edges(np.stack([np.arange(399), np.arange(1, 400)], axis=1))
    order = Ordering.of(graph, 1)
    np.testing.assert_array_equal(order.rank, np.arange(400))
    np.testing.assert_array_equal(order.ends, graph.edges)


def test_a_small_graph_is_left_as_it_is() -> None:
    order = Ordering.of(shuffled_path(), 1)
    np.testing.assert_array_equal(order.rank, np.arange(400))
    check(shuffled_path(), order)


def test_a_better_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "FITS_IN_CACHE", 0)
    order = Ordering.of(shuffled_path(), 1)
    assert np.diff(order.ends.astype(np.int64)).max() == 1
    check(shuffled_path(), order)


def test_neighbours_are_far_where_nothing_is_local() -> None:
    rng = np.random.default_rng(0)
    V = 40_000
    local = np.stack([np.arange(V - 1), np.arange(1, V)], axis=1)
    assert not are_far(local, V, 10)
    random = np.sort(rng.integers(0, V, (V, 2)), axis=1)
    assert are_far(random, V, 10)
    assert not are_far(random, V, 1)  # all of it fits the cache


@settings(max_examples=30)
@given(graphs())
def test_any_graph(graph: Graph) -> None:
    built = graph.build()
    check(built, Ordering.of(built, 3))
