"""The models keep scikit-learn's own rules."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from towns import CHOOSING, PLAIN, empirical, labels_for, names, networkx_graph, quick, rows

import coterie as ct

FAMILIES = (ct.NetworkedPoissonRegression, ct.NetworkedHuberRegression, ct.NetworkedQuantileRegression)
CHOOSING_TOO = (*CHOOSING, ct.NetworkedPoissonRegressionCV)


@parametrize_with_checks(
    [*(model() for model in (*PLAIN, *FAMILIES)), *(model(n_lams=3, cv=2) for model in CHOOSING_TOO)]
)
def test_it_passes_every_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [model(n_lams=3, cv=2) for model in (ct.NetworkedHuberRegressionCV, ct.NetworkedQuantileRegressionCV)]
    + [ct.NetworkedLinearRegression(shared=True)]
)
def test_so_do_those_that_take_longer(estimator, check):
    check(estimator)


# --- the tools of the trade -----------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def table():
    X, y, nodes = rows(m=8)
    return X, y, np.array(names(nodes))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("model", PLAIN)
def test_a_pipeline_carries_the_nodes(table, model):
    X, y, towns = table
    y = labels_for(model, y)
    chain = Pipeline([("scale", StandardScaler()), ("model", quick(model, empirical()))])
    chain.fit(X * [1e3, 1e-3], y, groups=towns)
    alone = quick(model, empirical()).fit(StandardScaler().fit_transform(X), y, towns)
    assert chain[-1].coef_ == pytest.approx(alone.coef_)
    assert chain.score(X * [1e3, 1e-3], y, groups=towns) == pytest.approx(
        alone.score(StandardScaler().fit_transform(X), y, groups=towns)
    )
    assert len(chain.predict(X, groups=towns)) == len(X)


def test_a_pipeline_carries_the_nodes_without_routing(table):
    X, y, towns = table
    chain = make_pipeline(StandardScaler(), ct.NetworkedLinearRegression(empirical()))
    chain.fit(X, y, networkedlinearregression__groups=towns)
    assert len(chain.predict(X, groups=towns)) == len(X)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("model", PLAIN)
def test_grid_search_over_lam(table, model):
    X, y, towns = table
    y = labels_for(model, y)
    search = GridSearchCV(quick(model, networkx_graph()), {"lam": [1e-3, 0.1, 1e6]}, cv=KFold(3))
    search.fit(X, y, groups=towns)
    assert search.best_params_["lam"] in (1e-3, 0.1)
    assert len(search.best_estimator_.predict(X, groups=towns)) == len(X)
    by_hand = [
        clone(search.estimator)
        .set_params(lam=0.1)
        .fit(X[train], y[train], towns[train])
        .score(X[test], y[test], groups=towns[test])
        for train, test in KFold(3).split(X)
    ]
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand))


@pytest.mark.usefixtures("routing")
def test_grid_search_over_a_pipeline_holding_out_nodes(table):
    X, y, towns = table
    chain = Pipeline([("scale", StandardScaler()), ("model", ct.NetworkedLinearRegression(empirical()))])
    search = GridSearchCV(chain, {"model__lam": [0.01, 1e6]}, cv=GroupKFold(3)).fit(X, y, groups=towns)
    assert search.best_params_ == {"model__lam": 0.01}


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("model", PLAIN)
def test_cross_val_score(table, model):
    X, y, towns = table
    scores = cross_val_score(quick(model, empirical()), X, labels_for(model, y), cv=KFold(3), params={"groups": towns})
    assert scores.shape == (3,)
    assert (scores > 0.5).all()


@pytest.mark.parametrize(("model", "library"), list(zip(PLAIN, [pd, pl, pd], strict=True)))
def test_nodes_inside_the_table_need_no_routing(table, model, library):
    X, y, towns = table
    y = labels_for(model, y)
    frame = library.DataFrame({"rain": X[:, 0], "wind": X[:, 1], "town": towns})
    scoring = "accuracy" if model is ct.NetworkedLogisticRegression else "neg_mean_absolute_error"
    for how in (None, scoring):  # scikit-learn's scorers call predict(X)
        scores = cross_val_score(
            quick(model, empirical()), frame, y, cv=KFold(3), params={"groups": "town"}, scoring=how
        )
        assert np.isfinite(scores).all()
    chain = Pipeline([("model", quick(model, empirical()))])
    search = GridSearchCV(chain, {"model__lam": [0.1, 1e6]}, cv=KFold(3), scoring=scoring)
    search.fit(frame, y, model__groups="town")
    assert search.best_params_ == {"model__lam": 0.1}
    assert len(search.predict(frame)) == len(y)


def test_columns_are_scaled_beside_the_nodes(table):
    X, y, towns = table
    frame = pd.DataFrame({"rain": X[:, 0] * 1e3, "wind": X[:, 1], "town": towns})
    scale = ColumnTransformer(
        [("scaled", StandardScaler(), ["rain", "wind"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    chain = Pipeline([("scale", scale), ("model", ct.NetworkedLinearRegression(empirical()))])
    chain.fit(frame, y, model__groups="town")
    assert chain.score(frame, y) > 0.9
    assert list(chain[-1].feature_names_in_) == ["rain", "wind"]


def test_scorers_with_arrays_say_what_is_missing(table):
    X, y, towns = table
    fitted = ct.NetworkedLinearRegression(empirical()).fit(X, y, towns)
    with pytest.raises(ValueError, match="groups="):
        get_scorer("r2")(fitted, X, y)


def test_parameters_are_shown_and_set():
    graph = networkx_graph()
    model = ct.NetworkedLassoCV(graph, alpha=0.2)
    assert model.get_params()["graph"] is graph
    assert "alpha=0.2" in repr(model)
    assert model.set_params(alpha=0.3).alpha == 0.3
