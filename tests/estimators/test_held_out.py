"""Is it any good? Errors on labels that were held out."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, r2_score
from towns import empirical, names, rows

import coterie as ct
from coterie.estimators.assessment import assess
from coterie.estimators.fold_paths import solve_folds
from coterie.estimators.folds import folds_of, without
from coterie.estimators.held_out import HeldOut, held_out_of
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.lam_errors import choice_of
from coterie.estimators.scaling import Scaling
from coterie.io.model import read_model, write_model
from coterie.io.moments import Moments
from coterie.io.rows import Columns
from coterie.problem.losses.measure import ACCURACY, Measure

DATA = {pd: "data", pl: "values"}  # what a series calls its numbers


def two_halves(V=8, m=5, seed=0):
    """A ring of nodes, the slopes of its halves of opposite signs."""
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(V), m)
    X = rng.standard_normal((V * m, 2))
    y = np.where(nodes < V // 2, 2.0, -2.0) * X[:, 0] + 10 + 0.5 * rng.standard_normal(V * m)
    return ct.EmpiricalGraph.from_edges([(k, (k + 1) % V) for k in range(V)]), X, y, nodes


@pytest.mark.parametrize("loss", [ct.SquaredError(), ct.Logistic(ridge=0.1)])
def test_errors_and_scores_are_those_of_predictions_of_the_rest(loss):
    graph, X, y, nodes = two_halves()
    y = (y > 10).astype(float) if isinstance(loss, ct.Logistic) else y
    data = ct.LocalDatasets.from_rows(np.c_[X, np.ones(len(X))], y, nodes)
    problem = ct.Problem(graph, data, loss=loss)
    folds, over = folds_of(data, 4, "rows", np.arange(len(y)), 0)
    paths = solve_folds(problem, [0.1], folds, ones=np.ones(len(y)), tol=1e-9, engine="numpy")
    choice = choice_of(problem, [0.1], paths, over)
    found = held_out_of(problem, paths, choice, 0, "best", Scaling.none(2))
    predicted, errors = np.empty(len(y)), np.empty(len(y))
    for fold in folds:
        w = ct.solve(without(problem, fold).bound.at(0.1), 1e-9, engine="numpy").w[nodes[fold.test]]
        predicted[fold.test] = loss.predict(data.X[fold.test], w)
        errors[fold.test] = loss.error(data.X[fold.test], y[fold.test], w)
    score = accuracy_score if isinstance(loss, ct.Logistic) else r2_score
    assert found.score == pytest.approx(score(y, predicted), abs=1e-4)
    assert found.error == pytest.approx(errors.mean() ** (1 / loss.measure.degree), rel=1e-3)
    of_node = np.bincount(nodes, errors) / np.bincount(nodes)
    np.testing.assert_allclose(found.node_errors, of_node ** (1 / loss.measure.degree), rtol=1e-2)
    assert found.counts.sum() == len(y)
    assert (found.measure, found.over, found.n_folds) == (loss.measure.name, "rows", 4)


@dataclass(frozen=True)
class OwnLoss(ct.SquaredError):
    """Classes by least squares, without probabilities: all that a loss has to say of errors is in two lines."""

    measure = Measure("squared distance", score=ACCURACY)

    def predict(self, X, w):
        return (super().predict(X, w) >= 0.5).astype(float)


def test_a_loss_names_its_measure():
    graph, X, y, nodes = two_halves()
    data = ct.LocalDatasets.from_rows(np.c_[X, np.ones(len(X))], (y > 10).astype(float), nodes)
    problem = ct.Problem(graph, data, loss=OwnLoss())
    folds, over = folds_of(data, 3, "rows", np.arange(len(y)), 0)
    paths = solve_folds(problem, [0.1], folds, ones=np.ones(len(y)), engine="numpy")
    found = held_out_of(problem, paths, choice_of(problem, [0.1], paths, over), 0, "best", Scaling.none(2))
    assert found.measure == "squared distance"
    assert 0.5 < found.score <= 1
    assert found.counts is None


def test_a_fold_has_no_say_in_its_own_lam():
    errors = np.array([[1.0, 3.0, 3.0], [2.0, 2.5, 1.0]])
    choice = LamChoice(np.array([1.0, 0.1]), errors, np.zeros((2, 3)), "rows", np.ones(3))
    assert choice.best == 1
    assert choice.chosen_elsewhere().tolist() == [1, 1, 0]  # without the third fold: 2 against 2.25
    assert choice.elsewhere().tolist() == [2.0, 2.5, 3.0]


def test_a_choice_of_lam_knows_its_held_out_errors_and_a_file_keeps_them(tmp_path):
    graph, X, y, nodes = two_halves()
    model = ct.NetworkedLinearRegressionCV(graph, n_lams=4, cv=3, random_state=0, engine="numpy").fit(X, y, nodes)
    found = model.held_out_
    assert found.error >= model.lam_choice_.mean.min()
    assert 0.5 < found.score < 1
    assert (found.edges[0], found.edges[-1]) == pytest.approx((y.min(), y.max()))  # in units of y
    model.save(tmp_path / "m")
    again = ct.load(tmp_path / "m").held_out_
    for name, value in vars(found).items():
        np.testing.assert_array_equal(getattr(again, name), value)


@pytest.mark.parametrize("library", [pd, pl])
def test_the_target_has_the_name_that_y_had(tmp_path, library):
    graph, X, y, nodes = two_halves()
    model = ct.NetworkedLinearRegression(graph, engine="numpy").fit(
        X, library.Series(name="rain", **{DATA[library]: y}), nodes
    )
    model.save(tmp_path / "m")
    assert model.target_name_ == ct.load(tmp_path / "m").target_name_ == "rain"
    assert model.fit(X, library.Series(**{DATA[library]: y}), nodes).target_name_ is None


def test_errors_of_older_files_were_means_of_squares(tmp_path):
    graph, X, y, nodes = two_halves()
    model = ct.NetworkedLinearRegressionCV(graph, n_lams=4, cv=3, random_state=0, engine="numpy").fit(X, y, nodes)
    model.save(tmp_path / "new")
    record, arrays = read_model(tmp_path / "new")
    newer = ("degree", "held_out", "format", "schema", "arrays")  # the last three are written anew
    plain = {name: value for name, value in record.items() if name not in newer}
    older = {name: array for name, array in arrays.items() if not name.startswith("held_out_")}
    write_model(tmp_path / "old", plain, older | {"cv_errors": arrays["cv_errors"] ** 2})
    back = ct.load(tmp_path / "old")
    np.testing.assert_allclose(back.cv_results_["mean_error"], model.cv_results_["mean_error"])
    assert not hasattr(back, "held_out_")
    ct.write_report(back, tmp_path / "report.html")


def test_moments_know_them_too_but_for_single_predictions():
    graph, X, y, nodes = two_halves()
    model = ct.NetworkedLinearRegressionCV(graph, n_lams=4, cv=3, over="nodes", random_state=0, engine="numpy")
    plain = model.fit(X, y, nodes).held_out_
    comparison = assess(model, baselines=True)
    found = model.fit_moments(Moments.of(X, y, nodes), Columns("node", ("a", "b"), "y")).held_out_
    assert found.error == pytest.approx(plain.error, rel=0.05)
    assert found.score == pytest.approx(plain.score, abs=0.05)
    assert found.counts is None
    again = assess(model, baselines=True, condensed=True)
    assert again.methods == comparison.methods
    np.testing.assert_allclose(again.errors[:4], comparison.errors[:4], rtol=1e-5)  # those that are not solved roughly


@pytest.mark.parametrize("baselines", [None, True, False])
def test_with_lam_given_labels_are_held_out_after_the_fit(baselines):
    X, y, nodes = rows()
    model = ct.NetworkedLinearRegression(empirical(), lam=0.1, engine="numpy").fit(X, y, names(nodes))
    assert not hasattr(model, "held_out_")
    found = assess(model, cv=3, over="rows", baselines=baselines)
    assert model.held_out_.n_folds == 3
    if baselines is False:
        assert found is None
        return
    assert found.mean[found.methods.index("networked")] == pytest.approx(model.held_out_.error)
    assert ("squared variation" in found.methods) == bool(baselines)


def test_every_baseline_is_named_while_it_is_fitted():
    graph, X, y, nodes = two_halves()
    said = []
    model = ct.NetworkedLinearRegression(graph, verbose=lambda line, done: said.append(line), engine="numpy")
    found = ct.compare_baselines(model, X, y, nodes, cv=2)
    for method in found.methods:
        assert any(method in line for line in said)


def test_what_it_prints_is_a_line():
    held_out = HeldOut("root mean squared error", 1.0284, 0.1, 0.804, "nodes", 5, np.zeros(1000))
    assert repr(held_out) == "HeldOut(root mean squared error 1.028 ± 0.1, score 0.804, 5 folds over nodes)"
