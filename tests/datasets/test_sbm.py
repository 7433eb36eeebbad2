import numpy as np
import pytest

from coterie.datasets import stochastic_block_model
from coterie.datasets.sbm import _chosen, _triangle


def test_defaults_are_the_papers():
    network = stochastic_block_model()
    assert network.graph.n_nodes == 300
    assert network.data.X.shape == (1500, 2)
    assert len(network.data.labelled.M) == 30
    assert (network.graph.weights == 1).all()
    np.testing.assert_array_equal(network.weights[[0, 299]], [[2, 2], [-2, 2]])
    y = (network.data.X * network.weights[network.data.nodes]).sum(axis=1)
    np.testing.assert_allclose(network.labels, y)


def test_hides_the_labels_of_unlabelled_nodes_and_only_these():
    network = stochastic_block_model(labelled=7, seed=3)
    shown = np.isin(network.data.nodes, network.data.labelled.M)
    np.testing.assert_array_equal(network.held_out, ~shown)
    np.testing.assert_array_equal(network.data.y[shown], network.labels[shown])


def test_same_seed_same_network_other_seed_another():
    a, b, c = (stochastic_block_model(seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.graph.edges, b.graph.edges)
    np.testing.assert_array_equal(a.data.X, b.data.X)
    assert a.graph.n_edges != c.graph.n_edges or (a.graph.edges != c.graph.edges).any()


def test_settings_that_share_a_seed_share_graph_and_points():
    few = stochastic_block_model(labelled=30, seed=5)
    many = stochastic_block_model(labelled=60, edge_weights=((40, 1), (10, 1)), seed=5)
    np.testing.assert_array_equal(few.graph.edges, many.graph.edges)
    np.testing.assert_array_equal(few.data.X, many.data.X)
    assert set(few.data.labelled.M) <= set(many.data.labelled.M)


def test_edge_counts_follow_the_probabilities():
    network = stochastic_block_model((200, 300, 100), np.eye(3), p_in=0.3, p_out=0.02, seed=0)
    inside = network.cluster[network.graph.edges[:, 0]] == network.cluster[network.graph.edges[:, 1]]
    pairs_in = 200 * 199 // 2 + 300 * 299 // 2 + 100 * 99 // 2
    pairs_out = 200 * 300 + 200 * 100 + 300 * 100
    for count, pairs, p in ((inside.sum(), pairs_in, 0.3), ((~inside).sum(), pairs_out, 0.02)):
        assert abs(count - pairs * p) < 5 * np.sqrt(pairs * p * (1 - p))


def test_complete_and_empty_blocks():
    complete = stochastic_block_model((4, 3), ((1.0,), (2.0,)), p_in=1, p_out=1, labelled=1)
    assert complete.graph.n_edges == 7 * 6 // 2
    assert stochastic_block_model((4, 3), ((1.0,), (2.0,)), p_in=0, p_out=0, labelled=1).graph.n_edges == 0


def test_edge_weights_inside_and_across():
    network = stochastic_block_model(p_out=0.1, edge_weights=((40, 1), (10, 2)))
    inside = network.cluster[network.graph.edges[:, 0]] == network.cluster[network.graph.edges[:, 1]]
    A = network.graph.weights
    assert A[inside].mean() == pytest.approx(40, abs=0.1)
    assert A[~inside].mean() == pytest.approx(10, abs=0.3)
    assert A[~inside].std() == pytest.approx(2, abs=0.3)


def test_noise_is_on_the_labels():
    network = stochastic_block_model(noise=0.5)
    residual = network.labels - (network.data.X * network.weights[network.data.nodes]).sum(axis=1)
    assert residual.std() == pytest.approx(0.5, rel=0.1)


def test_a_large_sparse_network_needs_no_dense_array():
    network = stochastic_block_model((50_000, 50_000), ((1.0,), (-1.0,)), p_in=1e-4, p_out=1e-6, points=1)
    assert 4.8e5 > network.graph.n_edges > 2.3e5


@pytest.mark.parametrize("size", [2, 3, 10, 94_906_267])
def test_triangle_numbers_every_pair_once(size):
    pairs = size * (size - 1) // 2
    places = np.unique(np.r_[np.arange(min(pairs, 50)), pairs - 1 - np.arange(min(pairs, 50))])
    i, j = _triangle(places)
    assert (i >= 0).all()
    assert (i < j).all()
    assert j.max() == size - 1
    np.testing.assert_array_equal(j * (j - 1) // 2 + i, places)


def test_every_place_is_chosen_equally_often():
    rng = np.random.default_rng(0)
    counts = sum(np.bincount(_chosen(rng, 20, 0.3), minlength=20) for _ in range(3000))
    assert np.abs(counts - 900).max() < 5 * np.sqrt(3000 * 0.21)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sizes": (3, 0)}, "at least one node"),
        ({"weights": ((1.0, 2.0),)}, "2 clusters, so weights needs 2 rows"),
        ({"p_in": 1.5}, "p_in is a probability"),
        ({"p_out": float("nan")}, "p_out is a probability"),
        ({"points": 0}, "at least one point"),
        ({"labelled": 301}, "labelled must lie between 0 and the number of nodes, 300"),
        ({"noise": -1}, "noise must be"),
        ({"edge_weights": ((-40, 1), (10, 1))}, "weights must be positive"),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        stochastic_block_model(**arguments)
