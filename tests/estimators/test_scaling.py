"""standardize: what is solved has units of its own, what is returned has those of X and y."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    model = kind(graph, **options).fit(X, y, groups=nodes)
    by_hand = kind(graph, standardize=False, **options).fit(Z, label, groups=nodes)
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
    model = ct.NetworkedLinearRegressionCV(ct.EmpiricalGraph.from_edges(EDGES), cv=3, n_lams=5)
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
    model = ct.NetworkedLinearRegression(ct.EmpiricalGraph.from_edges(EDGES), 0.1)
    model.fit(X, np.full(30, 4.0), groups=nodes)
    np.testing.assert_allclose(model.predict(X, groups=nodes), 4.0)
    assert model.scaling_.spread[2] == 1.0


@given(
    value=st.floats(-1e12, 1e12).filter(lambda v: v == 0 or abs(v) > 1e-6),
    m=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    noise=st.sampled_from([0, 1]),
    condensed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_what_varies_by_rounding_alone_is_constant(value, m, noise, condensed, seed) -> None:
    """However many rows there are, and however they are weighted or condensed."""
    rng, N = np.random.default_rng(seed), sum(m)
    column = np.full(N, value)
    column = np.where(noise * rng.random(N) < 0.5, column, np.nextafter(column, np.inf))
    X, y, nodes = np.column_stack([column, rng.standard_normal(N)]), np.full(N, value), np.repeat(np.arange(len(m)), m)
    weights = rng.uniform(0.1, 10, N)
    data = ct.LocalDatasets.from_rows(np.column_stack([X, np.ones(N)]), y, nodes, weights=weights)
    if condensed:
        data = Moments.of(X, y, nodes).datasets(len(m), fit_intercept=True)
    found = Scaling.of(data.labelled, 2, labels=True)
    assert found.spread[0] == found.y_spread == 1.0
    assert found.centre[0] == pytest.approx(value, rel=1e-12)
    if not noise and not condensed:
        assert (found.rows(data.X)[:, 0] == 0).all()


def test_house_prices_in_their_own_units_are_quick() -> None:
    """Prices of 5e5, areas of 2,000, a year, and two shares: as tables of house prices have them."""
    rng = np.random.default_rng(0)
    nodes = np.repeat(np.arange(20), 50)
    area, year, shares = rng.lognormal(7.6, 0.4, 1000), rng.integers(1900, 2015, 1000), rng.random((1000, 2))
    X = np.column_stack([area, year, shares])
    y = (
        2e5
        + (150 + 30 * (nodes % 4)) * area
        + 500 * (year - 1970)
        + 5e4 * shares[:, 0]
        + 3e4 * rng.standard_normal(1000)
    )
    graph = ct.EmpiricalGraph.from_edges([(k, (k + d) % 20) for k in range(20) for d in (1, 4)])
    began = process_time()
    model = ct.NetworkedLinearRegression(graph).fit(X, y, groups=nodes)
    assert model.gap_ <= 1e-6
    assert model.score(X, y, groups=nodes) > 0.8
    assert process_time() - began < 10  # compiling included; the solve itself takes a few hundredths of a second


def test_new_nodes_and_files_know_the_units(tmp_path) -> None:
    X, y, nodes = rows()
    graph = ct.EmpiricalGraph.from_edges(EDGES)
    model = ct.NetworkedLinearRegression(graph, 0.02).fit(X, y, groups=nodes)
    coef, intercept = model.weights_for([3, 4, 2], X[nodes == 4], y[nodes == 4])
    np.testing.assert_allclose(X[nodes == 4] @ coef + intercept, y[nodes == 4], rtol=2e-3)
    model.save(tmp_path / "model")
    again = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, groups=nodes), model.predict(X, groups=nodes))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    model.add_nodes({"new": [0, 1]}, X[:4], y[:4], groups=["new"] * 4)
    assert model.gap_ <= 1e-6
    np.testing.assert_allclose(model.predict(X[:4], groups=["new"] * 4), y[:4], rtol=2e-3)
