"""Convex clustering: the tree, its cuts, and the certified answer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs, make_moons
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
    assert (np.diff(model.children_, axis=1) > 0).all()
    assert (model.n_leaves_, model.n_connected_components_) == (V, 1)


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


def exact_count(points, graph, lam):
    """How many clusters Clarabel leaves."""
    import cvxpy as cp

    w = cp.Variable(points.shape)
    pulls = sum(A * cp.norm(w[i] - w[j], 2) for (i, j), A in zip(graph.edges, graph.weights, strict=True))
    cp.Problem(cp.Minimize(cp.sum_squares(w - points) + lam * pulls)).solve(solver="CLARABEL")
    same = np.abs(w.value[graph.edges[:, 0]] - w.value[graph.edges[:, 1]]).max(axis=1) < 1e-5
    return ct.EmpiricalGraph.from_edges(graph.edges[same], n_nodes=len(points)).components.max() + 1


def test_merges_are_where_they_are_found_exactly():
    points = np.random.default_rng(3).standard_normal((7, 2))
    model = ct.ConvexClustering(3, n_neighbors=3).fit(points)
    lams, merges = np.unique(model.distances_, return_counts=True)
    for lam, last in zip(lams, merges.cumsum(), strict=True):
        assert exact_count(points, model.graph_, 1.03 * lam) == len(points) - last
        assert exact_count(points, model.graph_, 0.97 * lam) > len(points) - last


def test_groups_that_lie_far_apart_have_a_tree_too():
    """What joins them is so weak that their λ is many orders of magnitude above those of merges inside."""
    far = np.concatenate([X, X + 60])
    model = ct.ConvexClustering(2, n_neighbors=5).fit(far)
    assert model.distances_[-1] > 1e9 * model.distances_[-2]
    assert len(np.unique(model.distances_)) > len(X) / 2  # the two copies merge at the same λ
    assert (model.solution_.clusters().joint == model.labels_).all()


def test_it_does_not_matter_where_zero_is():
    points = np.random.default_rng(0).standard_normal((20, 2))
    model = ct.ConvexClustering(lam=1.44).fit(points)
    for shift in (1e6, 1e8):
        other = ct.ConvexClustering(lam=1.44).fit(points + shift)
        assert other.labels_.tolist() == model.labels_.tolist()
        np.testing.assert_allclose(other.distances_[-4:], model.distances_[-4:], rtol=0.01)
        np.testing.assert_allclose(other.solution_.w - shift, model.solution_.w, atol=1e-6)
    for scale in (1e155, 1e-200):
        with pytest.raises(ValueError, match="away from it in one column; scale X"):
            ct.ConvexClustering().fit(points * scale)


@pytest.mark.parametrize(("seed", "wanted"), [(1, 3), (2, 1), (0, 5), (4, 9)])
def test_the_solution_has_the_clusters_of_the_cut(seed, wanted):
    points = np.random.default_rng(seed).standard_normal((30, 2))
    model = ct.ConvexClustering(wanted).fit(points)
    assert model.solution_.clusters().joint.tolist() == model.labels_.tolist()
    assert ct.ConvexClustering(lam=model.lam_).fit(points).n_clusters_ == wanted


def test_where_a_hundredth_further_is_beyond_the_next_merge():
    points = make_moons(200, noise=0.08, random_state=0)[0]
    model = ct.ConvexClustering(3).fit(points)
    assert len(model.solution_.clusters()) == 3


def test_equal_points_are_one_at_once():
    many = np.repeat(X[:4], 5, axis=0)
    model = ct.ConvexClustering(4, n_neighbors=2).fit(many)  # all neighbours are equal points
    assert model.labels_.tolist() == np.repeat(np.arange(4), 5).tolist()
    assert (model.distances_[:16] == 0).all()
    assert (model.distances_[16:] > 0).all()
    assert model.distances_[-1] < 1e6
    assert model.lam_ == 0
    with pytest.raises(ValueError, match="n_clusters=5, but only 4 of 20 points differ"):
        ct.ConvexClustering(5, n_neighbors=2).fit(many)
    assert ct.ConvexClustering().fit(many[:5]).n_clusters_ == 1


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_copies_of_all_points_change_nothing(penalty):
    """Twenty of each are pulled as one is at a twentieth of λ, and no λ parts them."""
    many = np.repeat(X, 20, axis=0)
    alone, copied = (ct.ConvexClustering(5, penalty=penalty).fit(points) for points in (X, many))
    assert copied.labels_.tolist() == np.repeat(alone.labels_, 20).tolist()
    assert copied.lam_ == pytest.approx(20 * alone.lam_, rel=1e-3)
    np.testing.assert_allclose(copied.distances_[-29:], 20 * alone.distances_, rtol=1e-2)
    for lam in (0.0, 1e-3, 1.0, 100.0):
        alone, copied = (
            ct.ConvexClustering(lam=share * lam, penalty=penalty, n_lams=2).fit(points)
            for share, points in ((1, X), (20, many))
        )
        assert copied.solution_.gap <= 1e-6
        assert copied.solution_.unconditional
        assert (copied.solution_.w.reshape(30, 20, -1) == copied.solution_.w[::20, None]).all()
        np.testing.assert_allclose(copied.solution_.w[::20], alone.solution_.w, atol=3e-3)


def test_copies_in_a_graph_of_ones_own():
    """Its edges may be too weak to hold them together; the answer is certified all the same."""
    pair = [[0.0], [0.0], [1.0]]
    weak = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], [1e-3, 1.0])
    model = ct.ConvexClustering(lam=1.0, graph=weak).fit(pair)
    np.testing.assert_allclose(model.solution_.w.ravel(), [0.0005, 0.4995, 0.5], atol=1e-3)
    assert model.solution_.status is ct.Status.OPTIMAL


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_more_columns_than_points(penalty):
    wide = np.repeat(np.random.default_rng(0).standard_normal((8, 20)) + 3, [1, 2, 1, 1, 3, 1, 1, 1], axis=0)
    model = ct.ConvexClustering(lam=4.0, penalty=penalty, tol=1e-8).fit(wide)
    solution, (i, j) = model.solution_, model.graph_.edges.T
    stated = ((solution.w - wide) ** 2).sum() + 4 * model.graph_.weights @ np.linalg.norm(
        solution.w[i] - solution.w[j], 2 if penalty == "l2" else 1, axis=1
    )
    assert solution.objective == pytest.approx(stated, rel=1e-9)
    flows = np.zeros_like(wide)
    np.add.at(flows, i, solution.u)
    np.subtract.at(flows, j, solution.u)
    np.testing.assert_allclose(2 * (solution.w - wide), -flows, atol=1e-3)  # the duals are those of these columns
    assert model.n_clusters_ == 8  # copies are one


def test_nodes_of_a_graph_are_the_numbers_of_the_points():
    chain = [(k, k + 1) for k in range(len(X) - 1)]
    model = ct.ConvexClustering(3, graph=chain).fit(X)
    order = np.random.default_rng(0).permutation(len(X))
    turned = ct.EmpiricalGraph.from_edges(np.argsort(order)[chain], ids=order.tolist())  # node k is point order[k]
    other = ct.ConvexClustering(3, graph=turned).fit(X)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    np.testing.assert_allclose(model.distances_, other.distances_)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, np.nan], "column 'height' of X is NaN in row 1"),
        (["a", "b"], "'height' of X holds String.*leave it out$"),
    ],
)
def test_a_bad_column_is_named(column, message):
    with pytest.raises(ValueError, match=message):
        ct.ConvexClustering().fit(pd.DataFrame({"width": [1.0, 2.0], "height": column}))


def test_scikit_learn_cuts_the_tree_alike(model):
    from scipy.cluster.hierarchy import is_valid_linkage
    from sklearn.cluster._agglomerative import _hc_cut

    assert adjusted_rand_score(_hc_cut(3, model.children_, len(X)), model.labels_) == 1.0
    size = np.append(np.ones(len(X)), np.zeros(len(X) - 1))
    for k, (a, b) in enumerate(model.children_):
        size[len(X) + k] = size[a] + size[b]
    assert is_valid_linkage(np.column_stack([model.children_, model.distances_, size[len(X) :]]))


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


@pytest.mark.parametrize("wanted", [2, 3, 5])
def test_the_cut_does_not_depend_on_how_coarse_the_tree_is(wanted):
    few, many = (ct.ConvexClustering(wanted, n_lams=n).fit(X) for n in (5, 200))
    assert few.lam_ == pytest.approx(many.lam_, rel=0.02)
    assert len(few.solution_.clusters()) == wanted


def test_names_of_points_are_those_of_the_index_and_others_are_refused():
    edges = [(i, i + 1) for i in range(len(X) - 1)]
    named = [(f"p{i}", f"p{j}") for i, j in edges]
    frame = pd.DataFrame(X, index=[f"p{i}" for i in range(len(X))])
    expected = ct.ConvexClustering(3, n_lams=20, graph=edges).fit(X).labels_
    np.testing.assert_array_equal(ct.ConvexClustering(3, n_lams=20, graph=named).fit(frame).labels_, expected)
    order = np.random.default_rng(0).permutation(len(X))
    turned = pd.DataFrame(X).iloc[order]  # whose index says which row is which
    found = ct.ConvexClustering(3, n_lams=20, graph=edges).fit(turned).labels_
    assert adjusted_rand_score(found, expected[order]) == 1.0
    with pytest.raises(ValueError, match=r"called .p0., .p1., .p10..*give X as a frame whose index has these names"):
        ct.ConvexClustering(3, graph=named).fit(X)
