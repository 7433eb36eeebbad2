from __future__ import annotations

import numpy as np

import coterie as ct


def test_connected_sets_of_equal_weights() -> None:
    """0–1–2–3–4 and 5 alone; equal weights that no path of equal weights joins are two clusters."""
    graph = ct.EmpiricalGraph.from_edges([[0, 1], [1, 2], [2, 3], [3, 4]], n_nodes=6)
    w = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 2.0], [5.0, 2.0], [1.0, 2.0], [1.0, 0.0]])
    clusters = ct.Clusters.of(graph, w)
    assert clusters.joint.tolist() == [0, 0, 1, 2, 3, 4]
    assert clusters.by_coordinate[:, 0].tolist() == [0, 0, 0, 1, 2, 3]
    assert clusters.by_coordinate[:, 1].tolist() == [0, 0, 1, 1, 1, 2]
    assert clusters.sizes.tolist() == [2, 1, 1, 1, 1]
    assert len(clusters) == 5
    assert repr(clusters) == "Clusters(5 joint; [4, 3] by coordinate)"


def test_numbers_follow_the_first_nodes() -> None:
    graph = ct.EmpiricalGraph.from_edges([[0, 3], [1, 2]])
    clusters = ct.Clusters.of(graph, np.ones((4, 1)))
    assert clusters.joint.tolist() == [0, 1, 1, 0]
    assert clusters.joint.dtype == np.int64


def test_almost_equal_is_not_equal() -> None:
    graph = ct.EmpiricalGraph.from_edges([[0, 1]])
    assert len(ct.Clusters.of(graph, np.array([[1.0], [np.nextafter(1.0, 2.0)]]))) == 2


def test_one_node_without_edges() -> None:
    clusters = ct.Clusters.of(ct.EmpiricalGraph.from_edges([], n_nodes=1), np.zeros((1, 2)))
    assert clusters.joint.tolist() == [0]
    assert clusters.by_coordinate.tolist() == [[0, 0]]


def test_a_solution_carries_its_graph_through_presolve() -> None:
    """A path of ten nodes with labels at its ends only: at most one cut, and every node has its place."""
    edges = np.stack([np.arange(9), np.arange(1, 10)], axis=1)
    data = ct.LocalDatasets.from_rows(np.ones((2, 1)), [0.0, 1.0], [0, 9], n_nodes=10)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges(edges), data, lam=0.01)
    solution = ct.solve(problem)
    assert solution.graph is problem.graph
    assert len(solution.clusters().joint) == 10
    assert len(solution.clusters()) == 2
