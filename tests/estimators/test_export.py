import sys

import narwhals as nw
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from towns import PLAIN, TOWNS, empirical, labels_for, names, networkx_graph, quick, rows, sparse_graph

import coterie as ct


@pytest.mark.parametrize(("model", "library"), list(zip(PLAIN, [pd, pl, pd], strict=True)))
def test_coefficients_have_names(model, library):
    X, y, nodes = rows()
    table = library.DataFrame({"rain": X[:, 0], "wind": X[:, 1], "town": names(nodes)})
    fitted = quick(model, empirical()).fit(table, labels_for(model, y), groups="town")
    frame = fitted.coef_frame()
    assert isinstance(frame, library.DataFrame)
    assert list(frame.columns) == ["node", "rain", "wind", "intercept", "cluster"]
    assert list(frame["node"]) == TOWNS
    assert list(frame["wind"]) == fitted.coef_[:, 1].tolist()
    assert list(frame["intercept"]) == fitted.intercept_.tolist()
    assert list(frame["cluster"]) == fitted.clusters_.tolist()


def test_arrays_have_no_names():
    X, y, nodes = rows()
    fitted = ct.NetworkedLinearRegression(sparse_graph(), fit_intercept=False).fit(X, y, nodes)
    assert list(fitted.coef_frame().columns) == ["node", "x0", "x1", "cluster"]
    assert list(fitted.coef_frame()["node"]) == list(range(6))


@pytest.mark.parametrize("taken", ["node", "cluster", "intercept"])
def test_a_feature_does_not_hide_behind_another_column(taken):
    X, y, nodes = rows()
    table = pd.DataFrame({taken: X[:, 0], "wind": X[:, 1]})
    fitted = ct.NetworkedLinearRegression(empirical()).fit(table, y, names(nodes))
    with pytest.raises(ValueError, match=f"give the feature '{taken}' another name"):
        fitted.coef_frame()


def without(*missing):
    """narwhals.from_dict where these libraries are not installed."""

    def from_dict(columns, backend):
        if backend in missing:
            raise ModuleNotFoundError(backend)
        return nw.from_dict(columns, backend="polars")

    return from_dict


def test_a_library_that_is_not_there_is_replaced(monkeypatch):
    X, y, nodes = rows()
    fitted = ct.NetworkedLinearRegression(empirical()).fit(X, y, names(nodes))
    monkeypatch.setattr("narwhals.stable.v1.from_dict", without("pandas"))
    assert isinstance(fitted.coef_frame(), pl.DataFrame)
    monkeypatch.setattr("narwhals.stable.v1.from_dict", without("pandas", "polars"))
    with pytest.raises(ImportError, match="pandas or polars"):
        fitted.coef_frame()


def test_a_networkx_graph_with_models():
    X, y, nodes = rows()
    fitted = ct.NetworkedLinearRegression(networkx_graph()).fit(X, y, names(nodes))
    graph = fitted.to_networkx()
    assert nx.utils.graphs_equal(nx.Graph(graph.edges), nx.Graph(networkx_graph().edges))
    assert {(i, j, a) for i, j, a in graph.edges(data="weight")} == {
        (i, j, a) for i, j, a in networkx_graph().edges(data="weight")
    }
    for k, town in enumerate(TOWNS):
        assert list(graph.nodes[town]["weights"]) == ["x0", "x1", "intercept"]
        assert list(graph.nodes[town]["weights"].values()) == fitted.weights_[k].tolist()
        assert graph.nodes[town]["cluster"] == fitted.clusters_[k]
        assert graph.nodes[town]["labelled_rows"] == 5
    again = ct.NetworkedLinearRegression(graph).fit(X, y, names(nodes))
    assert np.array_equal(again.coef_, fitted.coef_)


def test_to_networkx_says_what_it_needs(monkeypatch):
    X, y, nodes = rows()
    fitted = ct.NetworkedLinearRegression(empirical()).fit(X, y, names(nodes))
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match="pip install networkx"):
        fitted.to_networkx()
