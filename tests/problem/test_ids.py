"""Ids in, node numbers out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coterie as ct

HASHABLE = st.one_of(st.integers(), st.text(), st.tuples(st.integers(), st.text()))


@given(st.lists(HASHABLE, min_size=1, unique=True), st.data())
def test_numbers_are_the_places_of_the_ids(ids: list, data: st.DataObject) -> None:
    graph = ct.EmpiricalGraph.from_edges([], ids=ids)
    asked = data.draw(st.lists(st.sampled_from(ids)))
    assert graph.numbers(asked).tolist() == [ids.index(name) for name in asked]
    assert list(graph.names) == ids


@pytest.mark.parametrize("column", [np.array, pd.Series, pl.Series, tuple, list, iter])
@pytest.mark.parametrize(("ids", "asked"), [(["x", "y"], ["y", "x", "y"]), ([7, 5], [5, 7]), (None, [1, 0])])
def test_every_kind_of_column(column: Any, ids: Any, asked: list) -> None:
    graph = ct.EmpiricalGraph.from_edges([], n_nodes=2, ids=ids)
    numbers = graph.numbers(column(asked))
    assert numbers.dtype == np.int64
    assert [graph.names[k] for k in numbers] == asked


def test_ids_are_plain_values() -> None:
    """Also from arrays, so that they can be written as JSON and read in messages."""
    for ids in (np.array([3, 5]), list(np.array([3, 5])), pd.Series([3, 5])):
        graph = ct.EmpiricalGraph.from_edges([[0, 1]], ids=ids)
        assert graph.ids == (3, 5)
        assert all(type(name) is int for name in graph.ids)


def test_times_are_ids() -> None:
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[ns]")
    assert ct.EmpiricalGraph.from_edges([[0, 1]], ids=days).numbers(days[::-1]).tolist() == [1, 0]


def test_ids_that_are_the_numbers_are_left_out() -> None:
    assert ct.EmpiricalGraph.from_edges([[0, 1]], ids=[0, 1]).ids is None


@pytest.mark.parametrize(
    ("ids", "asked", "error", "message"),
    [
        (["x", "y"], ["z", "x", "u"], ValueError, "2 nodes of the graph: 'z', 'u' .its nodes are called 'x', 'y'"),
        ([95838, 95839], ["95838"], ValueError, "a number and its text are two names: convert one of them"),
        (None, np.array([0, 2, -1]), ValueError, "2 nodes of the graph: 2, -1 .its nodes are numbered 0 to 1"),
        (None, np.arange(2, 100), ValueError, "graph: 2, 3, 4, 5, 6, … "),
        (None, [np.nan], ValueError, "graph: nan"),
        (None, ["0"], ValueError, "graph: '0'"),
        (["x", "y"], "xy", TypeError, "ids must be a sequence of node ids, got 'xy'"),
        (["x", "y"], 3, TypeError, "ids must be a sequence of node ids, got 3"),
        (None, np.zeros((2, 1), dtype=int), ValueError, r"one-dimensional, got shape \(2, 1\)"),
    ],
)
def test_unknown_ids_are_named(ids: Any, asked: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ct.EmpiricalGraph.from_edges([], n_nodes=2, ids=ids).numbers(asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": [[0, 1]], "ids": ["x", "x"]}, "the node id 'x' is listed twice"),
        ({"edges": [[0, 1]], "n_nodes": 3, "ids": ["x", "y"]}, "there are 3 nodes but 2 ids"),
        ({"edges": [[0, 2]], "ids": ["x", "y"]}, "edge 0 names node 2, but the 2 nodes"),
        ({"edges": [[1, 1]], "ids": ["x", "y"]}, "joins node 'y' to itself"),
        ({"edges": [[0, 1]], "weights": [0], "ids": ["x", "y"]}, "nodes 'x' and 'y'. is 0.0"),
        ({"edges": [[0, 1], [1, 0]], "weights": [1, 2], "ids": ["x", "y"]}, "between nodes 'x' and 'y' is given twice"),
    ],
)
def test_errors_name_ids(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ct.EmpiricalGraph.from_edges(**arguments)
