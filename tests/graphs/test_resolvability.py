"""Every number against brute force, and the promise against solutions."""

from __future__ import annotations

from itertools import chain, combinations, pairwise
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coterie as ct
from coterie.datasets import stochastic_block_model

Case = tuple[ct.EmpiricalGraph, np.ndarray, np.ndarray]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A small graph, a mask of labelled nodes, and a partition."""
    V = draw(st.integers(2, 8))
    pairs = list(combinations(range(V), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True))
    weights = draw(st.lists(st.sampled_from([0.1, 0.5, 1.0, 2.0, 7.3]), min_size=len(edges), max_size=len(edges)))
    labelled = draw(st.lists(st.booleans(), min_size=V, max_size=V))
    partition = draw(st.lists(st.integers(0, 2), min_size=V, max_size=V))
    graph = ct.EmpiricalGraph.from_edges(np.array(edges).reshape(-1, 2).astype(int), weights, n_nodes=V)
    return graph, np.array(labelled), np.array(partition)


def weight_between(graph: ct.EmpiricalGraph, S: set, T: set) -> float:
    return sum(
        a
        for (i, j), a in zip(graph.edges.tolist(), graph.weights, strict=True)
        if (i in S and j in T) or (i in T and j in S)
    )


def flow_of(graph: ct.EmpiricalGraph, nodes: set, outside: set, sinks: set, factor: float) -> float:
    """As networkx computes it."""
    net = nx.DiGraph()
    net.add_nodes_from(["source", "sink", *nodes])
    for (i, j), a in zip(graph.edges.tolist(), graph.weights, strict=True):
        if i in nodes and j in nodes:
            net.add_edge(i, j, capacity=a)
            net.add_edge(j, i, capacity=a)
    for i in nodes:
        net.add_edge("source", i, capacity=factor * weight_between(graph, {i}, outside))
        if i in sinks:
            net.add_edge(i, "sink")
    return nx.maximum_flow_value(net, "source", "sink")


def margin_of(graph: ct.EmpiricalGraph, nodes: set, outside: set, sinks: set) -> float:
    """The least quotient over all sets of unlabelled nodes."""
    free = nodes - sinks
    sets = chain.from_iterable(combinations(free, size) for size in range(1, len(free) + 1))
    least = 2.0
    for S in map(set, sets):
        inner, outer = weight_between(graph, S, nodes - S), weight_between(graph, S, outside)
        if outer > 0 or inner == 0:  # a set that nothing ties to a label is lost
            least = min(least, inner / outer if outer > 0 else 0.0)
    return least


TWO_PIECES = (
    ct.EmpiricalGraph.from_edges([[0, 1], [0, 2], [1, 4]], n_nodes=5),
    np.array([False, False, True, False, False]),
    np.array([0, 0, 0, 0, 1]),
)


@given(cases())
@example(TWO_PIECES)
@settings(max_examples=150)
def test_every_number_against_brute_force(case: Case) -> None:
    graph, labelled, partition = case
    result = ct.resolvability(graph, labelled, partition)
    assert [c.cluster for c in result] == list(dict.fromkeys(partition.tolist()))
    for c in result:
        nodes = set(np.flatnonzero(partition == c.cluster).tolist())
        outside, sinks = set(range(graph.n_nodes)) - nodes, nodes & set(np.flatnonzero(labelled).tolist())
        assert (c.n_nodes, c.n_labelled) == (len(nodes), len(sinks))
        assert c.boundary == pytest.approx(weight_between(graph, nodes, outside))
        assert c.flow == pytest.approx(flow_of(graph, nodes, outside, sinks, 2.0), rel=1e-6)
        assert c.margin == pytest.approx(margin_of(graph, nodes, outside, sinks), rel=1e-6)
        assert c.resolved == (c.margin >= 2)
        assert c.ratio >= c.margin * (1 - 1e-6)
        if c.resolved:
            assert (c.next_label, c.gain, c.bottleneck) == (None, 0.0, ())
            assert c.ratio == pytest.approx(2.0)
        else:
            gains = {v: flow_of(graph, nodes, outside, sinks | {v}, 2.0) - c.flow for v in nodes - sinks}
            assert c.next_label in gains
            assert c.gain == pytest.approx(gains[c.next_label], abs=1e-6)
            assert c.gain == pytest.approx(max(gains.values()), abs=1e-6)


@given(cases())
@settings(max_examples=60)
def test_the_bottleneck_holds_the_flow_up(case: Case) -> None:
    """Without its edges only what enters beyond them arrives; and it is no smaller than the flow through it."""
    graph, labelled, partition = case
    for c in ct.resolvability(graph, labelled, partition):
        cut = {tuple(sorted(pair)) for pair in c.bottleneck}
        keep = np.array([tuple(pair) not in cut for pair in graph.edges.tolist()], dtype=bool)
        rest = ct.EmpiricalGraph.from_edges(graph.edges[keep], graph.weights[keep], n_nodes=graph.n_nodes)
        without = next(d for d in ct.resolvability(rest, labelled, partition) if d.cluster == c.cluster)
        assert c.flow == pytest.approx(without.flow + graph.weights[~keep].sum(), rel=1e-6)


def two_clusters(across: float, seed: int) -> tuple[ct.Problem, np.ndarray, np.ndarray]:
    """Two clusters of 60, six labels in the first and thirty in the second; the truth, and the partition."""
    network = stochastic_block_model((60, 60), p_in=0.4, p_out=0.02, labelled=120, seed=seed)
    i, j = network.graph.edges.T
    A = np.where(network.cluster[i] == network.cluster[j], 1.0, across)
    graph = ct.EmpiricalGraph.from_edges(network.graph.edges, A, n_nodes=120)
    rng = np.random.default_rng(seed)
    M = np.concatenate([rng.choice(60, 6, replace=False), 60 + rng.choice(60, 30, replace=False)])
    y = np.where(np.isin(network.data.nodes, M), network.labels, np.nan)
    data = ct.LocalDatasets.from_rows(network.data.X, y, network.data.nodes)
    return ct.Problem(graph, data, lam=1e-4), network.weights, network.cluster


@pytest.mark.parametrize("seed", range(3))
def test_two_clusters_are_recovered_above_margin_one_and_lost_below(seed: int) -> None:
    seen = set()
    for across in (0.5, 0.8, 1.2, 1.6, 4.0):
        problem, truth, cluster = two_clusters(across, seed)
        error = ((ct.solve(problem).w - truth) ** 2).sum(axis=1)
        margins = [c.margin for c in ct.resolvability(problem.graph, problem.M, cluster)]
        for c in (0, 1):
            if margins[c] > 1.02:
                assert error[cluster == c].max() < 1e-3
        if min(margins) < 0.98:
            assert error.max() > 1.0
        seen.add(min(margins) < 0.98)
    assert seen == {True, False}


@pytest.mark.parametrize("penalty", [ct.TotalVariation(), ct.GroupTotalVariation()], ids=["l1", "l2"])
@pytest.mark.parametrize("seed", range(4))
def test_a_cluster_above_margin_one_is_recovered_whatever_its_neighbours_are(penalty: ct.Penalty, seed: int) -> None:
    """Four clusters, weights in four directions, a few labels: some clusters are lost, and take no other with them."""
    truth = ((3.0, 0.0), (0.0, 3.0), (-3.0, 0.0), (0.0, -3.0))
    network = stochastic_block_model((30,) * 4, truth, p_in=0.4, p_out=0.06, labelled=12, seed=seed)
    solution = ct.solve(ct.Problem(network.graph, network.data, penalty=penalty, lam=1e-5))
    error = np.linalg.norm(solution.w - network.weights, axis=1)
    for c in ct.resolvability(network.graph, network.data.labelled.M, network.cluster):
        if c.margin > 1.02:
            assert error[network.cluster == c.cluster].max() < 1e-2


def test_a_learnt_partition() -> None:
    problem, _, cluster = two_clusters(0.3, 0)
    learnt = ct.solve(problem).clusters()
    assert len(ct.resolvability(problem.graph, problem.M, learnt)) == len(learnt)
    assert ct.resolvability(problem.graph, problem.M, cluster).resolved


def chain_of(n: int, across: float, names: Any = None) -> ct.EmpiricalGraph:
    """Two chains of n nodes, joined by one edge."""
    A = np.ones(2 * n - 1)
    A[n - 1] = across
    return ct.EmpiricalGraph.from_edges(np.stack([np.arange(2 * n - 1), np.arange(1, 2 * n)], 1), A, ids=names)


def test_a_chain_by_hand() -> None:
    result = ct.resolvability(chain_of(3, 0.8), [0, 5], [0, 0, 0, 1, 1, 1])
    left = result.clusters[0]
    assert (left.boundary, left.flow, left.margin) == pytest.approx((0.8, 1.0, 1.25))
    assert not result.resolved
    assert left.bottleneck == ((1, 2),)
    assert left.next_label == 2
    assert left.gain == pytest.approx(0.6)
    assert ct.resolvability(chain_of(3, 0.5), [0, 5], [0, 0, 0, 1, 1, 1]).resolved


def test_ids_are_honoured() -> None:
    graph = chain_of(2, 5.0, ["a", "b", "c", "d"])
    names = {"a": "north", "b": "north", "d": "south", "c": "south"}
    result = ct.resolvability(graph, ["a"], names)
    assert [c.cluster for c in result] == ["north", "south"]
    assert result.clusters[0].bottleneck == (("a", "b"),)
    assert result.clusters[1].next_label == result.next_label == "c"
    assert repr(result).splitlines() == [
        "Resolvability: 0 of 2 clusters resolved",
        "     cluster    nodes labelled  boundary  ratio margin  label next",
        "       north        2        1         5  0.200  0.200  'b'",
        "       south        2        0         5  0.000  0.000  'c'",
    ]


def test_labels_one_by_one_resolve_everything() -> None:
    network = stochastic_block_model((40, 40), p_in=0.3, p_out=0.05, labelled=2)
    labelled, flows = list(network.data.labelled.M), []
    while (result := ct.resolvability(network.graph, labelled, network.cluster)).next_label is not None:
        assert result.next_label not in labelled
        labelled.append(result.next_label)
        flows.append(sum(c.flow for c in result))
    assert result.resolved
    assert all(a < b for a, b in pairwise(flows))
    assert len(labelled) < 40


def test_a_piece_that_nothing_reaches_needs_a_label() -> None:
    graph = ct.EmpiricalGraph.from_edges([[0, 1], [2, 3], [3, 4]])
    (c,) = ct.resolvability(graph, [0], np.zeros(5, dtype=int))
    assert (c.boundary, c.margin, c.next_label, c.resolved) == (0.0, 0.0, 3, False)
    assert ct.resolvability(graph, [0, 3], np.zeros(5, dtype=int)).resolved


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_for_a_frame(frame: Any) -> None:
    result = ct.resolvability(chain_of(2, 5.0), [0], [0, 0, 1, 1])
    table = frame(result.to_dict())
    assert list(table["boundary"]) == [5.0, 5.0]
    assert list(table["resolved"]) == [False, False]


def test_many_clusters_print_short() -> None:
    assert len(repr(ct.resolvability(chain_of(50, 1.0), [0], range(100))).splitlines()) == 23


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_the_unit_of_the_weights_does_not_matter(size: float) -> None:
    graph = chain_of(3, 0.8)
    scaled = ct.EmpiricalGraph.from_edges(graph.edges, size * graph.weights)
    for c in ct.resolvability(scaled, [0, 5], [0, 0, 0, 1, 1, 1]):
        assert (c.ratio, c.margin) == pytest.approx((1.25, 1.25), rel=1e-6)
        assert c.gain == pytest.approx(0.6 * size, rel=1e-6)


def test_a_hundred_thousand_nodes() -> None:
    network = stochastic_block_model((50_000, 50_000), p_in=2e-4, p_out=2e-5, points=1, labelled=5_000)
    result = ct.resolvability(network.graph, network.data.labelled.M, network.cluster)
    assert not result.resolved


BAD = {
    "unknown label": (["z"], [0, 0, 1, 1], ValueError, "not among the 4 nodes of the graph: 'z'"),
    "label twice": (["a", "a"], [0, 0, 1, 1], ValueError, "node 'a' is listed twice in labelled"),
    "short mask": (np.array([True]), [0, 0, 1, 1], ValueError, r"mask of shape \(1,\), but the graph has 4 nodes"),
    "one id": ("a", [0, 0, 1, 1], TypeError, "labelled must be a sequence of node ids, got 'a'"),
    "short partition": (["a"], [0, 0, 1], ValueError, "partition names 3 clusters for 4 nodes"),
    "nan": (["a"], [0, 0, 1, np.nan], ValueError, "gives the cluster nan to node 'd'"),
    "missing": (["a"], {"a": 0, "b": 0}, ValueError, "no cluster for 'c', 'd'"),
    "unknown": (["a"], dict(zip("abcde", "xxxxx", strict=True)), ValueError, "graph: 'e'"),
}


@pytest.mark.parametrize(("labelled", "partition", "error", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_refused(labelled: Any, partition: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ct.resolvability(chain_of(2, 1.0, list("abcd")), labelled, partition)


def test_no_labels_at_all() -> None:
    result = ct.resolvability(chain_of(2, 1.0), [], [0, 0, 1, 1])
    assert [c.margin for c in result] == [0.0, 0.0]
