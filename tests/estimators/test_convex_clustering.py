"""Convex clustering: the tree, its cuts, and the certified answer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import coterie as ct
from coterie.graphs.neighbours import neighbour_graph

X, TRUTH = make_blobs([10, 12, 8], centers=[[0, 0], [8, 0], [4, 7]], cluster_std=0.6, random_state=0)


@pytest.fixture(scope="module", params=["l2", "l1"])
def model(request):
    return ct.ConvexClustering(3, penalty=request.param, n_lams=30).fit(X)


def test_clusters_are_found_and_certified(model):
    assert adjusted_rand_score(TRUTH, model.labels_) == 1.0
    assert model.n_clusters_ == 3
    solution = model.solution_
    assert solution.status is ct.Status.OPTIMAL
    objective = ((X - solution.w) ** 2).sum() + model.lam_ * sum(
        A * np.linalg.norm(solution.w[i] - solution.w[j], 2 if model.penalty == "l2" else 1)
        for (i, j), A in zip(model.graph_.edges, model.graph_.weights, strict=True)
    )
    assert solution.objective == pytest.approx(objective)


def test_the_tree_is_one_of_scikit_learn(model):
    V = len(X)
    assert model.children_.shape == (V - 1, 2)
    assert (np.diff(model.distances_) >= 0).all()
    assert sorted(model.children_.ravel()) == list(range(2 * V - 2))  # each cluster is merged once, the last one never
    assert (model.children_.max(axis=1) < V + np.arange(V - 1)).all()


@pytest.mark.slow
def test_cuts_are_nested(model):
    counts = [2, 3, 5, 10, len(X)]
    labels = [ct.ConvexClustering(k, penalty=model.penalty, n_lams=30).fit_predict(X) for k in counts]
    for k, label in zip(counts, labels, strict=True):
        assert len(np.unique(label)) == k
        assert list(dict.fromkeys(label)) == list(range(k))  # in the order of their first points
    for coarse, fine in pairwise(labels):
        assert len(np.unique(np.stack([coarse, fine]), axis=1).T) == len(np.unique(fine))


def test_a_lam_instead_of_a_number(model):
    again = ct.ConvexClustering(lam=model.lam_, penalty=model.penalty, n_lams=30).fit(X)
    np.testing.assert_array_equal(again.labels_, again.solution_.clusters().joint)
    np.testing.assert_array_equal(again.children_, model.children_)


def test_a_dendrogram():
    pytest.importorskip("matplotlib").use("Agg")
    drawn = ct.ConvexClustering(3, n_lams=10).fit(X).plot_dendrogram(no_plot=True)
    assert sorted(drawn["leaves"]) == list(range(len(X)))


def test_far_groups_are_joined():
    far = np.concatenate([X, X + 100, X - [300, 0]])
    graph = neighbour_graph(far, 3, 2.0)
    assert not graph.components.any()
    assert graph.weights.min() > 0
    assert adjusted_rand_score(np.repeat([0, 1, 2], len(X)), ct.ConvexClustering(3, n_lams=20).fit_predict(far)) == 1.0


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [[1.0, 2.0]] * 4, [[0.0], [1.0]]], ids=["one", "all alike", "two"])
def test_hardly_any_points(rows):
    model = ct.ConvexClustering(1).fit(rows)
    assert model.labels_.tolist() == [0] * len(rows)
    assert len(model.children_) == len(rows) - 1


@pytest.mark.parametrize("tol", [1e-6, 0.3])
@pytest.mark.parametrize("n_lams", [1, 2])
def test_all_points_are_one_at_a_finite_lam(n_lams, tol):
    """However few the λ of the tree are, and however large the gap that leaves some points apart."""
    points = X[:6]
    model = ct.ConvexClustering(2, n_lams=n_lams, tol=tol, n_neighbors=1, penalty="l1").fit(points)
    assert model.n_clusters_ == 2
    assert np.isfinite(model.distances_).all()
    i, j = model.graph_.edges.T
    w = model.solution_.w
    stated = ((w - points) ** 2).sum() + model.lam_ * model.graph_.weights @ np.abs(w[i] - w[j]).sum(axis=1)
    np.testing.assert_allclose(model.solution_.objective, stated)
    assert model.solution_.gap <= tol


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 2, "lam": 1.0}, "not both"),
        ({"n_clusters": 99}, "n_clusters=99, but there are 30 points"),
        ({"penalty": "squared"}, "makes no two points equal"),
        ({"penalty": "l3"}, "there is no penalty 'l3'"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"graph": ct.EmpiricalGraph.from_edges([(0, 1)])}, "the graph has 2 nodes, but X has 30 rows"),
        ({"graph": ct.EmpiricalGraph.from_edges([(0, 1)], n_nodes=30)}, "falls into 29 parts"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        ct.ConvexClustering(**parameters).fit(X)


@pytest.mark.slow
@parametrize_with_checks([ct.ConvexClustering(n_lams=5)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
