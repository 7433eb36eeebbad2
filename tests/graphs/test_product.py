"""Places × times, and the graph of times."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

import coterie as ct

SPACE = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], weights=[1.0, 3.0], ids=["a", "b", "c"])


def dense(graph: ct.EmpiricalGraph) -> np.ndarray:
    A = np.zeros((graph.n_nodes, graph.n_nodes))
    i, j = graph.edges.T
    A[i, j] = A[j, i] = graph.weights
    return A


def test_it_is_the_cartesian_product():
    time = ct.time_graph([1, 2, 4])
    graph = ct.product_graph(SPACE, time, strength=(2.0, 0.5))
    expected = 2.0 * np.kron(np.eye(3), dense(SPACE)) + 0.5 * np.kron(dense(time), np.eye(3))
    np.testing.assert_allclose(dense(graph), expected)
    again = ct.EmpiricalGraph.from_edges(graph.edges, graph.weights)
    np.testing.assert_array_equal(graph.edges, again.edges)  # in order, each edge once


def test_nodes_are_pairs_that_are_made_when_asked_for():
    graph = ct.product_graph(SPACE, ct.time_graph(["2025-01", "2025-02"]))
    names = list(graph.names)
    assert names[4] == ("b", "2025-02") == graph.names[-2]
    assert graph.names[1:3] == (("b", "2025-01"), ("c", "2025-01"))
    np.testing.assert_array_equal(graph.numbers(names[::-1]), np.arange(6)[::-1])
    for unknown in (("d", "2025-01"), ("a", "2026"), "a", ("a",)):
        with pytest.raises(ValueError, match="not among the 6 nodes"):
            graph.numbers([unknown])


def test_a_factor_of_one_node_changes_nothing():
    graph = ct.product_graph(SPACE, ct.time_graph([7]))
    np.testing.assert_array_equal(graph.edges, SPACE.edges)
    np.testing.assert_array_equal(graph.weights, SPACE.weights)


@pytest.mark.parametrize("strength", [(0.0, 1.0), (1.0, np.inf), (1.0, "1")])
def test_strengths_are_checked(strength):
    with pytest.raises(ValueError, match=r"the strength in (space|time) must be a positive"):
        ct.product_graph(SPACE, SPACE, strength)


@pytest.mark.parametrize(
    "times",
    [
        [2.0, 0.0, 1.0, 4.0, 1.0],
        [dt.date(2025, 1, day) for day in (3, 1, 2, 5)],
        np.array(["2025-03", "2025-01", "2025-02", "2025-05"], dtype="datetime64[M]"),
    ],
    ids=["numbers", "dates", "months"],
)
def test_long_gaps_join_less(times):
    graph = ct.time_graph(times)
    assert list(graph.names) == sorted(graph.names)
    np.testing.assert_allclose(graph.weights, [1.0, 1.0, 0.5])


def test_gaps_of_text_are_alike():
    graph = ct.time_graph(["2025-06", "2025-01"])
    assert list(graph.names) == ["2025-01", "2025-06"]
    assert graph.weights.tolist() == [1.0]


def test_a_season_goes_round():
    graph = ct.time_graph([1, 2, 3, 11], period=12)
    np.testing.assert_array_equal(graph.edges, [[0, 1], [0, 3], [1, 2], [2, 3]])
    np.testing.assert_allclose(graph.weights, np.median([1, 2, 1, 8]) / np.array([1, 2, 1, 8]))
    assert ct.time_graph([1, 2], period=12).n_edges == 1


@pytest.mark.parametrize(
    ("times", "period", "message"),
    [
        ([], None, "there are no times"),
        ([1, "a"], None, "all numbers, all dates or all text"),
        ([1.0, np.nan], None, "one of the times is nan"),
        ([1, 13], 12, "do not fit into a period of 12"),
        (["a", "b"], 12, "a period needs times that are numbers"),
        ([1, 2], -1, "period must be a positive"),
    ],
)
def test_times_that_make_no_graph(times, period, message):
    with pytest.raises(ValueError, match=message):
        ct.time_graph(times, period)
