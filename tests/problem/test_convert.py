from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given

import coterie as ct
from problems import Graph, graphs

FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
SPARSE = pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])


def same(a: ct.EmpiricalGraph, b: ct.EmpiricalGraph) -> None:
    assert a.n_nodes == b.n_nodes
    np.testing.assert_array_equal(a.edges, b.edges)
    np.testing.assert_array_equal(a.weights, b.weights)


def to_networkx(drawn: Graph) -> nx.Graph:
    graph = nx.empty_graph(drawn.n_nodes)
    graph.add_weighted_edges_from((i, j, a) for (i, j), a in drawn.edges.items())
    return graph


def to_matrix(drawn: Graph, *, both: bool = True) -> np.ndarray:
    matrix = np.zeros((drawn.n_nodes, drawn.n_nodes))
    for (i, j), a in drawn.edges.items():
        matrix[i, j] = a
        matrix[j, i] = a if both else 0.0
    return matrix


def to_frame(drawn: Graph, frame: Callable[..., Any]) -> Any:
    i, j = [i for i, _ in drawn.edges], [j for _, j in drawn.edges]
    return frame({"from": i, "to": j, "weight": list(drawn.edges.values())})


@given(graphs())
def test_every_form_gives_the_same_graph(drawn: Graph) -> None:
    expected, nodes = drawn.build(), range(drawn.n_nodes)
    same(ct.EmpiricalGraph.from_any(to_networkx(drawn)), expected)
    same(ct.EmpiricalGraph.from_any(sp.csr_array(to_matrix(drawn))), expected)
    same(ct.EmpiricalGraph.from_any(sp.coo_array(to_matrix(drawn, both=False))), expected)
    same(ct.EmpiricalGraph.from_any(sp.csc_array(to_matrix(drawn, both=False).T)), expected)
    same(ct.EmpiricalGraph.from_any(to_frame(drawn, pd.DataFrame), nodes=nodes), expected)
    same(ct.EmpiricalGraph.from_any(to_frame(drawn, pl.DataFrame), nodes=nodes), expected)
    same(ct.EmpiricalGraph.from_any(expected), expected)


def test_networkx_names_become_ids() -> None:
    graph = ct.EmpiricalGraph.from_any(nx.Graph([("Oslo", "Rome"), ("Rome", "Bonn")]))
    assert graph.ids == ("Oslo", "Rome", "Bonn")
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_array_equal(graph.weights, 1.0)


def test_nodes_say_the_order() -> None:
    graph = ct.EmpiricalGraph.from_any(nx.path_graph(3), nodes=[2, 1, 0])
    assert graph.ids == (2, 1, 0)
    assert graph.edges.tolist() == [[0, 1], [1, 2]]


@FRAMES
def test_frame_names_are_sorted_and_weights_optional(frame: Callable[..., Any]) -> None:
    graph = ct.EmpiricalGraph.from_any(frame({"a": ["x", "z"], "b": ["y", "x"]}))
    assert graph.ids == ("x", "y", "z")
    assert graph.edges.tolist() == [[0, 1], [0, 2]]
    np.testing.assert_array_equal(graph.weights, 1.0)


@FRAMES
def test_a_column_called_weight_holds_the_weights_wherever_it_stands(frame: Callable[..., Any]) -> None:
    for order in (["weight", "i", "j"], ["i", "weight", "j"], ["i", "j", "weight"]):
        columns = {"weight": [2, 3], "i": [0, 1], "j": [1, 2]}
        graph = ct.EmpiricalGraph.from_any(frame({name: columns[name] for name in order}))
        assert graph.edges.tolist() == [[0, 1], [1, 2]]
        assert graph.weights.tolist() == [2.0, 3.0]


def test_a_graph_keeps_its_nodes() -> None:
    graph = ct.EmpiricalGraph.from_any(nx.Graph([("a", "b")]))
    assert ct.EmpiricalGraph.from_any(graph, nodes=["a", "b"]) is graph
    for nodes in (["b", "a"], ["a"], [0, 1]):
        with pytest.raises(ValueError, match="the graph has its own nodes"):
            ct.EmpiricalGraph.from_any(graph, nodes=nodes)


@FRAMES
@pytest.mark.parametrize(
    ("columns", "nodes", "error", "message"),
    [
        ({"a": [0, 1]}, None, ValueError, r"two columns of nodes, and perhaps weight; this one has \['a'\]"),
        ({"a": ["x", None], "b": ["y", "z"]}, None, ValueError, "column 'a' of the edge frame is empty in row 1"),
        (
            {"a": [0], "b": [1], "weight": [None]},
            None,
            ValueError,
            "column 'weight' of the edge frame is empty in row 0",
        ),
        (
            {"a": [0], "b": [1], "weight": ["heavy"]},
            None,
            TypeError,
            "column 'weight' of the edge frame must hold numbers",
        ),
        ({"a": [0], "b": [7]}, [0, 1], ValueError, "an edge names the node 7, which is not among the given nodes"),
        ({"a": [0], "b": [1]}, [0, 1, 1], ValueError, "the node id 1 is listed twice"),
        ({"a": [0], "b": [0]}, None, ValueError, "to itself"),
        ({"a": [0], "b": [1], "weight": [-1.0]}, None, ValueError, "is -1.0"),
        ({"a": ["x"], "b": ["y"], "weight": [-1.0]}, None, ValueError, "nodes 'x' and 'y'. is -1.0"),
        ({"w": [0.5], "b": [0]}, None, ValueError, "column 'w' .* holds 0.5 in row 0; .*call it 'weight'"),
        ({"i": [0], "weight": [0.5]}, None, ValueError, r"this one has \['i', 'weight'\]"),
    ],
)
def test_frames_that_are_refused(
    frame: Callable[..., Any], columns: dict, nodes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ct.EmpiricalGraph.from_any(frame(columns), nodes=nodes)


@SPARSE
def test_sparse_forms_and_types(form: Callable[..., Any]) -> None:
    matrix = np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    for kind in (np.int64, np.uint8, np.float32):
        graph = ct.EmpiricalGraph.from_any(form(matrix.astype(kind)))
        assert graph.edges.tolist() == [[0, 1], [1, 2]]
        assert graph.weights.tolist() == [2.0, 1.0]


def test_sparse_boolean() -> None:
    graph = ct.EmpiricalGraph.from_any(sp.csr_array(~np.eye(3, dtype=bool)))
    assert graph.n_edges == 3


def test_sparse_entries_stored_twice_add_up() -> None:
    """As SciPy reads them; the caller's matrix is left as it was."""
    matrix = sp.coo_array(([1.0, 1.5], ([0, 0], [1, 1])), shape=(2, 2))
    assert ct.EmpiricalGraph.from_any(matrix).weights.tolist() == [2.5]
    assert matrix.nnz == 2


def test_sparse_stored_zeros_are_no_edges() -> None:
    assert ct.EmpiricalGraph.from_any(sp.coo_array(([0.0], ([0], [1])), shape=(2, 2))).n_edges == 0


@pytest.mark.parametrize(
    ("matrix", "nodes", "message"),
    [
        (np.array([[0, 1.0], [2, 0]]), None, r"not symmetric: entries \(\d, \d\) and \(\d, \d\) differ"),
        (np.array([[0, 1.0, 0], [0, 0, 0], [0, 1.0, 0]]), None, "not symmetric"),
        (np.ones((2, 3)), None, r"square; this one has shape \(2, 3\)"),
        (np.eye(2), None, "to itself"),
        (np.array([[0, -1.0], [-1, 0]]), None, "is -1.0"),
        (np.array([[0, 1.0], [1, 0]]), ["a"], "2 rows, but 1 node ids were given"),
        (np.array([[0, 1.0], [1, 0]]), ["a", "a"], "the node id 'a' is listed twice"),
        (np.eye(2), ["a", "b"], "joins node 'a' to itself"),
    ],
)
def test_sparse_matrices_that_are_refused(matrix: np.ndarray, nodes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ct.EmpiricalGraph.from_any(sp.csr_array(matrix), nodes=nodes)


@pytest.mark.parametrize(
    ("graph", "nodes", "message"),
    [
        (nx.DiGraph([(0, 1)]), None, r"directed; convert it with .to_undirected\(\)"),
        (nx.Graph([(0, 0)]), None, "to itself"),
        (nx.Graph([("a", "b")]), ["a"], "the node 'b', which is not among"),
        (nx.Graph([(0, 1, {"weight": -3})]), None, "is -3.0"),
        (nx.Graph([("a", "b", {"weight": None})]), None, "nodes 'a' and 'b'. is nan"),
        (nx.MultiGraph([(0, 1, {"weight": 1}), (0, 1, {"weight": 2})]), None, "given twice"),
    ],
)
def test_networkx_graphs_that_are_refused(graph: Any, nodes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ct.EmpiricalGraph.from_any(graph, nodes=nodes)


def test_ids_of_several_types_need_an_order() -> None:
    frame = pd.DataFrame({"a": ["x", 1], "b": [2, "y"]}, dtype=object)
    with pytest.raises(TypeError, match="of several types; give nodes="):
        ct.EmpiricalGraph.from_any(frame)
    assert ct.EmpiricalGraph.from_any(frame, nodes=["x", "y", 1, 2]).edges.tolist() == [[0, 3], [1, 2]]


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"cannot read a graph from str; give a networkx graph.*list of pairs"):
        ct.EmpiricalGraph.from_any("graph.csv")


@FRAMES
def test_only_what_is_called_weight_or_named_counts(frame: Callable[..., Any]) -> None:
    """A third column is no weight; named distances become weights that fall with them; extra columns do no harm."""
    table = frame({"id": [7, 8], "To": [1, 2], "from": [0, 1], "km": [1.0, 3.0]})
    with pytest.warns(UserWarning, match="every edge gets the weight 1, and the column 'id', 'km' is not used"):
        plain = ct.EmpiricalGraph.from_any(table)
    assert plain.edges.tolist() == [[0, 1], [1, 2]]
    assert plain.weights.tolist() == [1.0, 1.0]
    assert ct.EmpiricalGraph.from_any(table, weight="km").weights.tolist() == [1.0, 3.0]
    np.testing.assert_allclose(ct.EmpiricalGraph.from_any(table, distance="km").weights, [1 / 1.2, 1 / 3.2])
    with pytest.raises(ValueError, match="no column 'miles'"):
        ct.EmpiricalGraph.from_any(table, distance="miles")
    with pytest.raises(ValueError, match="not both"):
        ct.EmpiricalGraph.from_any(table, weight="id", distance="km")
    with pytest.raises(ValueError, match="distances are finite and ≥ 0"):
        ct.EmpiricalGraph.from_any(frame({"i": [0], "j": [1], "km": [-1.0]}), distance="km")


def test_attributes_of_networkx_count_as_columns_do() -> None:
    graph = nx.Graph()
    graph.add_edge("a", "b", distance=1.0)
    graph.add_edge("b", "c", distance=3.0)
    with pytest.warns(UserWarning, match="the edge attribute 'distance' is not used"):
        assert ct.EmpiricalGraph.from_any(graph).weights.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(ct.EmpiricalGraph.from_any(graph, distance="distance").weights, [1 / 1.2, 1 / 3.2])
    graph.edges["a", "b"]["weight"] = 2.0
    with pytest.raises(ValueError, match="the edge 'b' – 'c' has no attribute 'weight'"):
        ct.EmpiricalGraph.from_any(graph)


def test_lists_dicts_and_dense_matrices() -> None:
    weighted = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], [2.0, 0.5], ids=["a", "b", "c"])
    for graph in (
        [("a", "b", 2.0), ("b", "c", 0.5)],
        {"a": {"b": 2.0}, "b": {"a": 2.0, "c": 0.5}},
    ):
        same(ct.EmpiricalGraph.from_any(graph), weighted)
    dense = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.5], [0.0, 0.5, 0.0]])
    same(ct.EmpiricalGraph.from_any(dense, nodes=["a", "b", "c"]), weighted)
    plain = ct.EmpiricalGraph.from_any([("x", "y"), ("y", "z")])
    same(ct.EmpiricalGraph.from_any({"x": ["y"], "y": ["z"], "z": []}), plain)
    assert plain.names == ("x", "y", "z")
    assert ct.EmpiricalGraph.from_any(np.array([[0, 1], [1, 2], [2, 3]])).n_edges == 3
    assert ct.EmpiricalGraph.from_any({"alone": []}).n_nodes == 1
    with pytest.raises(ValueError, match="pairs of node ids, or triples"):
        ct.EmpiricalGraph.from_any([("a", "b"), ("b", "c", 1.0)])
    with pytest.raises(ValueError, match=r"has the weight 3\.0 at 'b', and another at 'a'"):
        ct.EmpiricalGraph.from_any({"a": {"b": 2.0}, "b": {"a": 3.0}})
