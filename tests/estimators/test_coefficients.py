"""Elastic nets and bounds on coefficients, in the units of the user, in every estimator."""

import numpy as np
import pandas as pd
import pytest
from towns import CHOOSING, PLAIN, empirical, labels_for, names, quick, rows

import coterie as ct
from coterie.report.text import own_of, own_parameters

ROBUST = (ct.NetworkedHuberRegression, ct.NetworkedQuantileRegression)


def fitted(model, **parameters):
    X, y, nodes = rows()
    return quick(model, empirical(), **parameters).fit(X * [100.0, 0.01], labels_for(model, y), names(nodes))


@pytest.mark.parametrize("model", [*PLAIN, *ROBUST, *CHOOSING])
def test_bounds_are_in_units_of_coefficients(model, tmp_path):
    given = {"ridge": 0.01, "lower": [-1e-3, -np.inf], "upper": np.array([1e-3, 20.0])}
    found = fitted(model, **given)
    assert found.gap_ <= found.tol
    assert (np.abs(found.coef_[..., 0]) <= 1e-3).all()
    assert (found.coef_[..., 1] <= 20).all()
    free = fitted(model, ridge=0.01)
    assert np.abs(free.coef_[..., 0]).max() > 1e-3 or free.coef_[..., 1].max() > 20
    found.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(again.coef_, found.coef_)
    assert again.get_params()["upper"] == [1e-3, 20.0]
    assert again.get_params()["lower"] == [-1e-3, -np.inf]


@pytest.mark.parametrize("model", [*PLAIN, *ROBUST])
def test_positive_and_an_elastic_net(model):
    net = {"ridge": 0.01, "alpha": 10.0} if model is ct.NetworkedLasso else {"ridge": 0.01, "l1": 10.0}
    rounding = 1e-12 if model is ct.NetworkedQuantileRegression else 0.0
    assert np.abs(fitted(model, **net).coef_).max() <= rounding
    assert (fitted(model, ridge=0.01, positive=True).coef_ >= 0).all()


def test_without_standardize_it_is_the_problem_as_it_is_written():
    X, y, nodes = rows()
    options = {"standardize": False, "fit_intercept": False, "weight_by": "nodes", "tol": 1e-8}
    found = quick(ct.NetworkedLinearRegression, empirical(), lam=0.1, l1=0.2, ridge=0.1, upper=0.9, **options)
    found.fit(X, y, names(nodes))
    data = ct.LocalDatasets.from_rows(X, y, found.graph_.numbers(names(nodes)), n_nodes=6)
    loss = ct.SquaredError(ridge=0.1, l1=0.2, upper=0.9)
    exact = ct.solve(ct.Problem(found.graph_, data, loss, lam=0.1), 1e-8)
    np.testing.assert_allclose(found.coef_, exact.w, atol=1e-5)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"upper is one number, or one for each of the 2 features; got shape \(3,\)"):
        fitted(ct.NetworkedLinearRegression, upper=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="lower is 2, but upper is 1 for feature 1: no number is left"):
        fitted(ct.NetworkedLinearRegression, lower=[0.0, 2.0], upper=[1.0, 1.0])
    with pytest.raises(ValueError, match="positive=True asks for 0 at least, but upper is -1 for feature 0"):
        fitted(ct.NetworkedLinearRegression, positive=True, upper=-1.0)
    with pytest.raises(ValueError, match="lower of feature 1 is inf: no number is left; -inf is no bound"):
        fitted(ct.NetworkedLinearRegression, lower=[0.0, np.inf])
    with pytest.raises(ValueError, match="upper of feature 0 is -inf: no number is left; inf is no bound"):
        fitted(ct.NetworkedLinearRegression, upper=-np.inf)
    with pytest.raises(ValueError, match="would not keep bounds on weights"):
        fitted(ct.NetworkedLinearRegression, positive=True, refit="clusters")


@pytest.mark.slow
def test_intercepts_of_baselines_know_no_bounds():
    X, y, nodes = rows()
    model = quick(ct.NetworkedLinearRegression, empirical(), positive=True)
    compared = ct.compare_baselines(model, X, y, names(nodes), cv=2)
    few = ("local only", "pooled", "networked", "squared variation")
    assert compared.methods == few
    model = quick(ct.NetworkedLogisticRegression, empirical(), l1=0.1)
    assert ct.compare_baselines(model, X, y > 0, names(nodes), cv=2).methods == few


def test_one_bound_without_an_end_can_be_saved(tmp_path):
    fitted(ct.NetworkedLinearRegression, upper=np.inf, lower=pd.Series([-0.5, 0.0])).save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    X, y, nodes = rows()
    assert (again.upper, again.lower) == (np.inf, [-0.5, 0.0])
    assert (again.fit(X, y, names(nodes)).coef_[:, 1] >= 0).all()


def test_bounds_go_with_strengths_and_a_shared_component():
    free = fitted(ct.NetworkedLinearRegression, shared=True, column_strength={0: np.inf})
    most = float(free.coef_[:, 1].mean())
    found = fitted(ct.NetworkedLinearRegression, shared=True, column_strength={0: np.inf}, upper={1: most})
    assert free.coef_[:, 1].max() > most == found.coef_[:, 1].max()
    assert len(np.unique(found.coef_[:, 0])) == 1
    assert found.gap_ <= found.tol


def test_bounds_of_some_features_by_name(tmp_path):
    X, y, nodes = rows()
    frame = pd.DataFrame(X, columns=["size", "age"])
    model = quick(ct.NetworkedLinearRegression, empirical(), lower={"age": 0.5}, upper={0: 0.1})
    found = model.fit(frame, labels_for(ct.NetworkedLinearRegression, y), names(nodes))
    assert found.coef_[:, 1].min() >= 0.5
    assert found.coef_[:, 0].max() <= 0.1
    found.save(tmp_path / "model")
    assert ct.load(tmp_path / "model").get_params()["lower"] == {"age": 0.5}
    for given, words in (
        ({"lower": {"height": 1}}, "lower names 'height', but there are the features size, age"),
        ({"upper": [1, np.nan]}, "upper of feature age is nan; give a number, or inf for no bound"),
        ({"upper": {"age": None}}, "upper of 'age' is None; give a number"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            model.set_params(lower=None, upper=None).set_params(**given).fit(frame, y, names(nodes))


def test_what_a_model_has_of_its_own_is_said():
    found = fitted(ct.NetworkedHuberRegression, positive=True, l1=0.01, upper=[2.0, 3.0])
    assert own_of(found).endswith(", l1 0.01, coefficients ≥ 0, 0 ≤ 2, 1 ≤ 3")
    assert own_parameters(found)["upper"] == {"0": 2.0, "1": 3.0}
    both = fitted(ct.NetworkedHuberRegression, positive=True, lower=[-1.0, 0.5])
    assert own_of(both).endswith(", coefficients ≥ 0, 1 ≥ 0.5")
