"""Local models against plain ridge regression, and whether the graph finds the clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie as ct
from coterie.graphs import similarity


def rows(seed: int = 0, sizes: Any = (8,) * 20, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of two kinds, even and odd."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    w = np.array([[2.0, 2.0, 1.0], [-2.0, 2.0, 0.0]])[groups % 2]
    X = rng.normal(size=(len(groups), 3))
    return X, (X * w).sum(axis=1) + noise * rng.normal(size=len(groups)), groups


def test_distances_are_those_of_the_local_ridge_regressions() -> None:
    X, y, groups = rows(sizes=(2, 5, 9, 3, 6), noise=1.0)
    ridge = 0.7
    local = [(X[groups == i], y[groups == i]) for i in range(5)]
    S = sum(2 * A.T @ A / len(A) for A, _ in local) / 5
    w0 = np.linalg.solve(S, sum(2 * A.T @ b / len(b) for A, b in local) / 5)
    w = [
        np.linalg.solve(2 * A.T @ A / len(A) + ridge / len(A) * S, 2 * A.T @ b / len(A) + ridge / len(A) * S @ w0)
        for A, b in local
    ]
    graph = ct.similarity_graph(X, y, groups, k=4, weight=lambda d: d, ridge=ridge)
    assert graph.n_edges == 10
    for (i, j), d in zip(graph.edges, graph.weights, strict=True):
        assert d == pytest.approx(np.sqrt((w[i] - w[j]) @ S @ (w[i] - w[j])))


def test_the_features_may_be_scaled_and_mixed() -> None:
    X, y, groups = rows()
    mix = np.array([[1e3, 0, 0], [2.0, 1, 0], [0, 1, 1e-3]])
    one, two = ct.similarity_graph(X, y, groups), ct.similarity_graph(X @ mix, y, groups)
    np.testing.assert_array_equal(one.edges, two.edges)
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-6)


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_nodes_of_one_kind_are_joined(frame: Any) -> None:
    X, y, groups = rows()
    graph = ct.similarity_graph(frame(X), y, [f"site {g}" for g in groups], k=3)
    assert graph.ids == tuple(f"site {g}" for g in range(20))
    assert (graph.edges.sum(axis=1) % 2 == 0).all()


def test_a_threshold_that_joins_nearly_all_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "FEW", 10)
    monkeypatch.setattr(similarity, "MOST_PAIRS", 100)
    X, y, groups = rows()
    with pytest.raises(ValueError, match=r"joins 1\d\d pairs of nodes; choose a smaller one, or k"):
        ct.similarity_graph(X, y, groups, threshold=3.0)


def test_classes() -> None:
    X, y, groups = rows(sizes=(40,) * 10, noise=0.0)
    graph = ct.similarity_graph(X, (y > 0).astype(float), groups, k=2, loss=ct.Logistic(ridge=0.01))
    assert (graph.edges.sum(axis=1) % 2 == 0).all()


def test_collinear_features_and_few_points() -> None:
    X, y, groups = rows(sizes=(1, 2, 2, 1, 5, 5))
    X = np.column_stack([X, X[:, 0]])
    for ridge in (0.0, 1.0):
        assert ct.similarity_graph(X, y, groups, k=2, ridge=ridge).degrees.min() >= 2


def test_unlabelled_nodes_join_labelled_ones() -> None:
    X, y, groups = rows()
    y[np.isin(groups, [3, 4])] = np.nan
    graph = ct.similarity_graph(X, y, groups, k=3)
    near = [{int(a + b - v) for a, b in graph.edges if v in (a, b)} for v in (3, 4)]
    assert near[0] == near[1]
    assert len(near[0]) == 3
    assert not near[0] & {3, 4}


@pytest.mark.parametrize("threshold", [1e-3, 0.2, 1.0, 10.0])
def test_a_threshold_joins_what_is_near(threshold: float) -> None:
    X, y, groups = rows(sizes=(2, 5, 9, 3, 6, 4, 7), noise=1.0)
    every = ct.similarity_graph(X, y, groups, k=6, weight=lambda d: d)
    graph = ct.similarity_graph(X, y, groups, weight=lambda d: d, threshold=threshold)
    near = every.weights <= threshold * np.median(every.weights)
    np.testing.assert_array_equal(graph.edges, every.edges[near])
    np.testing.assert_allclose(graph.weights, every.weights[near])
    assert graph.n_nodes == 7
    with pytest.raises(ValueError, match="threshold must be a number > 0"):
        ct.similarity_graph(X, y, groups, threshold="near")  # type: ignore[arg-type]


def test_medians_of_many_nodes_are_drawn_and_unlabelled_nodes_have_a_neighbour() -> None:
    X, y, groups = rows(sizes=(3,) * 600)
    y[np.isin(groups, [3, 4])] = np.nan
    graph = ct.similarity_graph(X, y, groups, threshold=1e-9)
    assert graph.degrees[[3, 4]].tolist() == [1, 1]
    wide = ct.similarity_graph(X, y, groups, threshold=1.0)
    assert wide.n_edges == pytest.approx(0.5 * 598 * 597 / 2, rel=0.02)


def test_what_is_as_far_as_the_threshold_is_joined() -> None:
    """Two nodes are as far apart as the median."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((16, 2)), rng.standard_normal(16)
        assert ct.similarity_graph(X, y, np.repeat([0, 1], 8), threshold=1.0).n_edges == 1


def test_nodes_that_are_one_do_not_count_in_the_median() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([np.tile(rng.standard_normal((4, 1)), (15, 1)), rng.standard_normal((20, 1))])
    y, groups = np.concatenate([X[:60, 0], rng.standard_normal(20)]), np.repeat(np.arange(20), 4)
    assert ct.similarity_graph(X, y, groups, threshold=1e-3).n_edges == 15 * 14 / 2
    assert ct.similarity_graph(X, y, groups, threshold=1e6).n_edges == 20 * 19 / 2


def test_it_ends_in_a_better_model_than_each_node_alone() -> None:
    X, y, groups = rows(sizes=(6,) * 40, noise=1.0)
    graph = ct.similarity_graph(X, y, groups)
    data = ct.LocalDatasets.from_rows(X, y, graph.numbers(groups))
    truth = np.array([[2.0, 2.0, 1.0], [-2.0, 2.0, 0.0]])[np.arange(40) % 2]
    errors = [
        ((ct.solve(ct.Problem(graph, data, lam=lam / graph.weights.mean())).w - truth) ** 2).mean() for lam in (0, 0.2)
    ]
    assert errors[1] < 0.5 * errors[0]


BAD = {
    "k": ({"k": 20}, ValueError, "k must lie between 1 and 19"),
    "ridge": ({"ridge": -1}, ValueError, "ridge must be a finite number ≥ 0"),
    "lasso": ({"loss": ct.Lasso(alpha=0.1)}, TypeError, "smooth loss, such as SquaredError"),
    "labels": ({"y": np.full(160, np.nan)}, ValueError, "at least two nodes need labels; 0 of 20 have any"),
    "zeros": ({"X": np.zeros((160, 2))}, ValueError, "tells no two models apart"),
    "empty group": ({"groups": [None] * 160}, ValueError, "groups is empty in row 0"),
    "rows": ({"groups": [1, 2]}, ValueError, "X has 160 rows but groups has 2"),
}


@pytest.mark.parametrize(("arguments", "error", "message"), BAD.values(), ids=BAD.keys())
def test_what_is_refused(arguments: dict, error: type[Exception], message: str) -> None:
    X, y, groups = rows()
    with pytest.raises(error, match=message):
        ct.similarity_graph(**{"X": X, "y": y, "groups": groups, **arguments})


def test_gradients_and_means_by_hand() -> None:
    X, y, groups = rows(sizes=(2, 5, 9, 3, 6), noise=1.0)
    local = [(X[groups == i], y[groups == i]) for i in range(5)]
    H = sum(2 * A.T @ A / len(A) for A, _ in local) / 5
    w0 = np.linalg.solve(H, sum(2 * A.T @ b / len(b) for A, b in local) / 5)
    g = [2 * A.T @ (A @ w0 - b) / len(A) for A, b in local]
    graph = ct.similarity_graph(X, y, groups, k=4, weight=lambda d: d, by="gradients")
    for (i, j), d in zip(graph.edges, graph.weights, strict=True):
        assert d == pytest.approx(np.sqrt((g[i] - g[j]) @ np.linalg.solve(H, g[i] - g[j])))
    Z = np.column_stack([X, y])
    means = [Z[groups == i].mean(axis=0) / Z.std(axis=0) for i in range(5)]
    graph = ct.similarity_graph(X, y, groups, k=4, weight=lambda d: d, by="means")
    for (i, j), d in zip(graph.edges, graph.weights, strict=True):
        assert d == pytest.approx(np.linalg.norm(means[i] - means[j]))


def test_models_and_gradients_find_what_means_do_not_see() -> None:
    X, y, groups = rows()

    def inside(by: str) -> float:
        graph = ct.similarity_graph(X, y, groups, k=4, by=by)
        return float((graph.edges[:, 0] % 2 == graph.edges[:, 1] % 2).mean())

    assert min(inside("models"), inside("gradients")) > 0.9
    assert inside("means") < 0.8  # features have the same means in both kinds


def test_what_is_compared_is_checked() -> None:
    X, y, groups = rows()
    with pytest.raises(ValueError, match='by must be "models"'):
        ct.similarity_graph(X, y, groups, by="medians")
