"""The λ at which so many clusters remain."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

import coterie as ct


def rows(seed: int = 0):
    """Six nodes in a path, whose slopes go up and down."""
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(6), 8)
    X = rng.standard_normal((48, 1))
    return X, np.array([0, 0, 3, 3, -1, -1])[nodes] * X[:, 0] + 0.05 * rng.standard_normal(48), nodes


GRAPH = ct.EmpiricalGraph.from_edges([(k, k + 1) for k in range(5)])


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_so_many_clusters_remain(penalty, k) -> None:
    X, y, nodes = rows()
    model = ct.NetworkedLinearRegression(GRAPH, n_clusters=k, penalty=penalty, fit_intercept=False, engine="numpy")
    model.fit(X, y, groups=nodes)
    assert model.clusters_.max() + 1 == k
    assert model.gap_ <= 1e-6
    if k == 3:
        assert model.clusters_.tolist() == [0, 0, 1, 1, 2, 2]
    again = ct.NetworkedLinearRegression(GRAPH, model.lam_, penalty=penalty, fit_intercept=False, engine="numpy")
    np.testing.assert_allclose(again.fit(X, y, groups=nodes).coef_, model.coef_, atol=1e-3)
    assert again.clusters_.tolist() == model.clusters_.tolist()  # not at the λ of a merge, where the gap decides


def test_it_is_saved(tmp_path) -> None:
    X, y, nodes = rows()
    model = ct.NetworkedLinearRegression(GRAPH, n_clusters=3, fit_intercept=False, engine="numpy").fit(X, y, nodes)
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    assert back.n_clusters == 3
    assert back.clusters_.tolist() == model.clusters_.tolist()


@pytest.mark.parametrize(
    ("graph", "options", "says"),
    [
        (GRAPH, {"n_clusters": 7}, "there are 6 nodes"),
        (ct.EmpiricalGraph.from_edges([(0, 1), (2, 3), (4, 5)]), {"n_clusters": 2}, "falls into 3 parts"),
        (GRAPH, {"n_clusters": 2, "penalty": "squared"}, "makes no two models equal"),
        (GRAPH, {"n_clusters": 0}, "n_clusters"),
    ],
)
def test_what_cannot_be_reached_is_refused(graph, options, says) -> None:
    X, y, nodes = rows()
    with pytest.raises(ValueError, match=says):
        ct.NetworkedLinearRegression(graph, engine="numpy", **options).fit(X, y, groups=nodes)


def test_a_number_that_no_lam_has_is_refused() -> None:
    """Two pairs of nodes with the same rows become one at the same λ."""
    star = ct.EmpiricalGraph.from_edges([(0, 1), (0, 2)])
    X, y, nodes = np.ones((3, 1)), np.array([0.0, 1.0, 1.0]), np.arange(3)
    model = ct.NetworkedLinearRegression(star, n_clusters=2, fit_intercept=False, standardize=False, engine="numpy")
    with pytest.raises(ValueError, match=r"no λ was found that leaves so many; 1 remain at .*, and 3 at"):
        model.fit(X, y, groups=nodes)


def test_where_labels_are_all_alike_there_is_one_cluster() -> None:
    X, nodes = np.arange(6.0)[:, None], np.arange(6) // 2
    model = ct.NetworkedLinearRegression([(0, 1), (1, 2)], n_clusters=1).fit(X, np.ones(6), groups=nodes)
    assert model.clusters_.max() == 0
    some, bare = [0, 2], {"fit_intercept": False, "standardize": False}  # nobody labels node 1
    other = ct.NetworkedLinearRegression([(0, 1), (1, 2)], n_clusters=1, **bare).fit(np.ones((2, 1)), [2, 2], some)
    np.testing.assert_allclose(other.coef_, 2.0, atol=1e-6)
    with pytest.raises(ValueError, match="the labels tell no two nodes apart, so that any λ leaves 1"):
        model.set_params(n_clusters=2).fit(X, np.ones(6), groups=nodes)


def test_where_the_number_jumps_others_nearby_are_tried() -> None:
    rng = np.random.default_rng(0)
    kind, edges = np.arange(30) // 10, set()
    while len(edges) < 70:
        i, j = sorted(rng.integers(30, size=2).tolist())
        if i != j and (kind[i] == kind[j] or rng.random() < 0.15):
            edges.add((i, j))
    nodes, X = np.repeat(np.arange(30), 6), rng.standard_normal((180, 2))
    y = np.array([1.0, -1, 2])[kind[nodes]] * X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(180)
    reached = 0
    for k in range(8, 20):
        model = ct.NetworkedLinearRegression(sorted(edges), n_clusters=k, penalty="l2", engine="numpy")
        with suppress(ValueError):
            assert model.fit(X, y, groups=nodes).clusters_.max() + 1 == k
            reached += 1
    assert reached >= 10
