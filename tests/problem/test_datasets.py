from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import coterie as ct

FINITE = st.floats(-1e6, 1e6)


@st.composite
def row_sets(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    V, n, N = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(0, 12))
    X = draw(hnp.arrays(float, (N, n), elements=FINITE))
    y = draw(hnp.arrays(float, N, elements=st.one_of(FINITE, st.just(np.nan))))
    return X, y, draw(hnp.arrays(int, N, elements=st.integers(0, V - 1))), V


def rows_by_node(X: np.ndarray, y: np.ndarray, nodes: np.ndarray) -> list:
    return sorted([(int(i), *x.tolist(), str(label)) for i, x, label in zip(nodes, X, y, strict=True)])


@given(row_sets(), st.integers(0, 99))
def test_any_order_of_rows(drawn: Any, seed: int) -> None:
    X, y, nodes, V = drawn
    order = np.random.default_rng(seed).permutation(len(y))
    data = ct.LocalDatasets.from_rows(X[order], y[order], nodes[order], n_nodes=V)
    assert (data.n_nodes, data.n_features) == (V, X.shape[1])
    assert (np.diff(data.nodes) >= 0).all()
    assert rows_by_node(data.X, data.y, data.nodes) == rows_by_node(X, y, nodes)


@given(row_sets())
def test_labelled_rows_and_blocks(drawn: Any) -> None:
    X, y, nodes, V = drawn
    labelled = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V).labelled
    known = ~np.isnan(y)
    assert labelled.M.tolist() == sorted(set(nodes[known].tolist()))
    assert labelled.m.tolist() == [int(((nodes == i) & known).sum()) for i in labelled.M]
    seen = []
    for block in labelled.blocks:
        assert block.X.shape[:2] == block.y.shape
        for place, X_i, y_i in zip(block.of, block.X, block.y, strict=True):
            rows = (nodes == labelled.M[place]) & known
            np.testing.assert_array_equal(X_i, X[rows])
            np.testing.assert_array_equal(y_i, y[rows])
            seen.append(int(place))
    assert sorted(seen) == list(range(len(labelled.M)))


def test_a_node_counts_its_labelled_rows_only() -> None:
    data = ct.LocalDatasets.from_rows([[1], [2], [3]], [5, np.nan, 6], [1, 1, 1], n_nodes=3)
    assert data.labelled.m.tolist() == [2]
    assert repr(data) == "LocalDatasets(3 rows × 1 features, 1 of 3 nodes labelled)"


def test_no_rows_at_all() -> None:
    data = ct.LocalDatasets.from_rows(np.empty((0, 2)), [], [], n_nodes=4)
    assert data.labelled.blocks == []
    assert data.labelled.M.size == 0


def test_rows_cannot_be_changed_and_do_not_share_memory() -> None:
    X, y, nodes = np.ones((2, 1)), np.ones(2), np.array([0, 1])
    data = ct.LocalDatasets.from_rows(X, y, nodes)
    for array in (data.X, data.y, data.nodes):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3
    X[:], y[:], nodes[:] = 7, 7, 0
    assert data.X.max() == data.y.max() == data.nodes.max() == 1


GOOD = {"X": [[1.0, 2.0], [3.0, 4.0]], "y": [1.0, 2.0], "nodes": [0, 1]}
BAD = {
    "nan feature": ({"X": [[1, 2], [3, np.nan]]}, ValueError, r"X\[1, 1\] \(row 1 of node 1, feature 1\) is nan"),
    "infinite feature": ({"X": [[-np.inf, 2], [3, 4]]}, ValueError, r"X\[0, 0\].*is -inf"),
    "large feature": ({"X": [[1, 2], [3, -1e200]]}, ValueError, r"X\[1, 1\] .*node 1, feature 1\) is -1e\+200"),
    "large label": ({"y": [1, 1e300]}, ValueError, r"y\[1\] \(node 1\) is 1e\+300; numbers above 1e\+150"),
    "large row weight": ({"weights": [1e200, 1]}, ValueError, r"weights\[0\] \(node 0\) is 1e\+200"),
    "infinite label": ({"y": [1, np.inf]}, ValueError, r"y\[1\] \(node 1\) is inf"),
    "flat X": ({"X": [1, 2]}, ValueError, r"shape \(rows, features\).*got \(2,\)"),
    "no features": ({"X": np.empty((2, 0))}, ValueError, "at least one feature"),
    "short y": ({"y": [1.0]}, ValueError, r"X has 2 rows but y has shape \(1,\)"),
    "y as a column": ({"y": [[1.0], [2.0]]}, ValueError, r"y has shape \(2, 1\)"),
    "short nodes": ({"nodes": [0]}, ValueError, r"X has 2 rows but nodes has shape \(1,\)"),
    "float nodes": ({"nodes": [0.0, 1.0]}, TypeError, "whole node numbers, got float64"),
    "negative node": ({"nodes": [0, -1]}, ValueError, "row 1 belongs to node -1"),
    "node too large": ({"n_nodes": 1}, ValueError, "row 1 belongs to node 1, but the 1 nodes are numbered 0 to 0"),
    "words in X": ({"X": [["a", "b"], ["c", "d"]]}, TypeError, "X must hold numbers only"),
    "words in y": ({"y": ["a", "b"]}, TypeError, "y must hold numbers only"),
    "ragged X": ({"X": [[1, 2], [3]]}, TypeError, "X must hold numbers only"),
    "half a node": ({"n_nodes": 2.5}, TypeError, "n_nodes must be a whole number, got 2.5"),
    "nothing": ({"X": np.empty((0, 2)), "y": [], "nodes": []}, ValueError, "there are no rows; give n_nodes"),
}


@pytest.mark.parametrize(("change", "error", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_refused(change: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ct.LocalDatasets.from_rows(**(GOOD | change))
