"""A component that all nodes share: the hub's problem, and nothing of the hub where nodes are spoken of."""

from __future__ import annotations

import numpy as np
import pytest
from test_information import PATH, rows
from towns import TOWNS, empirical

import coterie as ct
from coterie.estimators.shared import HUB
from coterie.report.page import render


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared"])
def test_it_is_one_more_node_joined_to_all(penalty):
    X, y, nodes = rows(0)
    X, y, nodes = X[3:], y[3:], nodes[3:]  # the first node has fewer rows
    spokes = 0.1 * np.bincount(nodes) / np.bincount(nodes).mean()
    by_hand = ct.EmpiricalGraph.from_edges([*PATH, *((k, 6) for k in range(6))], [*np.ones(len(PATH)), *spokes])
    known = ct.NetworkedLinearRegression(by_hand, lam=0.1, penalty=penalty).fit(X, y, nodes)
    model = ct.NetworkedLinearRegression(PATH, lam=0.1, penalty=penalty, shared=True).fit(X, y, nodes)
    assert np.allclose(model.coef_, known.coef_[:6], atol=1e-5)
    assert np.allclose(model.shared_coef_, known.coef_[6], atol=1e-5)
    assert model.shared_intercept_ == pytest.approx(known.intercept_[6], abs=1e-5)
    assert model.solution_.objective == pytest.approx(known.solution_.objective)
    assert model.gap_ <= 1e-6


def test_the_hub_is_no_node_of_the_model():
    X, y, nodes = rows(1)
    model = ct.NetworkedLinearRegressionCV(PATH, n_lams=5, cv=2, random_state=0, shared=True).fit(X, y, nodes)
    assert model.lam_choice_.over == "rows"  # the hub is no node that waits for labels
    assert model.coef_.shape == (6, 2)
    assert model.nodes_.tolist() == list(range(6))
    assert model.graph_.n_edges == len(model.dual_coef_) == len(PATH)
    assert np.array_equal(model.graph_.edges, ct.EmpiricalGraph.from_edges(PATH).edges)
    for of_nodes in (model.clusters_, model.n_labelled_, model.node_errors_, model.held_out_.node_errors):
        assert len(of_nodes) == 6
    assert len(model.coef_frame()) == 6
    assert HUB not in render(model)
    plain = model.set_params(shared=False).fit(X, y, nodes)
    assert not hasattr(plain, "shared_coef_")


def test_nodes_that_are_not_in_the_graph_have_the_shared_model(tmp_path):
    X, y, nodes = rows(2)
    model = ct.NetworkedLinearRegression(empirical(), lam=0.1, shared=True).fit(X, y, [TOWNS[k] for k in nodes])
    predicted = model.predict(X[:2], groups=["a1", "elsewhere"])
    assert predicted[0] == pytest.approx(X[0] @ model.coef_[0] + model.intercept_[0])
    assert predicted[1] == pytest.approx(X[1] @ model.shared_coef_ + model.shared_intercept_)
    model.calibrate(by="nodes")
    assert np.allclose(model.predict_interval(X[:2], ["a1", "elsewhere"], 0.8).mean(axis=1), predicted)
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    assert np.array_equal(again.predict(X[:2], groups=["a1", "elsewhere"]), predicted)
    assert again.nodes_.tolist() == TOWNS
    assert again.graph_.n_nodes == again.graph.n_nodes == 6
    with pytest.raises(ValueError, match="'elsewhere'"):
        model.fit(X[:2], y[:2], groups=["a1", "elsewhere"])


def test_a_node_without_edges_learns_of_the_others():
    X, y, nodes = rows(3)
    alone = ct.EmpiricalGraph.from_edges(PATH, n_nodes=7)
    model = ct.NetworkedLinearRegression(alone, lam=0.1, penalty="squared", shared=True).fit(X, y, nodes)
    assert len(model.undetermined_nodes_) == 0
    assert np.allclose(model.coef_[6], model.shared_coef_)


def test_one_node_needs_no_groups():
    X, y, _ = rows(0)
    model = ct.NetworkedLinearRegression(shared=True).fit(X, y)
    assert np.allclose(model.predict(X), ct.NetworkedLinearRegression().fit(X, y).predict(X), atol=1e-3)


def test_nodes_that_are_not_in_the_graph_are_calibrated_by_one_at_a_time():
    X, y, nodes = rows(0)
    model = ct.NetworkedLinearRegression(PATH, lam=0.1, shared=True).fit(X, y, nodes)
    model.calibrate(X, y, nodes + 10, by="nodes")
    assert len(model.calibration_.residuals) == len(np.unique(nodes))
    model.calibrate(by="rows")
    with pytest.warns(UserWarning, match="a node that is not in the graph has no labels"):
        model.predict_interval(X, nodes + 10)


def test_nodes_that_join_later():
    X, y, nodes = rows(4)
    model = ct.NetworkedLinearRegression(PATH, lam=0.1, penalty="squared", shared=True).fit(X, y, nodes)
    assert np.allclose(model.weights_for([]).coef, model.shared_coef_)
    spoke = 0.1 / 5  # that of one row: the others have five each
    between = model.weights_for([0]).coef
    assert np.allclose(between, (model.coef_[0] + spoke * model.shared_coef_) / (1 + spoke), atol=1e-6)
    model.add_nodes({"new": {0: 1.0}})
    assert model.coef_.shape == (7, 2)
    assert model.graph_.n_nodes == 7
    assert np.allclose(model.coef_[6], (model.coef_[0] + spoke * model.shared_coef_) / (1 + spoke), atol=1e-3)
    assert model.gap_ <= 1e-6


def test_classes_and_refits_have_it_too():
    X, y, nodes = rows(5, m=8)
    classes = ct.NetworkedLogisticRegression(PATH, lam=0.1, shared=True).fit(X, y > 0, nodes)
    assert classes.predict_proba(X[:1], groups=[99]).shape == (1, 2)
    model = ct.NetworkedLinearRegression(PATH, lam=0.1, shared=True, refit="clusters").fit(X, y, nodes)
    assert len(model.coef_frame(errors=True)) == len(model.coef_penalised_) == 6
    assert np.isfinite(model.aicc_)


def test_a_name_that_is_taken_is_refused():
    X, y, nodes = rows(6)
    graph = ct.EmpiricalGraph.from_edges(PATH, ids=[HUB, *"bcdef"])
    with pytest.raises(ValueError, match="a node is called 'shared by all nodes'"):
        ct.NetworkedLinearRegression(graph, shared=True).fit(X, y, [graph.names[k] for k in nodes])
