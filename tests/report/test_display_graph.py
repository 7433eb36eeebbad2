import numpy as np
import pytest
from fitted_models import fitted
from hypothesis import given
from hypothesis import strategies as st

from coterie import EmpiricalGraph
from coterie.report.coefficients import ClusterTable
from coterie.report.colours import CATEGORIES, cluster_channel
from coterie.report.display_graph import DisplayGraph, contracted, most_varied, neighbours
from coterie.report.map import hover_texts
from coterie.report.network import drawn_edges


@pytest.fixture(scope="module")
def model():
    return fitted(lam=0.5, apart=2)


def test_all_nodes_are_drawn_where_they_fit(model):
    drawn = DisplayGraph.of_model(model)
    assert drawn.graph is model.graph_
    assert not drawn.aggregated
    np.testing.assert_array_equal(drawn.w, model.weights_)
    np.testing.assert_allclose(drawn.error, np.sqrt(model.node_errors_))
    np.testing.assert_array_equal(np.flatnonzero(drawn.undetermined), [12, 13])


def test_clusters_stand_for_their_nodes_where_there_are_too_many(model):
    drawn = DisplayGraph.of_model(model, most=10)
    clusters = int(model.clusters_.max()) + 1
    assert len(drawn.names) == clusters < 10
    assert drawn.n_nodes.sum() == 14
    assert drawn.n_labelled.sum() == model.n_labelled_.sum()
    assert "14 nodes" in drawn.aggregated
    for k, cluster in enumerate(drawn.cluster):
        members = model.clusters_ == cluster
        assert drawn.n_nodes[k] == members.sum()
        np.testing.assert_array_equal(drawn.w[k], model.weights_[members][0])
        m = model.n_labelled_[members]
        if m.sum():
            mean = np.nansum(m * model.node_errors_[members]) / m.sum()
            assert drawn.error[k] == pytest.approx(np.sqrt(mean))
    values = np.random.default_rng(0).random((14, 2))
    np.testing.assert_allclose(drawn.mean_of(values)[0], values[drawn.of == 0].mean(axis=0))


def test_of_too_many_clusters_the_largest_are_drawn(model):
    drawn = DisplayGraph.of_model(model, most=2)
    assert len(drawn.names) == 2
    assert (drawn.of == -1).any()
    assert "the largest 2 are drawn" in drawn.aggregated
    assert len(hover_texts(drawn, ["a", "b", "c"], "error")) == 2


@given(st.data())
def test_contraction_keeps_the_weight_between_groups(data):
    V = data.draw(st.integers(2, 8))
    pairs = data.draw(st.sets(st.tuples(st.integers(0, V - 1), st.integers(0, V - 1)).filter(lambda p: p[0] < p[1])))
    A = data.draw(st.lists(st.floats(0.1, 10), min_size=len(pairs), max_size=len(pairs)))
    graph = EmpiricalGraph.from_edges(sorted(pairs), A, n_nodes=V)
    of = np.array(data.draw(st.lists(st.integers(-1, 3), min_size=V, max_size=V)))
    total = np.zeros((4, 4))
    for (i, j), weight in zip(graph.edges, graph.weights, strict=True):
        if of[i] >= 0 and of[j] >= 0 and of[i] != of[j]:
            total[min(of[i], of[j]), max(of[i], of[j])] += weight
    small = contracted(graph, of, 4)
    found = np.zeros((4, 4))
    found[tuple(small.edges.T)] = small.weights
    np.testing.assert_allclose(found, total)


def test_neighbours_come_strongest_first():
    graph = EmpiricalGraph.from_edges([(0, 1), (0, 2), (1, 2)], [1.0, 3.0, 2.0], n_nodes=4)
    assert [near.tolist() for near in neighbours(graph)] == [[2, 1], [2, 0], [0, 1], []]


def test_neighbouring_clusters_have_different_colours():
    model = fitted(lam=1e-6)
    drawn = DisplayGraph.of_model(model)
    pairs = drawn.graph.edges[drawn.cluster[drawn.graph.edges[:, 0]] != drawn.cluster[drawn.graph.edges[:, 1]]]
    values = cluster_channel(drawn).values
    i, j = values[pairs].T
    assert ((i != j) | (i == len(CATEGORIES))).all()


def test_few_clusters_have_a_colour_each(model):
    drawn = DisplayGraph.of_model(model)
    values = cluster_channel(drawn).values
    for cluster in set(drawn.cluster):
        assert len(set(values[drawn.cluster == cluster])) == 1
    assert set(values[drawn.undetermined]) == {len(CATEGORIES) + 1.0}


def test_weights_that_differ_everywhere_set_no_edge_apart():
    graph = EmpiricalGraph.from_edges([(k, k + 1) for k in range(9)])
    inside, cut = drawn_edges(graph, np.arange(10.0)[:, None])
    assert (len(inside), len(cut)) == (9, 0)
    inside, cut = drawn_edges(graph, np.arange(10.0)[:, None], most=4)
    assert len(inside) == 4


def test_the_table_of_clusters(model):
    table = ClusterTable.of(model)
    assert table.columns == ["x0", "x1", "intercept"]
    assert (np.diff(table.sizes) <= 0).all()
    assert table.sizes.sum() == 14
    assert table.n_labelled.sum() == 8
    assert table.largest == np.abs(table.effects).max()
    spread = np.append(model.scaling_.spread, 1)
    np.testing.assert_allclose(table.effects[:, :2], (table.w * spread)[:, :2])  # one scale, in units of the target
    for cluster, w in zip(table.clusters, table.w, strict=True):
        np.testing.assert_array_equal(w, model.weights_[model.clusters_ == cluster][0])


def test_the_columns_that_vary_most():
    w = np.array([[1.0, 0.0, 5.0, 0.0], [1.0, 1.0, -5.0, 0.0], [1.0, 1.0, 5.0, 0.0]])
    assert most_varied(w, 2).tolist() == [1, 2]
    assert most_varied(w, 9).tolist() == [0, 1, 2, 3]
