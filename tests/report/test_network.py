import numpy as np
import pytest

from coterie import EmpiricalGraph
from coterie.datasets import stochastic_block_model
from coterie.report import layout as layouts
from coterie.report.figures import new_figure
from coterie.report.layout import layout
from coterie.report.network import draw_network, principal_tone

GRAPHS = {
    "one node": EmpiricalGraph.from_edges([], n_nodes=1),
    "no edge": EmpiricalGraph.from_edges([], n_nodes=7),
    "one edge": EmpiricalGraph.from_edges([(0, 1)]),
    "triangle": EmpiricalGraph.from_edges([(0, 1), (1, 2), (0, 2)]),
    "path": EmpiricalGraph.from_edges([(k, k + 1) for k in range(30)]),
    "star": EmpiricalGraph.from_edges([(0, k) for k in range(1, 20)]),
    "components": EmpiricalGraph.from_edges([(0, 1), (1, 2), (3, 4), (6, 8), (8, 9)], n_nodes=12),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_every_node_has_a_place_of_its_own(graph):
    x = layout(graph)
    assert x.shape == (graph.n_nodes, 2)
    assert np.isfinite(x).all()
    distance = np.linalg.norm(x[:, None] - x[None], axis=2) + np.eye(graph.n_nodes)
    assert distance.min() > 1e-3
    np.testing.assert_array_equal(x, layout(graph))


def test_clusters_lie_apart():
    network = stochastic_block_model((40, 40))
    x = layout(network.graph)
    a, b = x[:40], x[40:]
    gap = np.linalg.norm(a.mean(axis=0) - b.mean(axis=0))
    assert gap > 1.5 * max(np.linalg.norm(c - c.mean(axis=0), axis=1).mean() for c in (a, b))


def test_components_do_not_overlap():
    network = stochastic_block_model((60, 30), p_out=0)
    x = layout(network.graph)
    distance = np.linalg.norm(x[:60, None] - x[None, 60:], axis=2)
    assert distance.min() > 1


def test_a_large_component_is_laid_out_without_forces(monkeypatch):
    monkeypatch.setattr(layouts, "FORCES_UP_TO", 100)
    network = stochastic_block_model((300, 300), p_in=0.1, p_out=0.001)
    assert np.isfinite(layout(network.graph)).all()


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("n", [1, 3])
def test_draws_any_graph(graph, n, tmp_path):
    figure = new_figure(9, 5)
    w = np.random.default_rng(0).standard_normal((graph.n_nodes, n))
    draw_network(figure.add_subplot(), graph, w, labelled=np.array([0]))
    figure.savefig(tmp_path / "x.png", dpi=40)


@pytest.mark.parametrize("labelled", [None, np.arange(60)])
def test_draws_equal_weights_with_none_or_all_labelled(labelled, tmp_path):
    figure = new_figure(9, 5)
    draw_network(figure.add_subplot(), stochastic_block_model((30, 30)).graph, np.ones((60, 2)), labelled=labelled)
    figure.savefig(tmp_path / "x.png", dpi=40)


def test_edges_across_which_weights_differ_are_marked():
    graph, w = EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)]), np.array([[1.0], [1.0], [5.0], [5.0]])
    ax = new_figure(9, 5).add_subplot()
    draw_network(ax, graph, w)
    same, cut = (len(c.get_segments()) for c in ax.collections[:2])
    assert (same, cut) == (2, 1)


def test_principal_tone():
    w = np.array([[1.0, 3.0], [1.0, -3.0], [1.0, 3.0]])
    tone, share = principal_tone(w)
    np.testing.assert_allclose(tone, [2, -4, 2])
    assert share == pytest.approx(1)
    assert principal_tone(np.ones((4, 2)))[1] == 1
