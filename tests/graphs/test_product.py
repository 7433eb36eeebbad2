"""Places × times, and the graph of times."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
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


def test_graphs_come_in_any_form():
    graph = ct.product_graph([("a", "b", 1.0), ("b", "c", 3.0)], ct.time_graph([1, 2]), strength=np.array([1.0, 2.0]))
    expected = ct.product_graph(SPACE, ct.time_graph([1, 2]), strength=(1.0, 2.0))
    np.testing.assert_array_equal(dense(graph), dense(expected))
    for strength in (2.0, (1.0, 2.0, 3.0)):
        with pytest.raises(ValueError, match="strength has two numbers"):
            ct.product_graph(SPACE, SPACE, strength)


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


@pytest.mark.parametrize(
    ("times", "weights"),
    [
        (["2025-10", "2025-8", "2025-9", "2025-12"], [1.0, 1.0, 0.5]),
        (["10", "8", "9", "12"], [1.0, 1.0, 0.5]),
        (["2025-03-01", "2025-02-27", "2025-2-28", "2025-03-03"], [1.0, 1.0, 0.5]),
        (["2025-07-01 12:00", "2025-07-01T13:00:00", "2025-07-01 14:00", "2025-07-01 16:00"], [1.0, 1.0, 0.5]),
        (["2025-07-01T12:00Z", "2025-07-01T15:00+02:00", "2025-07-01T14:00Z", "2025-07-01T16:00Z"], [1.0, 1.0, 0.5]),
        (["2025-Q2", "2024-Q3", "2024-Q4", "2025-Q4", "2025-Q1"], [1.0, 1.0, 1.0, 0.5]),
        (["2025-W03", "2024-W51", "2024-W52", "2025-W01"], [1.0, 1.0, 0.5]),  # the year 2024 has 52 weeks
        (["2024-S2", "2025-S1", "2026-S2"], [1.0, 1.0]),  # neither numbers nor dates: gaps are alike
        (pd.period_range("2025-01", "2025-05", freq="M")[[0, 1, 2, 4]], [1.0, 1.0, 0.5]),
        (pd.to_datetime([0, 3600, 7200, 14400], unit="s").tz_localize("Europe/Helsinki"), [1.0, 1.0, 0.5]),
    ],
    ids=["months", "numbers", "days", "moments", "zones", "quarters", "weeks", "seasons", "periods", "timestamps"],
)
def test_times_are_what_they_say(times, weights):
    np.testing.assert_allclose(ct.time_graph(times).weights, weights)


def test_text_is_in_the_order_of_time():
    assert list(ct.time_graph(["2025-10", "2025-9"]).names) == ["2025-9", "2025-10"]
    assert list(ct.time_graph(["10", "9"]).names) == ["9", "10"]


def test_a_season_goes_round():
    graph = ct.time_graph([1, 2, 3, 11], period=12)
    np.testing.assert_array_equal(graph.edges, [[0, 1], [0, 3], [1, 2], [2, 3]])
    np.testing.assert_allclose(graph.weights, np.median([1, 2, 1, 8]) / np.array([1, 2, 1, 8]))
    assert ct.time_graph([1, 2], period=12).n_edges == 1


@pytest.mark.parametrize(
    ("times", "period", "message"),
    [
        ([], None, "there are no times"),
        ([1, "a"], None, "got 1 and 'a'"),
        ([pd.Timestamp(0), pd.Timestamp(1, tz="UTC")], None, "all dates .with a time zone or without"),
        (pd.Series([1, None], dtype="Int64"), None, "one of the times is <NA>; leave out"),
        ([1.0, np.inf], None, "one of the times is inf"),
        (["Jan", "Feb"], None, "it cannot be told when 'Jan' is, beside 'Feb'"),
        (["T9", "T10"], None, "it cannot be told when 'T9' is"),
        (["2025-07", "2025-7"], None, "'2025-07' and '2025-7' are one; write them in one way"),
        ([dt.time(1), dt.time(2)], None, "it cannot be told how far"),
        (pd.DataFrame({"month": [1, 2]}), None, "times must be one column, got a frame with the columns .'month'."),
        ([1.0, np.nan], None, "one of the times is nan"),
        ([1, 13], 12, "do not fit into a period of 12"),
        (["2025-01", "2025-02"], 12, "a period needs times that are numbers"),
        ([1, 2], -1, "period must be a positive"),
    ],
)
def test_times_that_make_no_graph(times, period, message):
    with pytest.raises(ValueError, match=message):
        ct.time_graph(times, period)


@pytest.mark.parametrize(
    "times",
    [[202311, 202312, 202401], ["20240130", "20240131", "20240201"], ["202311", "202312", "202401"]],
    ids=str,
)
def test_months_and_days_written_as_numbers_have_the_gaps_of_the_calendar(times: list) -> None:
    graph = ct.time_graph(times)
    assert graph.ids == tuple(times)
    assert graph.weights.tolist() == [1.0, 1.0]


def test_a_day_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match="there is no date '2024-02-30'"):
        ct.time_graph(["2024-02-28", "2024-02-30"])
    with pytest.raises(ValueError, match="there is no date '20230229'"):
        ct.time_graph([20230228, 20230229])
    assert ct.time_graph([20230228, 7]).ids == (7, 20230228)  # numbers, then


@pytest.mark.parametrize(
    "text",
    [
        ("31.12.2024", "01.01.2025"),
        ("Q3 2024", "Q1 2025"),
        ("12/2024", "01/2025"),
        ("31.12.24", "01.01.25"),
        ("12/24", "01/25"),
        ("Q4/23", "Q1/24"),
        ("4Q23", "1Q24"),
        ("12.2024", "01.2025"),
        ("12.2024", "1.2025"),
        ("1231-2024", "0101-2025"),
    ],
    ids=lambda text: text[0],
)
def test_text_whose_order_is_not_that_of_time_is_refused(text: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="it cannot be told when"):
        ct.time_graph(text)


@pytest.mark.parametrize(
    "text",
    [
        ("2024-Q3", "2025-Q1"),
        ("2024W52", "2025W01"),
        ("09:15", "10:30"),
        ("week 09", "week 10"),
        ("2023/2024", "2024/2025"),
        ("FY2023-2024", "FY2024-2025"),
        ("2024-1130", "2024-1231"),
        ("12.2024", "13.0125"),
        ("20241231T0000", "20250101T0000"),
        ("2025/07/01 1200", "2025/07/02 0900"),
    ],
    ids=str,
)
def test_text_that_begins_with_what_counts_most_is_in_order(text: tuple[str, str]) -> None:
    assert ct.time_graph(text[::-1]).ids == text
