"""Counts, outliers and quantiles: the networked models whose losses are other than squared errors."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import HuberRegressor, PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_absolute_error_score, d2_pinball_score, d2_tweedie_score, mean_poisson_deviance
from sklearn.model_selection import KFold, cross_val_score
from towns import TOWNS, empirical, names, rows

import coterie as ct
from coterie.estimators.assessment import assess
from coterie.estimators.fit_given_neighbours import fit_given_neighbours
from coterie.estimators.folds import folds_of
from coterie.estimators.scaling import Scaling
from coterie.problem.losses.row_losses import RowLosses

POISSON, HUBER, QUANTILE = ct.NetworkedPoissonRegression, ct.NetworkedHuberRegression, ct.NetworkedQuantileRegression
FAMILIES = (POISSON, HUBER, QUANTILE)
CHOOSING = (ct.NetworkedPoissonRegressionCV, ct.NetworkedHuberRegressionCV, ct.NetworkedQuantileRegressionCV)
QUICK = {"n_lams": 3, "cv": 2, "random_state": 0, "engine": "numpy", "tol": 1e-4}


def labels_of(kind, y, seed=3):
    """Counts around e^y, or numbers."""
    return np.random.default_rng(seed).poisson(np.exp(0.5 * y)).astype(float) if issubclass(kind, POISSON) else y


def fit(kind, y=None, exposure=None, **parameters):
    """A model of the six towns, and what it was fitted to."""
    X, numbers, nodes = rows()
    y = labels_of(kind, numbers) if y is None else y
    more = {} if exposure is None else {"exposure": exposure}
    model = kind(empirical(), **{"engine": "numpy"} | parameters).fit(X, y, names(nodes), **more)
    return model, X, y, names(nodes)


# --- what is fitted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        (POISSON, ct.Poisson(1e-3, (2,))),
        (HUBER, ct.Huber(unpenalised=(2,), delta=0.4)),
        (QUANTILE, ct.Quantile(1e-3, (2,), q=0.7)),
    ],
)
def test_a_fit_is_the_certified_solution(kind, loss):
    own = {HUBER: {"delta": 0.4}, QUANTILE: {"quantile": 0.7}}.get(kind, {})
    model, X, y, towns = fit(kind, lam=0.05, standardize=False, **own)
    nodes = [TOWNS.index(town) for town in towns]
    data = ct.LocalDatasets.from_rows(np.c_[X, np.ones(len(X))], y, nodes, n_nodes=6)
    solution = ct.solve(ct.Problem(empirical(), data, loss=loss, lam=0.05), engine="numpy")
    assert model.gap_ <= 1e-6
    assert model.solution_.unconditional
    assert model.coef_ == pytest.approx(solution.w[:, :2], abs=1e-9)
    errors = loss.error(data.X, data.y, solution.w[data.nodes]).reshape(6, 5).mean(axis=1)
    np.testing.assert_allclose(model.node_errors_, errors, rtol=1e-6, atol=1e-9)


def test_one_node_is_scikit_learns_poisson_regression():
    X, y, _ = rows(m=10)
    y = labels_of(POISSON, y)
    mine = POISSON(ridge=0.05, standardize=False, tol=1e-10, engine="numpy").fit(X, y)
    peer = PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=10_000).fit(X, y)  # half of it is the same penalty
    assert mine.coef_[0] == pytest.approx(peer.coef_, abs=1e-6)
    assert mine.intercept_[0] == pytest.approx(peer.intercept_, abs=1e-6)
    assert mine.score(X, y) == pytest.approx(peer.score(X, y), abs=1e-9)


def test_one_node_is_scikit_learns_quantile_regression():
    X, y, _ = rows(m=10)
    mine = QUANTILE(quantile=0.8, ridge=0.0, tol=1e-9, engine="numpy").fit(X, y)
    peer = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, y)
    assert mine.node_errors_[0] == pytest.approx(
        np.maximum(0.8 * (e := y - peer.predict(X)), -0.2 * e).mean(), rel=1e-6
    )
    assert mine.score(X, y) == pytest.approx(d2_pinball_score(y, peer.predict(X), alpha=0.8), abs=1e-6)


def test_one_node_is_a_huber_regression_with_its_scale():
    X, y, _ = rows(m=10)
    y[3] += 50
    peer = HuberRegressor(alpha=0.0, tol=1e-8).fit(X, y)
    mine = HUBER(delta=1.35 * peer.scale_, tol=1e-9, engine="numpy").fit(X, y)
    assert mine.coef_[0] == pytest.approx(peer.coef_, abs=1e-4)
    assert mine.score(X, y) == pytest.approx(d2_absolute_error_score(y, peer.predict(X)), abs=1e-4)


# --- units ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [HUBER, QUANTILE])
def test_units_of_the_labels_do_not_matter(kind):
    X, y, nodes = rows()
    delta = {"delta": 0.5} if kind is HUBER else {}
    one = kind(empirical(), engine="numpy", **delta).fit(X, y, names(nodes))
    thousand = kind(empirical(), engine="numpy", **{name: 1000 * value for name, value in delta.items()})
    thousand.fit(X, 1000 * y + 7, names(nodes))
    assert thousand.coef_ == pytest.approx(1000 * one.coef_, rel=1e-6, abs=1e-6)
    assert thousand.intercept_ == pytest.approx(1000 * one.intercept_ + 7, rel=1e-6)
    assert thousand.node_errors_ == pytest.approx(1000 * one.node_errors_, rel=1e-6, abs=1e-9)
    degree = 2 if kind is HUBER else 1
    assert thousand.solution_.objective == pytest.approx(1000**degree * one.solution_.objective, rel=1e-6)


@pytest.mark.parametrize("kind", FAMILIES)
def test_units_of_the_features_do_not_matter(kind):
    one, X, y, towns = fit(kind)
    other = clone(one).fit(X * [1000, 0.1] + [3, -2], y, towns)
    assert other.predict(X * [1000, 0.1] + [3, -2], towns) == pytest.approx(one.predict(X, towns), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", [HUBER, QUANTILE])
def test_outliers_change_neither_the_unit_nor_much_of_the_model(kind):
    _, y, _ = rows()
    model, X, y, towns = fit(kind)
    wild = y.copy()
    wild[:2] = 1e6
    spoilt = clone(model).fit(X, wild, towns)
    assert spoilt.scaling_.y_spread < 3 * model.scaling_.y_spread
    assert spoilt.predict(X[2:], towns[2:]) == pytest.approx(model.predict(X[2:], towns[2:]), abs=2.5)


def test_outliers_do_not_fill_the_picture():
    _, y, _ = rows()
    y[:2] = 1e6
    model, *_ = fit(ct.NetworkedHuberRegressionCV, y, **QUICK)
    assert model.held_out_.edges[-1] < 100
    assert model.held_out_.counts.sum() == len(y)


def test_most_labels_being_equal_leaves_the_usual_unit():
    data = ct.LocalDatasets.from_rows(np.ones((5, 1)), [0, 0, 0, 0, 10.0], [0] * 5)
    robust = Scaling.of(data.labelled, 0, labels=True, robust=True)
    assert (robust.y_centre, robust.y_spread) == (0.0, 4.0)


# --- counts and exposures -------------------------------------------------------------------------------------


def exposed():
    """Rows of the towns with hours of exposure, and counts in proportion to them."""
    X, y, nodes = rows(m=8)
    hours = np.random.default_rng(1).uniform(1, 50, len(y))
    counts = np.random.default_rng(2).poisson(hours * np.exp(0.3 * y))
    return pd.DataFrame({"rain": X[:, 0], "wind": X[:, 1], "town": names(nodes), "hours": hours}), counts


def test_an_exposure_is_given_in_any_way():
    table, y = exposed()
    X, hours = table[["rain", "wind"]], table["hours"]
    beside = POISSON(empirical(), engine="numpy").fit(X, y, table["town"], exposure=hours)
    inside = POISSON(empirical(), engine="numpy").fit(table, y, groups="town", exposure="hours")
    frame = pl.DataFrame({name: table[name].to_list() for name in table}).with_columns(pl.col("hours").log())
    third = POISSON(empirical(), engine="numpy").fit(frame, pl.Series(y), groups="town", offset="hours")
    assert beside.offset_ == ("exposure", None)
    assert inside.offset_ == ("exposure", "hours")
    assert list(inside.feature_names_in_) == ["rain", "wind"]
    assert (inside.coef_ == beside.coef_).all()
    assert third.coef_ == pytest.approx(beside.coef_, abs=1e-9)
    expected = beside.predict(X, table["town"], exposure=hours)
    assert inside.predict(table) == pytest.approx(expected)
    assert beside.predict(X, table["town"], offset=np.log(hours)) == pytest.approx(expected)
    assert beside.predict(X, table["town"], exposure=1) == pytest.approx(expected / hours)
    null = y.sum() / hours.sum() * hours
    d2 = 1 - mean_poisson_deviance(y, expected) / mean_poisson_deviance(y, null)
    assert inside.score(table, y) == pytest.approx(d2)
    assert beside.score(X, y, table["town"], exposure=hours) == pytest.approx(d2)
    assert inside.score(table, y, sample_weight=np.full(len(y), 2.0)) == pytest.approx(d2)


def test_a_model_with_an_exposure_asks_for_it():
    table, y = exposed()
    X, towns = table[["rain", "wind"]], table["town"]
    model = POISSON(empirical(), engine="numpy").fit(table, y, groups="town", exposure="hours")
    with pytest.raises(ValueError, match=r"fitted with an exposure.*'hours'.*exposure=1 gives rates"):
        model.predict(X, towns)
    with pytest.raises(ValueError, match="not both"):
        model.predict(X, towns, offset=0, exposure=1)
    with pytest.raises(ValueError, match="48 rows, but exposure has shape"):
        model.predict(X, towns, exposure=[1.0, 2.0])
    plain = POISSON(empirical(), engine="numpy").fit(X, y, towns)
    assert plain.predict(X, towns, exposure=2) == pytest.approx(2 * plain.predict(X, towns))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exposure": "hour"}, r"no column 'hour' with the exposure.*'hours'"),
        ({"exposure": "town"}, r"column 'town' of X, the exposure, holds String, not numbers"),
        ({"exposure": [1.0] * 5 + [0.0] + [1.0] * 42}, r"exposure\[5\] is 0; exposures are finite numbers > 0"),
        ({"offset": [1.0] * 5 + [np.nan] + [1.0] * 42}, r"offset\[5\] is nan; offsets are finite numbers"),
        ({"offset": [1.0] * 5 + [1000.0] + [1.0] * 42}, r"offset\[5\] is 1000, .* give its logarithm"),
        ({"exposure": ["long"] * 48}, r"exposure\[0\] is 'long'; exposures are numbers"),
    ],
)
def test_bad_exposures_are_named(given, message):
    table, y = exposed()
    with pytest.raises(ValueError, match=message):
        POISSON(empirical()).fit(table, y, groups="town", **given)
    with pytest.raises(ValueError, match="X is a ndarray without columns"):
        POISSON().fit(np.ones((2, 1)), [1, 2], exposure="hours")


def test_bad_counts_are_named():
    X, _, nodes = rows()
    y = np.ones(30)
    y[4] = -2
    with pytest.raises(ValueError, match=r"y\[4\] is -2; counts are numbers ≥ 0"):
        POISSON(empirical()).fit(X, y, names(nodes))
    with pytest.raises(ValueError, match="every count is zero"):
        POISSON(empirical()).fit(X, np.zeros(30), names(nodes))
    y[4] = 2.5  # as for scikit-learn, counts need not be whole
    assert POISSON(empirical(), engine="numpy").fit(X, y, names(nodes)).gap_ <= 1e-6


def test_a_town_without_any_event():
    X, y, nodes = rows()
    y = np.where(nodes == 2, 0.0, labels_of(POISSON, y))
    model = POISSON(empirical(), engine="numpy").fit(X, y, names(nodes))
    assert model.gap_ <= 1e-6
    assert np.isfinite(model.coef_).all()


def test_routing_carries_exposures():
    table, y = exposed()
    with sklearn.config_context(enable_metadata_routing=True):
        given = {"groups": table["town"].to_numpy(), "exposure": table["hours"].to_numpy()}
        X = table[["rain", "wind"]].to_numpy()
        scores = cross_val_score(POISSON(empirical(), engine="numpy"), X, y, cv=KFold(2), params=given)
    named = cross_val_score(
        POISSON(empirical(), engine="numpy"), table, y, cv=KFold(2), params={"groups": "town", "exposure": "hours"}
    )
    assert scores == pytest.approx(named)


# --- errors, choices and files --------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "plain"), list(zip(CHOOSING, FAMILIES, strict=True)))
def test_held_out_errors_are_those_of_the_loss(kind, plain):
    exposure, as_given = 2.0 if plain is POISSON else None, {"standardize": False, "weight_by": "nodes"}
    model, X, y, towns = fit(kind, exposure=exposure, **QUICK | as_given, lams=[0.1], over="rows")
    found, predicted = model.held_out_, np.empty(len(y))
    given = {"exposure": exposure} if plain is POISSON else {}
    order = np.argsort([TOWNS.index(town) for town in towns], kind="stable")
    for fold in folds_of(model.problem_.data, 2, "rows", order, 0)[0]:
        train, test = order[fold.train], order[fold.test]
        part = plain(empirical(), lam=0.1, engine="numpy", **as_given)
        part.fit(X[train], y[train], np.array(towns)[train], **given)
        predicted[test] = part.predict(X[test], np.array(towns)[test], **given)
    measured = {
        "mean deviance": (lambda: mean_poisson_deviance(y, predicted), lambda: d2_tweedie_score(y, predicted, power=1)),
        "mean absolute error": (lambda: np.abs(y - predicted).mean(), lambda: d2_absolute_error_score(y, predicted)),
        "pinball loss": (lambda: 0.5 * np.abs(y - predicted).mean(), lambda: d2_pinball_score(y, predicted)),
    }
    error, score = measured[found.measure]
    assert found.error == pytest.approx(error(), rel=0.05)  # folds are solved to a gap of 1e-2
    assert found.score == pytest.approx(score(), abs=0.05)
    assert found.counts.sum() == len(y)
    assert (found.coverage is not None) == (found.measure == "pinball loss")
    assert (found.residual_edges is not None) == (found.measure == "mean deviance")
    assert model.cv_results_["mean_error"][0] == pytest.approx(found.error)


def test_coverage_is_near_the_quantile():
    rng = np.random.default_rng(0)
    X, nodes = rng.standard_normal((600, 1)), np.repeat(np.arange(6), 100)
    y = X[:, 0] + rng.exponential(size=600)
    model = ct.NetworkedQuantileRegressionCV(empirical(), quantile=0.9, lams=[0.1], cv=2, random_state=0, tol=1e-3)
    model.fit(X, y, names(nodes))
    assert 0.8 < model.held_out_.coverage < 0.97
    assert (y <= model.predict(X, names(nodes))).mean() == pytest.approx(0.9, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_it_is_compared_with_baselines(kind):
    model, X, y, towns = fit(kind, lam=0.1, tol=1e-3)
    more = {"exposure": 2.0} if kind is POISSON else {}
    found = ct.compare_baselines(model, X, y, towns, cv=2, **more)
    assert found.measure == model._loss(()).measure.name
    intercepts = {"node intercepts", "mixed model"} if kind is POISSON else set()
    assert set(found.methods) == {"local only", "pooled", "networked", "squared variation"} | intercepts
    assert np.isfinite(found.errors).all()
    by_name = dict(zip(found.methods, found.mean, strict=True))
    assert by_name["networked"] < by_name["pooled"]
    assert assess(model, cv=2, baselines=False) is None
    assert model.held_out_.measure == found.measure


@pytest.mark.parametrize("kind", [*FAMILIES, *CHOOSING])
def test_a_model_is_saved_and_loaded(kind, tmp_path):
    own = {"quantile": 0.7} if issubclass(kind, QUANTILE) else {"delta": 0.4} if issubclass(kind, HUBER) else {}
    model, X, y, towns = fit(
        kind, exposure=2.0 if issubclass(kind, POISSON) else None, **own | (QUICK if kind in CHOOSING else {})
    )
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    more = {"exposure": 3.0} if issubclass(kind, POISSON) else {}
    assert type(again) is kind
    assert again.offset_ == model.offset_
    assert (again.predict(X, towns, **more) == model.predict(X, towns, **more)).all()
    assert again.score(X, y, towns, **more) == model.score(X, y, towns, **more)
    assert all(again.get_params()[name] == value for name, value in own.items())
    if kind in CHOOSING:
        assert again.held_out_.split()[0] == model.held_out_.split()[0]
        assert again.held_out_.counts.tolist() == model.held_out_.counts.tolist()
    with pytest.raises(ValueError, match="training rows"):
        again.add_nodes({"new": ["a1"]})


@pytest.mark.parametrize("kind", FAMILIES)
def test_new_nodes_and_nodes_without_labels(kind):
    X, y, nodes = rows()
    y = labels_of(kind, y)
    y[nodes == 1] = np.nan
    model = kind(empirical(), engine="numpy").fit(X, y, names(nodes))
    assert model.n_labelled_.tolist() == [5, 0, 5, 5, 5, 5]
    assert model.coef_[1] == pytest.approx(
        model.coef_[[0, 2]].mean(axis=0), abs=abs(np.ptp(model.coef_[[0, 2]], axis=0)).max()
    )
    local = model.weights_for(["a1", "a3"], X[:4], [1.0, 2.0, 3.0, 1.0])
    assert np.isfinite(local.coef).all()
    model.add_nodes({"new": ["a1", "a3"]}, X[:4], [1.0, 2.0, 3.0, 1.0], groups=["new"] * 4)
    assert np.isfinite(model.predict(X[:2], ["new", "a2"])).all()
    assert model.gap_ <= 1e-6


def test_neighbours_that_are_nearly_alike_take_no_longer(monkeypatch):
    """The node's own rows draw it far away from them, in steps that are as long."""
    data = ct.LocalDatasets.from_rows([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 1.0], [0, 0, 0])
    f, calls, prox = ct.Poisson().bind(data.labelled), [], RowLosses.prox
    monkeypatch.setattr(RowLosses, "prox", lambda *given: calls.append(1) or prox(*given))
    w = fit_given_neighbours(np.array([[2.0, 1.0], [2.001, 1.0]]), np.full(2, 0.05), ct.TotalVariation(), f)
    assert len(calls) < 3000
    assert np.abs(f.gradient(w[None])).max() == pytest.approx(0.1, abs=1e-6)  # both pull as hard as they can


def test_new_nodes_with_an_exposure_are_given_it_in_a_column():
    table, y = exposed()
    model = POISSON(empirical(), engine="numpy").fit(table, y, groups="town", exposure="hours")
    new = table.head(4).assign(town="new")
    local = model.weights_for(["a1"], new, y[:4])
    model.add_nodes({"new": ["a1"]}, new, y[:4], groups="town")
    assert model.predict(new).shape == (4,)
    assert np.isfinite(local.intercept)
    with pytest.raises(ValueError, match="fitted with an exposure"):
        model.weights_for(["a1"], new[["rain", "wind"]], y[:4])


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_row_of_weight_two_is_two_rows(kind):
    X, y, nodes = rows()
    y, towns, s = labels_of(kind, y), np.array(names(nodes)), np.ones(30)
    s[:7] = 2
    twice = np.r_[np.arange(30), np.arange(7)]
    one = kind(empirical(), engine="numpy").fit(X, y, towns, sample_weight=s)
    two = kind(empirical(), engine="numpy").fit(X[twice], y[twice], towns[twice])
    assert one.solution_.objective == pytest.approx(two.solution_.objective, rel=3e-6)
    again = one.score(X[twice], y[twice], towns[twice])
    assert one.score(X, y, towns, s) == pytest.approx(again)


@pytest.mark.parametrize(
    ("kind", "wrong"), [(HUBER, {"delta": 0.0}), (HUBER, {"delta": "1"}), (QUANTILE, {"quantile": 1.0})]
)
def test_parameters_are_checked(kind, wrong):
    with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of {kind.__name__} must be"):
        fit(kind, **wrong)
