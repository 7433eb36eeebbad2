"""Networked logistic regression with more than two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import coterie as ct
from coterie.estimators.information import Likelihood

SPECIES = np.array(["cat", "dog", "owl"])


@pytest.fixture
def table() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Eight towns on a path, with one model on either side."""
    rng = np.random.default_rng(0)
    towns = np.repeat(np.arange(8), 15)
    X = rng.standard_normal((len(towns), 2))
    W = np.array([[[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0]], [[-2.0, 0.0], [0.0, -2.0], [2.0, 2.0]]])[(towns >= 4) * 1]
    y = SPECIES[(np.einsum("rj,rkj->rk", X, W) + rng.gumbel(size=(len(X), 3))).argmax(axis=1)]
    return pd.DataFrame(X, columns=["size", "age"]), y, towns


@pytest.fixture
def graph() -> ct.EmpiricalGraph:
    return ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(7)])


@pytest.fixture
def model(table: Any, graph: ct.EmpiricalGraph) -> ct.NetworkedLogisticRegression:
    X, y, towns = table
    return ct.NetworkedLogisticRegression(graph, lam=0.3).fit(X, y, groups=towns)


def test_shapes_and_predictions(table: Any, model: ct.NetworkedLogisticRegression) -> None:
    X, y, towns = table
    assert model.classes_.tolist() == SPECIES.tolist()
    assert model.coef_.shape == (8, 3, 2)
    assert model.intercept_.shape == (8, 3)
    assert model.dual_coef_.shape == (7, 9)
    assert model.gap_ <= 1e-6
    p, z = model.predict_proba(X, towns), model.decision_function(X, towns)
    by_hand = np.einsum("rj,rkj->rk", X.to_numpy(), model.coef_[towns]) + model.intercept_[towns]
    np.testing.assert_allclose(
        z - z.mean(axis=1, keepdims=True), by_hand - by_hand.mean(axis=1, keepdims=True), atol=1e-9
    )
    np.testing.assert_allclose(p, np.exp(by_hand) / np.exp(by_hand).sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X, towns)), p, rtol=1e-12)
    assert (model.predict(X, towns) == SPECIES[p.argmax(axis=1)]).all()
    assert model.score(X, y, towns) > 0.7
    losses = -np.log(p[np.arange(len(y)), np.searchsorted(SPECIES, y)])
    np.testing.assert_allclose(model.node_errors_, [losses[towns == i].mean() for i in range(8)], rtol=1e-9)


def test_one_node_is_scikit_learns_multinomial_regression(table: Any) -> None:
    X, y, _ = table
    alone = ct.NetworkedLogisticRegression(ridge=0.01, standardize=False, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=1 / (2 * 0.01 * len(y)), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(alone.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_two_classes_are_as_ever(table: Any, graph: ct.EmpiricalGraph) -> None:
    X, y, towns = table
    two = ct.NetworkedLogisticRegression(graph, lam=0.3).fit(X, np.where(y == "owl", "owl", "cat"), towns)
    assert two.coef_.shape == (8, 2)
    assert isinstance(two.problem_.loss, ct.Logistic)
    assert two.decision_function(X, towns).ndim == 1


def test_standardising_does_not_matter_to_predictions_without_a_penalty(table: Any) -> None:
    X, y, _ = table
    scaled = X * [1e3, 1e-3] + [5.0, 2.0]
    models = [ct.NetworkedLogisticRegression(ridge=1e-3).fit(Z, y) for Z in (X, scaled)]
    np.testing.assert_allclose(models[0].predict_proba(X), models[1].predict_proba(scaled), atol=1e-4)


def test_saved_and_loaded(table: Any, model: ct.NetworkedLogisticRegression, tmp_path: Any) -> None:
    X, _, towns = table
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.predict_proba(X, towns), model.predict_proba(X, towns))
    assert again.class_weight_.tolist() == [1.0, 1.0, 1.0]
    assert again.predict(X, towns).tolist() == model.predict(X, towns).tolist()


def test_a_frame_of_coefficients_names_the_classes(model: ct.NetworkedLogisticRegression) -> None:
    frame = model.coef_frame()
    assert [*frame.columns[1:4]] == ["cat: size", "cat: age", "cat: intercept"]
    np.testing.assert_array_equal(frame["owl: age"], model.coef_[:, 2, 1])
    np.testing.assert_array_equal(frame["dog: intercept"], model.intercept_[:, 1])
    assert model.to_networkx().nodes[0]["weights"]["dog: age"] == model.coef_[0, 1, 1]


def test_new_nodes(table: Any, model: ct.NetworkedLogisticRegression) -> None:
    X, y, towns = table
    between = model.weights_for([0, 1, 2])
    assert between.coef.shape == (3, 2)
    assert between.intercept.shape == (3,)
    own = model.weights_for([7], X[towns < 2], y[towns < 2])
    assert own.coef.shape == (3, 2)
    model.add_nodes({8: [7]})
    assert model.coef_.shape == (9, 3, 2)
    np.testing.assert_allclose(model.coef_[8], model.coef_[7], atol=1e-6)


def test_weights_of_rows_and_of_classes(table: Any, graph: ct.EmpiricalGraph) -> None:
    X, y, towns = table
    balanced = ct.NetworkedLogisticRegression(graph, lam=0.3, class_weight="balanced").fit(X, y, towns)
    assert balanced.class_weight_.shape == (3,)
    with pytest.raises(ValueError, match="every row of the class 'owl' has the sample weight zero"):
        ct.NetworkedLogisticRegression(graph).fit(X, y, towns, sample_weight=(y != "owl").astype(float))
    with pytest.raises(ValueError, match="of the class 'emu'; the model knows"):
        balanced.weights_for([0], X[:1], ["emu"])


def test_cross_validation_keeps_every_class_in_every_fold(table: Any, graph: ct.EmpiricalGraph) -> None:
    X, y, towns = table
    chosen = ct.NetworkedLogisticRegressionCV(graph, n_lams=3, cv=2, random_state=0).fit(X, y, towns)
    assert chosen.coef_.shape == (8, 3, 2)
    assert chosen.held_out_.measure == "log-loss"
    assert chosen.held_out_.score > 0.6
    assert chosen.held_out_.counts.sum() == len(y)
    rare = y.copy()
    rare[towns == 3] = "yak"
    with pytest.raises(ValueError, match="a fold holds out every row of the class 'yak'"):
        ct.NetworkedLogisticRegressionCV(graph, n_lams=2, cv=4, over="nodes", random_state=0).fit(X, rare, towns)


def test_baselines(table: Any, graph: ct.EmpiricalGraph) -> None:
    X, y, towns = table
    found = ct.compare_baselines(ct.NetworkedLogisticRegression(graph, lam=0.3), X, y, towns, cv=2)
    error = dict(
        zip(found.methods, np.atleast_2d(found.errors).reshape(len(found.methods), -1).mean(axis=1), strict=True)
    )
    assert error["networked"] < error["pooled"]


def test_errors_are_log_losses(table: Any, model: ct.NetworkedLogisticRegression) -> None:
    X, y, towns = table
    rows = model.problem_.data.labelled
    w = model.solution_.w[np.repeat(rows.M, rows.m)]
    ours = np.average(model.problem_.loss.error(rows.X, rows.y, w), weights=rows.weights)
    np.testing.assert_allclose(ours, log_loss(y, model.predict_proba(X, towns)), rtol=1e-9)


def test_two_classes_have_the_same_information_in_either_form(graph: ct.EmpiricalGraph) -> None:
    """w₁ = −w₀ = d/2 is the loss of two classes in d, with half the ridge and the same variation."""
    rng = np.random.default_rng(3)
    nodes = np.repeat(np.arange(8), 6)
    X = rng.standard_normal((len(nodes), 2))
    y = (X[:, 0] * np.where(nodes < 4, 2.0, -1.0) + rng.logistic(size=len(nodes)) > 0).astype(float)
    data = ct.LocalDatasets.from_rows(X, y, nodes)
    found = []
    for loss in (ct.Logistic(ridge=0.05), ct.Multinomial(n_classes=2, ridge=0.1)):
        problem = ct.Problem(graph, data, loss, lam=0.1)
        w = ct.solve(problem, tol=1e-11, engine="numpy").w
        found.append(Likelihood(problem, 1.0, 1.0).of(0.1, w))
    one, other = found
    assert 2 < one.effective_parameters < 16
    assert other.effective_parameters == pytest.approx(one.effective_parameters, rel=1e-4)
    assert other.deviance == pytest.approx(one.deviance, rel=1e-6)
    assert other.n_rows == one.n_rows


def test_criteria_choose_lam_for_several_classes(table: Any, graph: ct.EmpiricalGraph) -> None:
    X, y, towns = table
    model = ct.NetworkedLogisticRegressionCV(graph, lams=[10.0, 0.1], criterion="aicc").fit(X, y, groups=towns)
    p = model.criterion_choice_.effective_parameters
    assert p[0] == pytest.approx(2 * 3, abs=0.1)  # one model for all: of K classes, K − 1 are free
    assert p[1] > 2 * 2 * 3 - 1
    assert model.lam_ == 0.1
    fit = model.predict_proba(X, towns)[np.arange(len(y)), np.searchsorted(SPECIES, y)]
    k, N = model.effective_parameters_, len(y)
    assert model.aicc_ == pytest.approx(-2 * np.log(fit).sum() + 2 * k * N / (N - k - 1), rel=1e-6)


@pytest.mark.parametrize(("lam", "weight_by"), [(0.1, "rows"), (0.3, "nodes"), (100.0, "rows")])
def test_a_refit_is_one_regression_in_the_fused_groups(
    table: Any, graph: ct.EmpiricalGraph, lam: float, weight_by: str
) -> None:
    """Written as a loop over rows: slopes add up to zero in every group, and errors come from their covariance."""
    X, y, towns = (part[4:] for part in table)  # the first town has fewer rows
    given = {"lam": lam, "ridge": 1e-3, "standardize": False, "weight_by": weight_by}
    model = ct.NetworkedLogisticRegression(graph, refit="clusters", **given).fit(X, y, groups=towns)
    plain = ct.NetworkedLogisticRegression(graph, **given).fit(X, y, groups=towns)
    assert model.gap_ == plain.gap_ <= 1e-6
    assert np.array_equal(model.coef_penalised_, plain.coef_)
    less = log_loss(y, plain.predict_proba(X, towns)) - log_loss(y, model.predict_proba(X, towns))
    assert less == pytest.approx(0, abs=1e-9) if lam == 100 else less > 0.01  # one cluster is not shrunken
    labels = model.solution_.clusters().by_coordinate
    count = labels.max(axis=0) + 1
    at = labels + np.concatenate([[0], np.cumsum(count)[:-1]])
    assert (count == 1).all() == (lam == 100)
    p, Z = model.predict_proba(X, towns), np.column_stack([X, np.ones(len(X))])
    s = (1 / len(y) if weight_by == "rows" else 1 / np.bincount(towns)[towns]) * np.ones(len(y))
    s *= len(np.unique(towns)) if weight_by == "rows" else 1
    slope, T, C = np.zeros(count.sum()), np.zeros((count.sum(),) * 2), np.zeros((count.sum(),) * 2)
    for r, town in enumerate(towns):
        B = np.zeros((9, count.sum()))
        B[np.arange(9), at[town]] = 1
        slope += s[r] * B.T @ np.kron(p[r] - (y[r] == SPECIES), Z[r])
        H = B.T @ np.kron(np.diag(p[r]) - np.outer(p[r], p[r]), np.outer(Z[r], Z[r])) @ B
        T, C = T + s[r] * H, C + s[r] ** 2 * H
    w, ridge = model.weights_, np.tile([1e-3, 1e-3, 0.0], 3)
    for town in range(8):
        np.add.at(slope, at[town], 2 * ridge * w[town])
        np.add.at(T, (at[town], at[town]), 2 * ridge)
    assert np.abs(slope).max() < 1e-6
    V = np.linalg.pinv(T, rcond=1e-10, hermitian=True)
    centre = np.kron(np.eye(3) - 1 / 3, np.eye(3))
    for town in range(8):
        B = np.zeros((9, count.sum()))
        B[np.arange(9), at[town]] = 1
        errors = np.sqrt(np.diag(centre @ B @ V @ C @ V @ B.T @ centre))
        np.testing.assert_allclose(model._refit.errors[town], errors, rtol=1e-4)


def test_refits_of_classes_are_saved_and_have_a_frame(table: Any, graph: ct.EmpiricalGraph, tmp_path: Any) -> None:
    X, y, towns = table
    model = ct.NetworkedLogisticRegressionCV(graph, n_lams=4, cv=2, random_state=0, refit="clusters")
    model.fit(X, y, groups=towns).save(tmp_path / "model")
    frame = model.coef_frame(errors=True)
    assert (frame[["cat: size_se_given_clusters", "owl: intercept_se_given_clusters"]] > 0).all(axis=None)
    each = model.weights_.reshape(8, 3, -1)  # errors are of what a class has beyond the mean of all
    np.testing.assert_allclose(frame["cat: size"], (each - each.mean(axis=1, keepdims=True))[:, 0, 0])
    np.testing.assert_allclose(model.coef_frame()["cat: size"], each[:, 0, 0])
    again = ct.load(tmp_path / "model")
    assert again.coef_frame(errors=True).equals(frame)
    np.testing.assert_array_equal(again.predict_proba(X, towns), model.predict_proba(X, towns))
    assert np.isfinite(model.aicc_)


def test_units_do_not_matter_to_errors_of_refits(table: Any, graph: ct.EmpiricalGraph) -> None:
    X, y, towns = table
    one, other = (
        ct.NetworkedLogisticRegression(graph, lam=0.3, ridge=0.0, refit="clusters").fit(Z, y, towns)._refit.errors
        for Z in (X, X * [100.0, 0.01] + [5.0, -3.0])
    )
    scale = np.tile([100.0, 0.01], (8, 3, 1))
    np.testing.assert_allclose(one.reshape(8, 3, 3)[..., :2], scale * other.reshape(8, 3, 3)[..., :2], rtol=1e-4)
