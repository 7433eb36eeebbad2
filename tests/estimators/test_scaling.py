"""standardize: what is solved has units of its own, what is returned has those of X and y."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import coterie as ct
from coterie.estimators.scaling import Scaling
from coterie.io.moments import Moments

EDGES = [(0, 1), (1, 2), (2, 3), (3, 4)]
MODELS = [ct.NetworkedLinearRegression, ct.NetworkedLasso, ct.NetworkedLogisticRegression]


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(5), 6)
    X = rng.standard_normal((30, 3)) * [1.0, 1e5, 1e-4] + [0.0, 1e8, 3.0]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.where(nodes < 2, Z @ [1.0, 2.0, 0.0], Z @ [1.0, -2.0, 1.0]) + 0.1 * rng.standard_normal(30)
    return X, 1e6 + 1e4 * y, nodes


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", MODELS)
def test_it_is_what_scaling_by_hand_gives(kind: type, fit_intercept: bool) -> None:
    X, y, nodes = rows()
    classes = issubclass(kind, ct.NetworkedLogisticRegression)
    if classes:
        y = (y > np.median(y)).astype(int)
    x_scaler = StandardScaler(with_mean=fit_intercept)
    Z = x_scaler.fit_transform(X) if fit_intercept else X / np.sqrt((X**2).mean(axis=0))
    centre, spread = (y.mean(), y.std()) if fit_intercept else (0.0, np.sqrt((y**2).mean()))
    label = y if classes else (y - centre) / spread
    graph = ct.EmpiricalGraph.from_edges(EDGES)
    options = {"fit_intercept": fit_intercept, "lam": 0.02, "tol": 1e-8}
    model = kind(graph, standardize=True, **options).fit(X, y, groups=nodes)
    by_hand = kind(graph, **options).fit(Z, label, groups=nodes)
    assert model.gap_ <= 1e-8
    np.testing.assert_allclose(model.solution_.w, by_hand.solution_.w, atol=1e-4)
    predicted = by_hand.predict(Z, groups=nodes)
    if classes:
        np.testing.assert_array_equal(model.predict(X, groups=nodes), predicted)
        linear = model.decision_function(X, groups=nodes)
    else:
        np.testing.assert_allclose(model.predict(X, groups=nodes), centre + spread * predicted, rtol=1e-6)
        np.testing.assert_allclose(model.node_errors_, spread**2 * by_hand.node_errors_, rtol=1e-2)
        linear = model.predict(X, groups=nodes)
    in_old_units = (X * model.coef_[nodes]).sum(axis=1) + model.intercept_[nodes]
    np.testing.assert_allclose(in_old_units, linear, rtol=1e-6, atol=1e-6)


def test_columns_of_any_size_converge() -> None:
    X, y, nodes = rows()
    X[:, 1] += 1.7e9  # a time in seconds
    model = ct.NetworkedLinearRegressionCV(ct.EmpiricalGraph.from_edges(EDGES), standardize=True, cv=3, n_lams=5)
    model.fit(X, y, groups=nodes)
    assert model.gap_ <= 1e-6
    assert model.score(X, y, groups=nodes) > 0.98


def test_condensed_rows_have_the_scaling_of_their_rows() -> None:
    X, y, nodes = rows()
    y[::7] = np.nan
    plain = ct.LocalDatasets.from_rows(np.column_stack([X, np.ones(30)]), y, nodes).labelled
    condensed = Moments.of(X, y, nodes).datasets(5, fit_intercept=True).labelled
    for labels in (True, False):
        one, two = Scaling.of(plain, 3, labels), Scaling.of(condensed, 3, labels)
        np.testing.assert_allclose(two.centre, one.centre, rtol=1e-12)
        np.testing.assert_allclose(two.spread, one.spread, rtol=1e-9)
        np.testing.assert_allclose((two.y_centre, two.y_spread), (one.y_centre, one.y_spread), rtol=1e-9)


def test_a_constant_column_keeps_its_unit() -> None:
    X, _, nodes = rows()
    X[:, 2] = 7.3
    model = ct.NetworkedLinearRegression(ct.EmpiricalGraph.from_edges(EDGES), 0.1, standardize=True)
    model.fit(X, np.full(30, 4.0), groups=nodes)
    np.testing.assert_allclose(model.predict(X, groups=nodes), 4.0)
    assert model.scaling_.spread[2] == 1.0


def test_newcomers_and_files_know_the_units(tmp_path) -> None:
    X, y, nodes = rows()
    graph = ct.EmpiricalGraph.from_edges(EDGES)
    model = ct.NetworkedLinearRegression(graph, 0.02, standardize=True).fit(X, y, groups=nodes)
    coef, intercept = model.weights_for([3, 4, 2], X[nodes == 4], y[nodes == 4])
    np.testing.assert_allclose(X[nodes == 4] @ coef + intercept, y[nodes == 4], rtol=2e-3)
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, groups=nodes), model.predict(X, groups=nodes))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    model.add_nodes({"new": [0, 1]}, X[:4], y[:4], groups=["new"] * 4)
    assert model.gap_ <= 1e-6
    np.testing.assert_allclose(model.predict(X[:4], groups=["new"] * 4), y[:4], rtol=2e-3)
