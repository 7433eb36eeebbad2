"""Common slopes and an intercept per node, free or shrunken, against the same in plain linear algebra."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import coterie as ct
from coterie.estimators.intercepts import FITS, _fit, mixed_model, node_intercepts


def problem(loss=None, seed=0, level=2.0, V=12, unlabelled=2, weights=False):
    """Nodes of 1 to 20 rows that differ in their level; the last ones have no labels."""
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 21, V)
    nodes = np.repeat(np.arange(V), m)
    b = 3 + level * rng.standard_normal(V)
    X = rng.standard_normal((len(nodes), 2)) + b[nodes, None] / 4
    y = X @ [1.0, -2.0] + b[nodes] + rng.standard_normal(len(nodes))
    if isinstance(loss, ct.Logistic):
        y = (y > np.median(y)).astype(float)
    y[nodes >= V - unlabelled] = np.nan
    s = rng.integers(1, 4, len(y)).astype(float) if weights else None
    graph = ct.EmpiricalGraph.from_edges([(k, k + 1) for k in range(V - 1)])
    data = ct.LocalDatasets.from_rows(np.column_stack([X, np.ones(len(y))]), y, nodes, V, s)
    return ct.Problem(graph, data, loss or ct.SquaredError(unpenalised=(2,)))


def parts(stated):
    """Labelled rows, and the dummy variables of their nodes."""
    rows = stated.data.labelled
    return rows, np.repeat(np.eye(len(rows.M)), rows.m, axis=0)


@pytest.mark.parametrize("weights", [False, True])
def test_free_intercepts_are_dummy_variables(weights):
    stated = problem(weights=weights)
    rows, dummies = parts(stated)
    root = np.sqrt(rows.weights)[:, None]
    design = np.column_stack([rows.X[:, :2], dummies])
    expected = np.linalg.lstsq(root * design, root[:, 0] * rows.y, rcond=None)[0]
    w = node_intercepts(stated)
    assert w[rows.M] == pytest.approx(np.column_stack([np.tile(expected[:2], (10, 1)), expected[2:]]))
    assert w[10:, :2] == pytest.approx(np.tile(expected[:2], (2, 1)))
    m = np.bincount(np.repeat(np.arange(10), rows.m), rows.weights)
    assert w[10:, 2] == pytest.approx(np.average(expected[2:], weights=m))


@settings(deadline=None, max_examples=20)
@given(gamma=st.floats(1e-4, 1e4), seed=st.integers(0, 20))
def test_shrunken_intercepts_are_a_ridge_on_dummies(gamma, seed):
    """Henderson's equations: the intercepts' deviations from μ have a ridge of 1/γ."""
    stated = problem(seed=seed)
    rows, dummies = parts(stated)
    design = np.column_stack([rows.X, dummies])
    ridge = np.diag([0.0] * 3 + [1 / gamma] * len(rows.M))
    expected = np.linalg.solve(design.T @ design + ridge, design.T @ rows.y)
    found = _fit(stated)(gamma)
    assert found.common == pytest.approx(expected[:3], rel=1e-5, abs=1e-6)
    assert found.intercepts == pytest.approx(expected[2] + expected[3:], rel=1e-5, abs=1e-6)


def test_the_deviance_is_that_of_the_normal_distribution():
    """−2 log likelihood of y ~ N(Xw, I + γZZᵀ), with the mean integrated out, up to a constant."""
    stated = problem(unlabelled=0)
    rows, dummies = parts(stated)
    N = len(rows.y)

    def plain(gamma):
        V = np.eye(N) + gamma * dummies @ dummies.T
        inverse = np.linalg.inv(V)
        w = np.linalg.solve(rows.X.T @ inverse @ rows.X, rows.X.T @ inverse @ rows.y)
        rest = rows.y - rows.X @ w
        ones = np.ones(N)
        return (N - 1) * np.log(rest @ inverse @ rest / N) + np.linalg.slogdet(V)[1] + np.log(ones @ inverse @ ones)

    fit = _fit(stated)
    for a, b in ((0.01, 0.1), (0.1, 3.0), (3.0, 1e3)):
        assert fit(a).deviance - fit(b).deviance == pytest.approx(plain(a) - plain(b), rel=1e-9)


@pytest.mark.parametrize("level", [0.0, 2.0])
def test_the_likely_strength_is_near_the_true_one(level):
    stated = problem(level=level, V=200, unlabelled=0, seed=4)
    pooled, free, mixed = _fit(stated)(1e-5), _fit(stated)(np.inf), mixed_model(stated)[:, 2]
    share = np.std(mixed) / np.std(free.intercepts)
    assert share < 0.35 if level == 0 else share > 0.9  # nothing to tell nodes apart by, or much
    assert np.std(pooled.intercepts) < 0.1 * np.std(free.intercepts)


@settings(deadline=None, max_examples=10)
@given(variance=st.floats(1e-2, 50), seed=st.integers(0, 20))
def test_log_odds_are_at_the_mode(variance, seed):
    loss = ct.Logistic(0.01, unpenalised=(2,))
    stated = problem(loss, seed=seed)
    rows, dummies = parts(stated)
    N, design = len(rows.y), np.column_stack([rows.X, dummies])
    strength = np.array([0.01 * N] * 2 + [0.0] + [0.5 / variance] * len(rows.M))

    def value(v):
        z = design @ v
        slope = design.T @ (1 / (1 + np.exp(-z)) - rows.y) + 2 * strength * v
        return (np.logaddexp(0, z) - rows.y * z).sum() + strength @ v**2, slope

    peer = minimize(value, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    found = _fit(stated)(variance)
    mine = np.concatenate([found.common, found.intercepts - found.common[2]])
    assert value(mine)[0] <= peer.fun + 1e-7
    assert mine == pytest.approx(peer.x, abs=1e-3)


def test_log_rates_are_at_the_mode():
    """With exposures, against the same model with a dummy per node and a ridge on it."""
    stated, rng = problem(), np.random.default_rng(0)
    data, loss = stated.data, ct.Poisson(0.01, unpenalised=(2,))
    counts = np.where(np.isnan(data.y), np.nan, rng.poisson(2.0, len(data.y)))
    stated = replace(stated, loss=loss, data=replace(data, y=counts, offset=rng.uniform(-1, 1, len(data.y))))
    rows, dummies = parts(stated)
    N, design = len(rows.y), np.column_stack([rows.X, dummies])
    strength = np.array([0.01 * N] * 2 + [0.0] + [0.5 / 0.3] * len(rows.M))

    def value(v):
        z = design @ v + rows.offset
        return (np.exp(z) - rows.y * z).sum() + strength @ v**2, design.T @ (np.exp(z) - rows.y) + 2 * strength * v

    peer = minimize(value, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    found = _fit(stated)(0.3)
    mine = np.concatenate([found.common, found.intercepts - found.common[2]])
    assert value(mine)[0] <= peer.fun + 1e-7
    assert mine == pytest.approx(peer.x, abs=1e-3)
    assert np.isfinite(mixed_model(stated)).all()


def test_a_node_of_one_class_has_a_finite_intercept():
    stated = problem(ct.Logistic(1e-3, unpenalised=(2,)), level=20.0)
    rows = stated.data.labelled
    assert any(len(set(part)) == 1 for part in np.split(rows.y, rows.starts[1:-1]))
    for w in (node_intercepts(stated), mixed_model(stated)):
        assert np.isfinite(w).all()
        assert np.abs(w[:, 2]).max() < 100


def test_a_lasso_keeps_its_alpha():
    """A strong one leaves no slopes, and shrunken means."""
    stated = problem(ct.Lasso(1e3, unpenalised=(2,)), V=40)
    w, free = mixed_model(stated), node_intercepts(stated)
    rows = stated.data.labelled
    means = np.array([part.mean() for part in np.split(rows.y, rows.starts[1:-1])])
    assert (w[:, :2] == 0).all()
    assert free[rows.M, 2] == pytest.approx(means)
    mu = w[-1, 2]
    assert (np.abs(w[rows.M, 2] - mu) < np.abs(means - mu)).all()
    assert ((w[rows.M, 2] - mu) * (means - mu) > 0).all()


def test_every_loss_has_a_fit():
    assert set(FITS) == {ct.SquaredError, ct.Lasso, ct.Logistic, ct.Poisson}
