import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GroupKFold
from towns import empirical, labels_for, names, quick, rows

import coterie as ct
from coterie.datasets import stochastic_block_model
from coterie.estimators.baselines import _alone, _pooled
from coterie.estimators.comparison import Comparison

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiled")]  # each fits six methods on every fold

METHODS = ("local only", "pooled", "node intercepts", "mixed model", "networked", "squared variation")


def by_method(comparison):
    """Mean squared errors, or log-losses."""
    return dict(zip(comparison.methods, comparison.mean**comparison.degree, strict=True))


def unrelated_nodes(m=20):
    """Six nodes that have nothing to do with each other, and a graph that says they have."""
    rng = np.random.default_rng(0)
    truth, nodes = 5 * rng.standard_normal((6, 2)), np.repeat(np.arange(6), m)
    X = rng.standard_normal((6 * m, 2))
    return X, np.einsum("rk,rk->r", X, truth[nodes]) + 0.1 * rng.standard_normal(6 * m), names(nodes)


def test_alone_is_each_node_by_itself():
    X, y, nodes = rows()
    y[nodes == 1] = np.nan
    model = ct.NetworkedLinearRegression(empirical(), lam=0.0).fit(X, y, names(nodes))
    w = _alone(model, model.problem_)
    own = np.array([0, 2, 3, 4, 5])
    assert w[own] == pytest.approx(model.solution_.w[own], abs=1e-8)
    low, high = np.minimum(w[0], w[2]), np.maximum(w[0], w[2])  # the neighbours of node 1: weights 1 and 1
    assert (low - 1e-6 <= w[1]).all()
    assert (w[1] <= high + 1e-6).all()


def test_a_single_model_is_everybodys():
    X, y, nodes = rows()
    y[nodes != 3] = np.nan
    model = ct.NetworkedLinearRegression(empirical()).fit(X, y, names(nodes))
    w = _alone(model, model.problem_)
    assert w == pytest.approx(np.tile(w[3], (6, 1)), abs=1e-8)
    assert np.abs(w[3]).max() > 1


def test_pooled_is_one_model():
    X, y, nodes = rows()
    problem = ct.NetworkedLinearRegression(empirical(), lam=0.0, standardize=False).fit(X, y, names(nodes)).problem_
    one = ct.NetworkedLinearRegression().fit(X, y)  # every node has as many rows
    assert _pooled(problem) == pytest.approx(np.tile([*one.coef_[0], *one.intercept_], (6, 1)), abs=1e-8)


def test_local_only_wins_where_nodes_are_unrelated():
    X, y, towns = unrelated_nodes()
    comparison = ct.compare_baselines(ct.NetworkedLinearRegression(empirical(), lam=1.0), X, y, towns, cv=3)
    errors = by_method(comparison)
    assert comparison.over == "rows"
    assert errors["local only"] < 0.02
    assert errors["local only"] < 0.1 * errors["networked"]
    assert errors["local only"] < 0.01 * errors["pooled"]


def test_the_network_wins_on_a_clustered_graph():
    network = stochastic_block_model((10, 10), p_in=0.8, p_out=0.03, points=2, labelled=12, noise=0.5, seed=3)
    data = network.data
    model = ct.NetworkedLinearRegressionCV(network.graph, n_lams=5, cv=2, fit_intercept=False, random_state=0)
    comparison = ct.compare_baselines(model, data.X, data.y, data.nodes, cv=3)
    assert comparison.over == "nodes"
    errors = by_method(comparison)
    assert errors["networked"] < 0.5 * errors["pooled"]
    assert errors["networked"] < 0.9 * errors["local only"]
    assert "networked" in repr(comparison)
    assert "held out: nodes" in repr(comparison)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_frame_of_the_library_that_x_came_from(library):
    X, y, nodes = rows()
    table = library.DataFrame({"rain": X[:, 0], "wind": X[:, 1], "town": names(nodes)})
    model = ct.NetworkedLinearRegression(empirical(), lam=0.05)
    comparison = ct.compare_baselines(model, table, y, "town", cv=2)
    frame = comparison.frame()
    assert isinstance(frame, library.DataFrame)
    assert list(frame.columns) == ["method", "mean_error", "standard_error", "folds_won"]
    assert tuple(frame["method"]) == METHODS
    assert list(frame["mean_error"]) == pytest.approx(np.sqrt((comparison.errors**2).mean(axis=1)))
    assert sum(frame["folds_won"]) == 2
    assert comparison.errors.shape == (6, 2)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(("model", "penalty"), [(ct.NetworkedLasso, "l2"), (ct.NetworkedLogisticRegression, "squared")])
def test_every_loss_and_penalty(model, penalty):
    X, y, nodes = rows()
    weights = np.random.default_rng(0).uniform(0.5, 1, len(y))
    comparison = ct.compare_baselines(
        quick(model, empirical(), penalty=penalty),
        X,
        labels_for(model, y),
        names(nodes),
        cv=GroupKFold(2),
        sample_weight=weights,
    )
    assert comparison.over == "given"
    assert np.isfinite(comparison.errors).all()


def test_the_same_splitter_inside_and_outside():
    X, y, nodes = rows()
    model = quick(ct.NetworkedLinearRegressionCV, empirical(), cv=GroupKFold(3))
    assert ct.compare_baselines(model, X, y, names(nodes), cv=GroupKFold(3)).errors.shape == (6, 3)


def test_one_fold_has_no_spread():
    X, y, nodes = rows()
    split = [(np.arange(20), np.arange(20, 30))]
    frame = ct.compare_baselines(quick(ct.NetworkedLasso, empirical()), X, y, names(nodes), cv=split).frame()
    assert list(frame["standard_error"]) == [0] * 6


# --- in words -------------------------------------------------------------------------------------------------


def levels(slopes=False, seed=0):
    """Twelve nodes in a ring that differ in their level, at random."""
    rng = np.random.default_rng(seed)
    nodes = np.repeat(np.arange(12), 20)
    X = rng.standard_normal((240, 2))
    own = (X * rng.standard_normal((12, 2))[nodes]).sum(axis=1) if slopes else X @ [1.0, -1.0]
    y = own + 3 * rng.standard_normal(12)[nodes] + 0.5 * rng.standard_normal(240)
    return ct.EmpiricalGraph.from_edges([(k, (k + 1) % 12) for k in range(12)]), X, y, nodes


@pytest.mark.parametrize("classes", [False, True])
def test_where_levels_differ_a_mixed_model_wins_and_it_is_said(classes):
    graph, X, y, nodes = levels()
    kind = ct.NetworkedLogisticRegression if classes else ct.NetworkedLinearRegression
    comparison = ct.compare_baselines(kind(graph, lam=0.3), X, y > 0 if classes else y, nodes, cv=3)
    errors = by_method(comparison)
    assert min(errors["mixed model"], errors["node intercepts"]) == min(errors.values())
    assert "The network is beaten by" in repr(comparison)
    assert "nodes differ in their level" in comparison.verdict


def test_where_slopes_differ_levels_are_not_enough():
    graph, X, y, nodes = levels(slopes=True)
    errors = by_method(ct.compare_baselines(ct.NetworkedLinearRegression(graph, lam=0.01), X, y, nodes, cv=3))
    assert errors["networked"] < 0.5 * errors["mixed model"]


def test_without_intercepts_there_are_none_to_compare():
    X, y, nodes = rows()
    model = quick(ct.NetworkedLasso, empirical(), fit_intercept=False)
    found = ct.compare_baselines(model, X, y, names(nodes), cv=2)
    assert found.methods == ("local only", "pooled", "networked", "squared variation")


def test_errors_are_in_the_units_of_y():
    X, y, nodes = rows()
    one, thousand = (
        ct.compare_baselines(ct.NetworkedLinearRegression(empirical()), X, unit * y, names(nodes), cv=2).errors
        for unit in (1.0, 1e3)
    )
    assert thousand == pytest.approx(1e3 * one, rel=1e-3)


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([[1.0, 1.1], [2.0, 2.2]], "The network has the smallest mean error, 1.05; clearly so."),
        (
            [[1.0, 2.0], [2.0, 1.2]],
            "The network has the smallest mean error, 1.5; within one standard error of it: pooled.",
        ),
        ([[2.0, 2.2], [1.0, 1.1]], "beaten by pooled, 1.05 against 2.1 (less by 1.1 ± 0.05): one model for all"),
        ([[2.0, 1.0], [1.0, 1.9]], "beaten by pooled, 1.45 against 1.5 (no more than chance would explain)."),
    ],
)
def test_the_verdict(errors, words):
    assert words in Comparison(("networked", "pooled"), np.array(errors), "rows", np.ones(2)).verdict


def test_folds_count_by_their_rows():
    found = Comparison(("networked", "pooled"), np.array([[1.0, 2.0], [2.0, 1.0]]), "rows", np.array([1.0, 3.0]))
    assert found.mean.tolist() == [1.75, 1.25]
    assert (
        Comparison(("a", "b"), found.errors, "rows", found.weights).verdict
        == "The smallest mean error is that of b: 1.25."
    )
