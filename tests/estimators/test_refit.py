"""Refits on clusters: the joint regression that they are, and standard errors given the clusters."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from test_information import PATH, rows

import coterie as ct
from coterie.estimators import refit
from coterie.estimators.refit import check_refit
from coterie.report.text import refit_in_words


def expanded(model, X: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows over the fused groups, written as a loop, and the group of each weight."""
    labels = model.solution_.clusters().by_coordinate
    count = labels.max(axis=0) + 1
    at = labels + np.concatenate([[0], np.cumsum(count)[:-1]])
    Z = np.zeros((len(X), count.sum()))
    for r, (x, node) in enumerate(zip(np.column_stack([X, np.ones(len(X))]), nodes, strict=True)):
        for k, value in enumerate(x):
            Z[r, at[node, k]] += value
    return Z, at


@pytest.mark.parametrize("weight_by", ["rows", "nodes"])
def test_a_refit_is_one_regression_in_the_fused_groups(weight_by):
    X, y, nodes = (part[3:] for part in rows(0))  # the first node has fewer rows
    given = {"lam": 0.1, "standardize": False, "weight_by": weight_by}
    model = ct.NetworkedLinearRegression(PATH, refit="clusters", **given).fit(X, y, nodes)
    Z, at = expanded(model, X, nodes)
    assert 3 < Z.shape[1] < 18
    s = np.ones(len(y)) if weight_by == "rows" else 1 / np.bincount(nodes)[nodes]
    theta = np.linalg.solve(Z.T * s @ Z, Z.T * s @ y)
    assert np.allclose(model.weights_, theta[at], rtol=1e-8, atol=1e-9)
    bread = np.linalg.inv(Z.T * s @ Z)
    variance = ((y - Z @ theta) ** 2).sum() / (len(y) - Z.shape[1])
    errors = np.sqrt(variance * np.diag(bread @ (Z.T * s**2 @ Z) @ bread))[at]
    frame = model.coef_frame(errors=True)
    for k, name in enumerate(("x0", "x1", "intercept")):
        assert np.allclose(frame[f"{name}_se_given_clusters"], errors[:, k], rtol=1e-6)
    plain = ct.NetworkedLinearRegression(PATH, **given).fit(X, y, nodes)
    assert np.allclose(model.coef_penalised_, plain.coef_)
    assert np.allclose(model.intercept_penalised_, plain.intercept_)
    assert model.gap_ == plain.gap_ <= 1e-6
    assert np.array_equal(model.clusters_, plain.clusters_)
    assert model.effective_parameters_ == pytest.approx(Z.shape[1], abs=1e-5)
    assert np.array_equal(np.diff(model.coef_, axis=0) == 0, np.diff(plain.coef_, axis=0) == 0)


def test_units_do_not_matter():
    X, y, nodes = rows(1)
    one, other = (
        ct.NetworkedLinearRegression(PATH, lam=0.1, refit="clusters").fit(scale * X + 3, 5 * y - 2, nodes)
        for scale in (1.0, 100.0)
    )
    assert np.allclose(one.coef_, 100 * other.coef_)
    assert np.allclose(one._refit.errors[:, :2], 100 * other._refit.errors[:, :2])


def test_one_node_has_the_standard_errors_of_least_squares():
    X, y, _ = rows(2)
    model = ct.NetworkedLinearRegression(lam=0.0, refit="clusters").fit(X, y)
    plain = LinearRegression().fit(X, y)
    assert np.allclose(model.coef_[0], plain.coef_)
    Z = np.column_stack([X, np.ones(len(y))])
    variance = ((y - plain.predict(X)) ** 2).sum() / (len(y) - 3)
    assert np.allclose(model._refit.errors[0], np.sqrt(variance * np.diag(np.linalg.inv(Z.T @ Z))))


def test_standard_errors_of_the_huber_loss_are_those_of_an_m_estimator():
    """T⁻¹XᵀXT⁻¹ Σψ'²/(N − p) with T = Xᵀψ''X: no likelihood says how large the noise is, its residuals do."""
    X, y, _ = rows(2)
    y = y + np.where(np.arange(len(y)) % 7 == 0, 30.0, 0.0)
    s, unit = 1.0 + np.arange(len(y)) % 3, 100.0
    model = ct.NetworkedHuberRegression(delta=1.35 * unit, refit="clusters").fit(X, unit * y, sample_weight=s)
    Z, e = np.column_stack([X, np.ones(len(y))]), unit * y - model.predict(X)
    near = np.abs(e) <= 1.35 * unit
    assert 3 < near.sum() < len(y)
    bread = np.linalg.inv(Z.T * (s * near) @ Z)
    variance = (s @ np.clip(e, -1.35 * unit, 1.35 * unit) ** 2) / (s.sum() - 3)
    errors = np.sqrt(variance * np.diag(bread @ (Z.T * s @ Z) @ bread))
    assert np.allclose(model._refit.errors[0], errors, rtol=1e-6)


def test_classes_are_refitted_with_their_ridge():
    X, y, nodes = rows(3, m=10)
    model = ct.NetworkedLogisticRegression(PATH, lam=0.3, ridge=0.0, refit="clusters", standardize=False)
    model.fit(X, y > 0.5, nodes)
    Z, at = expanded(model, X, nodes)
    p = model.predict_proba(X, nodes)[:, 1]
    assert np.abs(Z.T @ (p - (y > 0.5))).max() < 1e-6 * len(y)
    errors = np.sqrt(np.diag(np.linalg.inv(Z.T * (p * (1 - p)) @ Z)))
    assert np.allclose(model._refit.errors, errors[at], rtol=1e-4)


def test_zeros_of_a_lasso_stay_zero_and_have_no_error():
    rng = np.random.default_rng(4)
    X, nodes = rng.standard_normal((60, 3)), np.repeat(np.arange(6), 10)
    y = 2 * X[:, 0] + 0.1 * rng.standard_normal(60)
    model = ct.NetworkedLasso(PATH, lam=1.0, alpha=0.3, refit="clusters").fit(X, y, nodes)
    assert (model.coef_[:, 1:] == 0).all()
    assert (np.abs(model.coef_[:, 0] - 2) < 0.2).all()
    assert (np.abs(model.coef_penalised_[:, 0]) < model.coef_[:, 0]).all()  # shrunken before
    assert np.isnan(model._refit.errors[:, 1:3]).all()
    assert np.isfinite(model._refit.errors[:, [0, 3]]).all()


def test_where_all_weights_are_held_at_zero_nothing_is_left_to_refit():
    X, y, nodes = rows(9)
    model = ct.NetworkedLasso(PATH, alpha=1e3, fit_intercept=False, refit="clusters").fit(X, y, nodes)
    assert (model.coef_ == 0).all()
    assert model.effective_parameters_ == 0
    assert np.isnan(model._refit.errors).all()


def test_what_rows_do_not_determine_keeps_its_weights_and_has_no_error():
    X, y, nodes = (
        np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]]),
        np.array([1.0, 2.1, 2.9, 4.0]),
        [0, 0, 1, 1],
    )
    model = ct.NetworkedLinearRegression([(0, 1)], lam=10.0, refit="clusters", standardize=False, fit_intercept=False)
    model.fit(X, y, nodes)
    assert np.allclose(model.coef_[:, 0] - model.coef_[:, 1], np.diff(model.coef_penalised_[0, ::-1]), atol=1e-6)
    assert np.isnan(model._refit.errors).all()
    assert model.effective_parameters_ == pytest.approx(1, abs=1e-5)


def test_folds_and_criteria_judge_the_refit():
    X, y, nodes = rows(5, m=8)
    common = {"n_lams": 6, "cv": 2, "random_state": 0}
    plain = ct.NetworkedLinearRegressionCV(PATH, **common).fit(X, y, nodes)
    again = ct.NetworkedLinearRegressionCV(PATH, refit="clusters", **common).fit(X, y, nodes)
    assert not np.array_equal(plain.lam_choice_.errors, again.lam_choice_.errors)
    assert np.allclose(plain.lam_choice_.errors[0], again.lam_choice_.errors[0], rtol=0.2)  # one model: hardly shrunken
    chosen = ct.NetworkedLinearRegressionCV(PATH, refit="clusters", criterion="bic", **common).fit(X, y, nodes)
    assert chosen.bic_ == pytest.approx(chosen.criterion_choice_.bic.min(), abs=0.01)


def test_files_and_words(tmp_path):
    X, y, nodes = rows(6)
    model = ct.NetworkedLinearRegression(PATH, lam=0.1, refit="clusters").fit(X, y, nodes)
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    assert np.array_equal(again.coef_, model.coef_)
    assert np.array_equal(again.coef_penalised_, model.coef_penalised_)
    assert again.coef_frame(errors=True).equals(model.coef_frame(errors=True))
    assert np.array_equal(again.predict(X, nodes), model.predict(X, nodes))
    assert "certificate is that of the penalised fit" in refit_in_words(again)[0]
    plain = model.set_params(refit=None).fit(X, y, nodes)
    assert not hasattr(plain, "coef_penalised_")
    assert refit_in_words(plain) == []


def test_what_cannot_be_refitted_is_refused():
    X, y, nodes = rows(7)
    with pytest.raises(ValueError, match="refit must be None or \"clusters\", got 'all'"):
        ct.NetworkedLinearRegression(PATH, refit="all").fit(X, y, nodes)
    with pytest.raises(ValueError, match="needs clusters, which SquaredVariation"):
        ct.NetworkedLinearRegression(PATH, penalty="squared", refit="clusters").fit(X, y, nodes)
    with pytest.raises(ValueError, match='fit a model with refit="clusters"'):
        ct.NetworkedLinearRegression(PATH).fit(X, y, nodes).coef_frame(errors=True)
    for penalty in ("squared", ct.SquaredVariation()):
        smooth = ct.NetworkedLinearRegression(PATH, penalty=penalty).fit(X, y, nodes)
        with pytest.raises(ValueError, match=r'refit="clusters" and penalty="l1" or "l2", which make clusters'):
            smooth.coef_frame(errors=True)


def test_one_pass_over_a_file_gives_the_same(tmp_path):
    X, y, nodes = rows(8)
    columns = {"node": nodes, "a": X[:, 0], "b": X[:, 1], "y": y}
    pl.DataFrame(columns).write_csv(tmp_path / "rows.csv")
    given = {"lams": [0.05, 0.1, 0.2], "criterion": "aicc", "refit": "clusters", "shared": True}
    once = ct.NetworkedLinearRegressionCV(PATH, over="nodes", **given)
    ct.fit_files(once, tmp_path / "rows.csv", node="node", target="y")
    model = ct.NetworkedLinearRegressionCV(PATH, **given).fit(X, y, nodes)
    assert once._condensed
    assert not model._condensed
    assert once.lam_ == model.lam_
    assert once.aicc_ == pytest.approx(model.aicc_)
    assert np.allclose(once.coef_, model.coef_)
    assert np.allclose(once.shared_coef_, model.shared_coef_)
    assert np.allclose(once._refit.errors[:6], model._refit.errors[:6])
    with pytest.raises(ValueError, match="training rows are not there"):
        once.calibrate()


def test_bounds_on_weights_are_not_refitted():
    X, y, nodes = rows(1)
    data = ct.LocalDatasets.from_rows(X, y, nodes)
    problem = ct.Problem(ct.EmpiricalGraph.from_edges(PATH), data, ct.Huber(positive=True), lam=0.1)
    with pytest.raises(ValueError, match="would not keep bounds on weights"):
        check_refit(SimpleNamespace(refit="clusters"), problem)


def test_an_intercept_behind_a_column_that_is_constant_has_no_error():
    """In the units of the user it depends on that column's weight, which a year's, of any size, must not hide."""
    rng, nodes = np.random.default_rng(0), np.repeat(np.arange(8), 12)
    X = np.column_stack([2015 + 6 * rng.standard_normal(96), 4 + rng.standard_normal(96)])
    X[nodes == 3, 1] = 5.0
    path = [(i, i + 1) for i in range(7)]
    model = ct.NetworkedLinearRegression(path, 0.1, refit="clusters", column_strength={1: 0.0, "intercept": 0.0})
    unknown = np.isnan(model.fit(X, rng.standard_normal(96), nodes)._refit.errors)
    assert model.solution_.unconditional
    assert unknown[3].tolist() == [False, True, True]
    assert unknown.sum() == 2


@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_that_a_cluster_has_no_rows_of_is_told(classes):
    rng, nodes = np.random.default_rng(1), np.repeat([0, 1], 30)
    X, y = rng.standard_normal((60, 1)), rng.integers(0, classes, 60)
    y[(nodes == 0) & (y == classes - 1)] = 0
    with pytest.warns(ConvergenceWarning, match="weights grow without end.*A larger lam makes larger clusters"):
        ct.NetworkedLogisticRegression([(0, 1)], lam=0.05, refit="clusters").fit(X, y, nodes)


def test_a_refit_out_of_steps_blames_no_separation(monkeypatch):
    monkeypatch.setattr(refit, "STEPS", 1)
    monkeypatch.setattr(refit, "STATIONARY", 10.0)
    X, y, nodes = rows(3, m=10)
    with pytest.warns(ConvergenceWarning, match="Newton's method did not settle"):
        ct.NetworkedLogisticRegression(PATH, lam=0.3, refit="clusters").fit(X, y > 0.5, nodes)


def test_weighted_classes_have_no_errors():
    X, y, nodes = rows(3, m=10)
    model = ct.NetworkedLogisticRegression(PATH, lam=0.3, refit="clusters", class_weight="balanced")
    assert np.isnan(model.fit(X, y > 0.5, nodes)._refit.errors).all()
