"""Strengths of columns by name, in models, their files and their words."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from towns import CHOOSING, PLAIN, empirical, labels_for, names, quick, rows

import coterie as ct
from coterie.estimators import refine_strength
from coterie.estimators.column_strength import as_array, strengths_of
from coterie.estimators.refine_strength import refine
from coterie.report.text import penalty_of

INF = np.inf


def fitted(model=ct.NetworkedLinearRegression, **parameters):
    X, y, nodes = rows()
    X = pd.DataFrame(X, columns=["age", "income"])
    return quick(model, empirical(), **parameters).fit(X, labels_for(model, y), names(nodes))


@pytest.mark.parametrize("model", [*PLAIN, *CHOOSING])
def test_slopes_of_all_and_an_intercept_of_each(model):
    separable = issubclass(model, ct.NetworkedLogisticRegression)  # by an intercept, at a node of one class
    found = fitted(model, column_strength={"age": INF, 1: INF, "intercept": 0.1 if separable else 0})
    assert (found.coef_ == found.coef_[0]).all()
    assert found.gap_ <= found.tol
    assert separable or len(np.unique(found.intercept_)) == 6


def test_it_is_a_regression_with_a_dummy_per_node():
    X, y, nodes = rows()
    found = fitted(column_strength={"age": INF, "income": INF, "intercept": 0}, tol=1e-10)
    dummies = np.linalg.lstsq(np.column_stack([X, np.eye(6)[nodes]]), y, rcond=None)[0]
    np.testing.assert_allclose(found.coef_[0], dummies[:2], rtol=1e-4)
    np.testing.assert_allclose(found.intercept_, dummies[2:], atol=1e-4)


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared"])
def test_strengths_of_one_change_nothing(penalty):
    one, other = fitted(penalty=penalty), fitted(penalty=penalty, column_strength={"age": 1.0, "intercept": 1})
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_they_count_in_units_that_are_solved_in():
    """With standardize, units do not matter; twice the strength of all is twice λ."""
    X, y, nodes = rows()
    twice = {"age": 2.0, "income": 2.0, "intercept": 2.0}
    one, other = fitted(lam=0.02, column_strength=twice), fitted(lam=0.04)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)
    X = pd.DataFrame(X * [100.0, 1.0], columns=["age", "income"])
    scaled = quick(ct.NetworkedLinearRegression, empirical(), lam=0.02, column_strength=twice).fit(X, y, names(nodes))
    np.testing.assert_allclose(scaled.coef_ * [100.0, 1.0], one.coef_, atol=1e-4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"height": 2.0}, r"names 'height', but there are the features age, income and intercept"),
        ({2: 2.0}, r"names 2, but there are the features age, income"),
        ({"age": -1.0}, r"column_strength of 'age' is -1.0; a strength is 0, a number from"),
        ({"age": "much"}, r"column_strength of 'age' is 'much'"),
        ({"age": np.nan}, r"column_strength of 'age' is nan"),
    ],
)
def test_what_is_wrong_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        fitted(column_strength=given)


def test_no_intercept_has_no_strength():
    with pytest.raises(ValueError, match="names the intercept, but the model has none"):
        fitted(column_strength={"intercept": 0}, fit_intercept=False)


def test_columns_without_names_have_numbers():
    np.testing.assert_array_equal(as_array({0: 2.0, "intercept": INF}, None, 2, True), [2.0, 1.0, INF])
    with pytest.raises(ValueError, match="names 'age', but there are the numbers from 0 to 1"):
        as_array({"age": 2.0}, None, 2, False)
    assert as_array({}, None, 2, True) is None


def test_a_feature_may_be_called_intercept_where_that_is_the_only_one():
    np.testing.assert_array_equal(as_array({"intercept": 2.0}, ["intercept", "x"], 2, False), [2.0, 1.0])
    np.testing.assert_array_equal(as_array({0: 2.0}, ["intercept", "x"], 2, True), [2.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="names 'intercept', which a feature is called, too"):
        as_array({"intercept": 2.0}, ["intercept", "x"], 2, True)


def test_files_and_words_keep_them(tmp_path):
    given = {"age": INF, 1: 2.0, "intercept": 0}
    model = fitted(column_strength=given)
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    assert again.column_strength == given
    np.testing.assert_array_equal(again.coef_, model.coef_)
    said = "relative to λ, age ∞ (one coefficient for all), income 2, intercept 0 (every node for itself)"
    assert penalty_of(again).endswith(said)


def test_words_name_all_strengths_that_folds_chose(monkeypatch):
    monkeypatch.setattr(refine_strength, "refine", lambda first, tried, intercept: np.array([INF, 1.0, 0.25]))
    model = fitted(ct.NetworkedLinearRegressionCV, refine_strength=True, lams=[0.1], cv=2)
    chosen = "relative to λ as the folds chose, age ∞ (one coefficient for all), income 1, intercept 0.25"
    assert penalty_of(model).endswith(chosen)


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared"])
@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_new_nodes_keep_to_them(penalty, lam):
    """Given the others, nothing is better for a new node."""
    strength = {"age": INF, "income": 2.0, "intercept": 0}
    old = fitted(penalty=penalty, lam=lam, column_strength=strength, standardize=False)
    X, y, _ = rows(m=1, seed=9)
    X, joined = pd.DataFrame(X, columns=["age", "income"]), {"a1": 1.0, "a3": 0.5, "b2": 2.0}
    coef, intercept = old.weights_for(joined, X, y)
    assert coef[0] == pytest.approx(old.coef_[0, 0], rel=1e-12)
    grown = fitted(penalty=penalty, lam=lam, column_strength=strength, standardize=False)
    grown.add_nodes({"new": joined}, X, y, ["new"] * len(y))
    w = np.vstack([np.column_stack([old.coef_, old.intercept_]), [old.coef_[0, 0], coef[1], intercept]])
    at, rng = grown.problem_.objective(w), np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            other = w.copy()
            other[-1, 1:] += size * rng.standard_normal(2)
            assert grown.problem_.objective(other) >= at - 1e-9
    alone = old.weights_for(joined)
    assert alone.coef[0] == pytest.approx(old.coef_[0, 0], rel=1e-12)
    near, A = old.graph_.numbers(list(joined)), list(joined.values())
    assert alone.intercept == pytest.approx(np.average(old.intercept_[near], weights=A))


def test_refining_is_a_search_one_column_at_a_time():
    """Of an error that has its minimum at strengths 16, 0 and 1, from others that are near none of them."""
    asked = []

    def tried(strength, lam):
        asked.append(lam)
        goal, at = np.log([16.0, 1e-3, 1.0]), np.log(np.clip(strength, 1e-3, 1e3))
        return 1.0 + float(((at - goal) ** 2).sum()), 0.5

    np.testing.assert_allclose(refine(np.array([0.9, 1.0, 3.0]), tried), [14.4, 0.0, 0.75])
    assert asked[0] is None
    assert set(asked[1:]) == {0.5}
    np.testing.assert_array_equal(refine(np.array([0.0, np.inf, 1.0]), tried), [0.0, np.inf, 1.0])
    given = np.array([1000.0, 2.0, 1e9])  # where nothing is better, they stay
    np.testing.assert_array_equal(refine(given, lambda s, lam: (1.0, 0.1)), given)


def test_slopes_that_all_share_are_tried_together():
    """Where each slope alone would not pay, and an intercept of every node neither."""

    def tried(strength, lam):
        common = np.isinf(strength[:2]).all()
        return (0.5 if strength[2] == 0 else 0.8) if common else 1.0, 0.1

    np.testing.assert_array_equal(refine(np.ones(3), tried, True), [np.inf, np.inf, 0.0])

    def better_with_little(strength, lam):
        """Of an intercept that is best at 1/64, where λ has been chosen: at zero, λ says nothing."""
        error = 1.0 if not np.isinf(strength[:2]).all() else 0.5 if strength[2] == 0 else 0.9
        return (0.4 if 0 < strength[2] < 0.1 and lam != 0 else error), 0.0 if strength[2] == 0 else 0.1

    assert refine(np.ones(3), better_with_little, True)[2] == 1 / 64
    np.testing.assert_array_equal(refine(np.ones(3), tried), np.ones(3))
    np.testing.assert_array_equal(refine(np.array([1.0, 1.0, np.inf]), tried, True), [np.inf, np.inf, np.inf])


def test_no_folds_where_nothing_is_held_out():
    with pytest.raises(ValueError, match="holds nothing out"):
        fitted(ct.NetworkedLinearRegressionCV, criterion="aicc", refine_strength=True)


def test_levels_of_nodes_without_labels_are_those_of_others():
    """Of counts, a level that nothing is known of must not be that of one per row."""
    rng = np.random.default_rng(0)
    nodes, X = np.repeat(np.arange(6), 20), rng.standard_normal((120, 1))
    y = rng.poisson(1000 * np.exp(0.1 * X[:, 0])).astype(float)
    y[nodes == 3] = np.nan
    model = quick(ct.NetworkedPoissonRegression, empirical(), column_strength={0: INF, "intercept": 0.0}, lam=0.1)
    predicted = model.fit(X, y, names(nodes)).predict(X[nodes == 3], names(nodes[nodes == 3]))
    assert (predicted > 500).all()
    assert (predicted < 2000).all()


@pytest.mark.slow
def test_rows_choose_strengths(tmp_path):
    """One slope is the same everywhere, the other of every town for itself: the first gets more strength."""
    rng = np.random.default_rng(0)
    nodes, X = np.repeat(np.arange(6), 8), rng.standard_normal((48, 2))
    own = np.array([5.0, -5.0, 0.0, 3.0, -3.0, 1.0])
    y = own[nodes] * X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(48)
    options = {"fit_intercept": False, "over": "rows", "cv": 3, "tol": 1e-4}
    model = quick(ct.NetworkedLinearRegressionCV, empirical(), refine_strength=True, **options).fit(X, y, names(nodes))
    assert model.strengths_[1] > model.strengths_[0]
    assert (
        model.lam_choice_.mean.min()
        < quick(type(model), empirical(), **options).fit(X, y, names(nodes)).held_out_.error
    )
    np.testing.assert_array_equal(model.problem_.strength, model.strengths_)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(ct.load(tmp_path / "model").strengths_, model.strengths_)


def test_strengths_of_several_classes_have_the_names_of_columns():
    X, _, nodes = rows()
    classes = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    table = pd.DataFrame(X, columns=["age", "income"])
    model = ct.NetworkedLogisticRegression(
        empirical(), lam=0.1, ridge=0.1, column_strength={"age": INF, "intercept": 2.0}
    )
    assert strengths_of(model.fit(table, classes, names(nodes))) == {"age": INF, "intercept": 2.0}


@pytest.mark.parametrize("norm", [{}, {"l1": 0.01}], ids=str)
@pytest.mark.parametrize("model", [ct.NetworkedLogisticRegression, ct.NetworkedPoissonRegression])
def test_an_intercept_per_node_does_not_crawl_where_nodes_have_one_class_or_no_event(model, norm):
    rng = np.random.default_rng(0)
    nodes = np.repeat(np.arange(30), rng.integers(1, 8, 30))
    X, level = rng.standard_normal((len(nodes), 2)), rng.standard_normal(30)
    score = X[:, 0] + level[nodes]
    y = rng.poisson(np.exp(score.clip(-3, 2))) if "Poisson" in model.__name__ else score > rng.logistic(size=len(nodes))
    edges = [(i, i + 1) for i in range(29)] + [(i, i + 3) for i in range(27)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # such an intercept has no end, and no ridge
        found = model(edges, lam=0.1, column_strength={"intercept": 0}, engine="numpy", max_iter=1000, **norm).fit(
            X, y, groups=nodes
        )
    assert found.gap_ <= 1e-6
