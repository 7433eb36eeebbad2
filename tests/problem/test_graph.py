from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct
from problems import Graph, graphs


def from_edges(*args: Any, **kwargs: Any) -> ct.EmpiricalGraph:
    return ct.EmpiricalGraph.from_edges(*args, **kwargs)


@given(graphs(), st.randoms(use_true_random=False))
def test_any_order_orientation_and_repetition_give_the_same_graph(drawn: Graph, random: Any) -> None:
    listed = [(i, j, a) if random.random() < 0.5 else (j, i, a) for (i, j), a in drawn.edges.items()]
    listed += [(j, i, a) for i, j, a in listed if random.random() < 0.3]
    random.shuffle(listed)
    graph = from_edges([e[:2] for e in listed], [e[2] for e in listed], n_nodes=drawn.n_nodes)
    assert [tuple(e) for e in graph.edges.tolist()] == sorted(drawn.edges)
    assert graph.weights.tolist() == [drawn.edges[e] for e in sorted(drawn.edges)]
    assert (graph.n_nodes, graph.n_edges) == (drawn.n_nodes, len(drawn.edges))


@given(graphs())
def test_incidence_degrees_and_components(drawn: Graph) -> None:
    graph = drawn.build()
    D = np.zeros((len(drawn.edges), drawn.n_nodes))
    colour = list(range(drawn.n_nodes))
    for e, (i, j) in enumerate(sorted(drawn.edges)):
        D[e, i], D[e, j] = 1, -1
        colour = [colour[i] if k == colour[j] else k for k in colour]
    np.testing.assert_array_equal(graph.D.toarray(), D)
    np.testing.assert_array_equal(graph.degrees, np.abs(D).sum(axis=0))
    same = np.equal.outer(colour, colour)
    np.testing.assert_array_equal(np.equal.outer(graph.components, graph.components), same)


@pytest.mark.parametrize("edges", [[], np.empty((0, 2), dtype=int)])
def test_one_node_without_edges(edges: Any) -> None:
    graph = from_edges(edges, n_nodes=1)
    assert repr(graph) == "EmpiricalGraph(1 nodes, 0 edges)"
    assert graph.D.shape == (0, 1)
    assert graph.components.tolist() == graph.degrees.tolist() == [0]


def test_the_number_of_nodes_is_the_largest_number_plus_one() -> None:
    assert from_edges([[0, 4]]).n_nodes == 5


def test_weights_are_one_unless_given() -> None:
    np.testing.assert_array_equal(from_edges([[0, 1], [1, 2]]).weights, 1.0)


def test_a_graph_cannot_be_changed_and_does_not_share_memory() -> None:
    edges, weights = np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0])
    graph = from_edges(edges, weights)
    with pytest.raises(ValueError, match="read-only"):
        graph.edges[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 7.0
    edges[:], weights[:] = 9, 9.0
    assert graph.edges.max() == 2
    assert graph.weights.max() == 2.0


BAD = {
    "self-loop": ({"edges": [[0, 1], [2, 2]]}, ValueError, "edge 1 joins node 2 to itself"),
    "two weights": (
        {"edges": [[0, 1], [1, 2], [1, 0]], "weights": [1.0, 1.0, 2.0]},
        ValueError,
        "between nodes 0 and 1 is given twice, with weights 1.0 and 2.0",
    ),
    "zero weight": ({"edges": [[0, 1]], "weights": [0.0]}, ValueError, r"edge 0 \(nodes 0 and 1\) is 0.0"),
    "negative weight": (
        {"edges": [[0, 1], [1, 2]], "weights": [1, -2]},
        ValueError,
        r"edge 1 \(nodes 1 and 2\) is -2.0",
    ),
    "nan weight": ({"edges": [[0, 1]], "weights": [np.nan]}, ValueError, "is nan; weights must be positive and finite"),
    "infinite weight": ({"edges": [[0, 1]], "weights": [np.inf]}, ValueError, "is inf"),
    "too many weights": ({"edges": [[0, 1]], "weights": [1, 2]}, ValueError, r"1 edges but weights has shape \(2,\)"),
    "id too large": ({"edges": [[0, 1], [1, 5]], "n_nodes": 3}, ValueError, "edge 1 names node 5, but the 3 nodes"),
    "negative id": ({"edges": [[0, -1]], "n_nodes": 3}, ValueError, "edge 0 names node -1"),
    "three columns": ({"edges": [[0, 1, 2]]}, ValueError, r"shape \(E, 2\).*got \(1, 3\)"),
    "one dimension": ({"edges": [0, 1]}, ValueError, r"got \(2,\)"),
    "float ids": ({"edges": [[0.0, 1.0]]}, TypeError, "whole node numbers, got float64"),
    "names": ({"edges": [["a", "b"]]}, TypeError, "use EmpiricalGraph.from_any"),
    "nothing": ({"edges": []}, ValueError, "at least one node; give n_nodes"),
    "half a node": ({"edges": [[0, 1]], "n_nodes": 2.5}, TypeError, "n_nodes must be a whole number, got 2.5"),
    "words as weights": ({"edges": [[0, 1]], "weights": ["a"]}, TypeError, "weights must hold numbers only"),
    "no nodes": ({"edges": [], "n_nodes": 0}, ValueError, "at least one node"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_refused(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        from_edges(**arguments)
