"""What a fitted model is: the certified solution of its problem, for every way to state it."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from towns import (
    CHOOSING,
    NAMED_GRAPHS,
    PLAIN,
    TOWNS,
    empirical,
    labels_for,
    names,
    networkx_graph,
    problem_of,
    quick,
    rows,
    sparse_graph,
)

import coterie as ct


@pytest.mark.parametrize("model", PLAIN)
@pytest.mark.parametrize("penalty", ["l1", "l2", "squared", ct.GroupTotalVariation()])
def test_a_fit_is_the_certified_solution(model, penalty):
    X, y, nodes = rows()
    y = labels_for(model, y)
    fitted = model(empirical(), lam=0.1, penalty=penalty, standardize=False).fit(X, y, names(nodes))
    kinds = {"l1": ct.TotalVariation(), "l2": ct.GroupTotalVariation(), "squared": ct.SquaredVariation()}
    problem = problem_of(model, X, y, nodes, penalty=kinds.get(penalty, penalty))
    solution = ct.solve(problem)
    assert fitted.coef_ == pytest.approx(solution.w[:, :2], abs=1e-12)
    assert fitted.intercept_ == pytest.approx(solution.w[:, 2], abs=1e-12)
    assert fitted.dual_coef_ == pytest.approx(solution.u, abs=1e-12)
    assert fitted.clusters_.tolist() == solution.clusters().joint.tolist()
    assert fitted.lam_ == 0.1
    assert fitted.n_iter_ >= 1
    again = ct.certify(problem, np.column_stack([fitted.coef_, fitted.intercept_]), fitted.dual_coef_)
    assert fitted.gap_ <= 1e-6
    assert again.objective - again.dual_bound <= 1.01e-6 * again.objective


@pytest.mark.parametrize(("model", "graph"), list(zip([*PLAIN, PLAIN[0]], NAMED_GRAPHS, strict=True)))
def test_every_kind_of_graph_gives_the_same(model, graph):
    X, y, nodes = rows()
    y = labels_for(model, y)
    fitted = quick(model, graph()).fit(X, y, names(nodes))
    numbered = quick(model, sparse_graph()).fit(X, y, nodes)
    assert fitted.nodes_.tolist() == TOWNS
    assert numbered.nodes_.tolist() == list(range(6))
    assert fitted.coef_ == pytest.approx(numbered.coef_, abs=1e-12)
    assert (fitted.predict(X, names(nodes)) == numbered.predict(X, nodes)).all()


@pytest.mark.parametrize(("model", "library"), list(zip(PLAIN, [pd, pl, pd], strict=True)))
def test_nodes_beside_the_table_or_inside(model, library):
    X, y, nodes = rows()
    y = labels_for(model, y)
    table = library.DataFrame({"rain": X[:, 0], "town": names(nodes), "wind": X[:, 1]})
    bare = quick(model, empirical()).fit(X, y, names(nodes))
    inside = quick(model, empirical()).fit(table, library.Series(y), groups="town")
    beside = quick(model, empirical()).fit(table[["rain", "wind"]], y, groups=table["town"])
    for fitted in (inside, beside):
        assert (fitted.coef_ == bare.coef_).all()
        assert list(fitted.feature_names_in_) == ["rain", "wind"]
    predicted = bare.predict(X, np.array(names(nodes)))
    assert (inside.predict(table) == predicted).all()
    assert (inside.predict(table, groups="town") == predicted).all()
    assert (inside.predict(table[["rain", "wind"]], groups=table["town"]) == predicted).all()
    assert inside.score(table, y) == bare.score(X, y, groups=names(nodes))
    with pytest.raises(ValueError, match=r"no column 'city'.*rain"):
        quick(model, empirical()).fit(table, y, groups="city")
    with pytest.raises(ValueError, match="'town' names a column, but X is a ndarray"):
        quick(model, empirical()).fit(X, y, groups="town")
    with pytest.raises(ValueError, match="6 nodes"):
        inside.predict(table[["rain", "wind"]])


@pytest.mark.parametrize("model", [*PLAIN, *CHOOSING])
def test_rows_of_no_node_are_refused(model):
    X, y, nodes = rows()
    y = labels_for(model, y)
    with pytest.raises(ValueError, match="6 nodes; say with groups="):
        quick(model, empirical()).fit(X, y)
    with pytest.raises(ValueError, match="no graph"):
        quick(model, None).fit(X, y, names(nodes))
    with pytest.raises(ValueError, match=r"not among the 6 nodes of the graph: 'x', 'y' \("):
        quick(model, empirical()).fit(X, y, [*names(nodes)[:-2], "x", "y"])
    with pytest.raises(ValueError, match="30 rows, groups 29"):
        quick(model, empirical()).fit(X, y, names(nodes)[:-1])
    fitted = quick(model, empirical()).fit(X, y, names(nodes))
    with pytest.raises(ValueError, match="6 nodes; say with groups="):
        fitted.predict(X)
    with pytest.raises(ValueError, match="not among the 6 nodes of the graph: 7 "):
        fitted.predict(X[:2], ["a1", 7])
    with pytest.raises(ValueError, match="2 rows, groups 1"):
        fitted.predict(X[:2], ["a1"])
    with pytest.raises(NotFittedError):
        quick(model, empirical()).predict(X, names(nodes))


@pytest.mark.parametrize("model", PLAIN)
def test_nodes_without_rows_or_labels_get_a_model(model):
    X, y, nodes = rows()
    y = labels_for(model, y)
    gaps = y.astype(object)
    gaps[nodes == 1] = None
    gaps[nodes == 4] = np.nan
    there = nodes != 5
    fitted = quick(model, empirical()).fit(X[there], gaps[there], np.array(names(nodes))[there])
    assert fitted.n_labelled_.tolist() == [5, 0, 5, 5, 0, 0]
    assert np.isnan(fitted.node_errors_).tolist() == [False, True, False, False, True, True]
    assert fitted.undetermined_nodes_.tolist() == []
    for k in (0, 1):  # town b3 has only b1 and b2 to ask, which have one label between them
        assert fitted.coef_[5, k] == fitted.coef_[3, k]
    assert len(fitted.predict(X, names(nodes))) == len(X)
    known = ~np.isin(nodes, [1, 4])
    assert fitted.score(X, gaps, groups=names(nodes)) == fitted.score(X[known], y[known], groups=names(nodes[known]))


def test_nodes_that_no_label_reaches_are_named():
    X, y, nodes = rows()
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (3, 4)], ids=TOWNS)
    y[nodes > 2] = np.nan
    fitted = ct.NetworkedLinearRegression(graph).fit(X, y, names(nodes))
    assert fitted.undetermined_nodes_.tolist() == ["b1", "b2", "b3"]
    assert (fitted.coef_[3:] == 0).all()


def test_node_errors_are_weighted_means():
    X, y, nodes = rows()
    s = np.random.default_rng(1).uniform(0, 2, len(y))
    fitted = ct.NetworkedLinearRegression(empirical()).fit(X, y, names(nodes), sample_weight=s)
    error = (y - fitted.predict(X, names(nodes))) ** 2
    for i in range(6):
        assert fitted.node_errors_[i] == pytest.approx(np.average(error[nodes == i], weights=s[nodes == i]))


@pytest.mark.parametrize(
    ("model", "graph"), list(zip([*PLAIN, *CHOOSING], [empirical, networkx_graph] * 3, strict=True))
)
def test_a_clone_shares_the_graph(model, graph):
    mine = graph()
    twin = clone(quick(model, mine, penalty="l2"))
    assert twin.graph is mine
    assert twin.penalty == "l2"
    assert clone(twin).graph is mine
    X, y, nodes = rows()
    fitted = twin.fit(X, labels_for(model, y), names(nodes))
    assert not hasattr(clone(fitted), "coef_")
    assert fitted.graph is mine


def test_a_warm_start_saves_iterations():
    X, y, nodes = rows(m=3)
    y[np.isin(nodes, [1, 4])] = np.nan
    plain = {"alpha": 0.01, "standardize": False}
    cold = ct.NetworkedLasso(empirical(), lam=0.05, **plain).fit(X, y, names(nodes))
    warm = ct.NetworkedLasso(empirical(), lam=0.06, **plain, warm_start=True).fit(X, y, names(nodes))
    warm.set_params(lam=0.05).fit(X, y, names(nodes))
    assert cold.n_iter_ > 10
    assert warm.n_iter_ < cold.n_iter_
    assert warm.coef_ == pytest.approx(cold.coef_, abs=1e-3)
    assert warm.solution_.objective == pytest.approx(cold.solution_.objective, rel=2e-6)
    warm.fit(X[:, :1], y, names(nodes))  # another number of features: a cold start
    assert warm.coef_.shape == (6, 1)


def test_a_warm_start_finds_its_nodes_on_a_changed_graph():
    X, y, nodes = rows(m=3)
    there = nodes != 5
    less = nx.Graph()
    less.add_nodes_from(["b2", "a3", "a1", "b1", "a2"])  # in another order
    less.add_edges_from(networkx_graph().subgraph(less).edges(data=True))
    cold = ct.NetworkedLasso(less, lam=0.05, alpha=0.01).fit(X[there], y[there], np.array(names(nodes))[there])
    warm = ct.NetworkedLasso(networkx_graph(), lam=0.05, alpha=0.01, warm_start=True).fit(X, y, names(nodes))
    warm.set_params(graph=less).fit(X[there], y[there], np.array(names(nodes))[there])
    assert warm.nodes_.tolist() == cold.nodes_.tolist() == list(less.nodes)
    assert warm.n_iter_ <= cold.n_iter_
    assert warm.solution_.objective == pytest.approx(cold.solution_.objective, rel=2e-6)


@pytest.mark.parametrize("model", PLAIN)
def test_a_weight_counts_like_repetition(model):
    X, y, nodes = rows()
    y = labels_for(model, y)
    times = np.random.default_rng(2).integers(0, 4, len(y))
    times[:3] = 1
    often = np.repeat(np.arange(len(y)), times)
    weighted = quick(model, empirical(), tol=1e-9).fit(X, y, names(nodes), sample_weight=times)
    repeated = quick(model, empirical(), tol=1e-9).fit(X[often], y[often], names(nodes[often]))
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-5)
    assert weighted.node_errors_ == pytest.approx(repeated.node_errors_, abs=1e-5, nan_ok=True)
    plain = quick(model, empirical()).fit(X, y, names(nodes))
    assert quick(model, empirical()).fit(X, y, names(nodes), sample_weight=2.0).coef_ == pytest.approx(plain.coef_)


@pytest.mark.parametrize("model", PLAIN)
def test_without_an_intercept(model):
    X, y, nodes = rows()
    y = labels_for(model, y)
    fitted = quick(model, empirical(), fit_intercept=False).fit(X, y, names(nodes))
    assert (fitted.intercept_ == 0).all()
    assert fitted.coef_.shape == (6, 2)
    assert fitted.dual_coef_.shape == (7, 2)
    through = np.column_stack([X, np.zeros(len(X))])  # a feature that is always zero changes nothing
    assert quick(model, empirical(), fit_intercept=False).fit(through, y, names(nodes)).coef_[:, :2] == pytest.approx(
        fitted.coef_, abs=1e-3
    )


def test_what_is_not_converged_is_said_with_its_gap():
    X, y, nodes = rows()
    X[:, 1] *= 1e-6
    model = ct.NetworkedLinearRegression(empirical(), standardize=False, tol=1e-12, max_iter=2)
    with pytest.warns(
        ConvergenceWarning, match=r"Certified gap: .*e.*, asked for: 1.00e-12.* standardize=True"
    ) as caught:
        fitted = model.fit(X, y, names(nodes))
    assert f"{fitted.gap_:.2e}" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_verbose_prints_progress(capsys):
    X, y, nodes = rows()
    ct.NetworkedLasso(empirical(), alpha=0.01, verbose=1).fit(X, y, names(nodes))
    assert "gap" in capsys.readouterr().out
    ct.NetworkedLassoCV(empirical(), lams=[0.1, 0.2], cv=2, verbose=1).fit(X, y, names(nodes))
    assert "fold 2: lam 1.000e-01" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l3"}, "no penalty 'l3'; choose one of l1, l2, squared"),
        ({"lam": -1.0}, "lam must be a finite number"),
        ({"ridge": np.nan}, "ridge must be a finite number"),
        ({"engine": "abacus"}, "no engine 'abacus'"),
        ({"threads": 0}, "threads must be a whole number ≥ 1, got 0"),
        ({"weight_by": "median"}, 'weight_by must be "rows" or "nodes"'),
        ({"graph": "edges.csv"}, "cannot read a graph from str"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y, nodes = rows()
    model = ct.NetworkedLinearRegression(empirical()).set_params(**parameters)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y, names(nodes))


def test_nothing_to_learn_from():
    X, y, nodes = rows()
    with pytest.raises(ValueError, match="nothing to learn from"):
        ct.NetworkedLinearRegression(empirical()).fit(X, np.full(len(y), np.nan), names(nodes))
    with pytest.raises(ValueError, match="nothing to learn from"):
        ct.NetworkedLinearRegression(empirical()).fit(X, y, names(nodes), sample_weight=np.zeros(len(y)))


# --- one node is what scikit-learn has ------------------------------------------------------------------------


def test_one_node_is_linear_regression():
    X, y, _ = rows()
    mine, peer = ct.NetworkedLinearRegression().fit(X, y), LinearRegression().fit(X, y)
    assert mine.coef_[0] == pytest.approx(peer.coef_)
    assert mine.intercept_[0] == pytest.approx(peer.intercept_)
    assert mine.score(X, y) == pytest.approx(peer.score(X, y))


@pytest.mark.parametrize("weight_by", ["rows", "nodes"])
def test_one_node_is_ridge(weight_by):
    X, y, _ = rows()
    mine = ct.NetworkedLinearRegression(ridge=0.3, weight_by=weight_by, standardize=False, tol=1e-10).fit(X, y)
    peer = Ridge(alpha=0.3 * len(y)).fit(X, y)
    assert mine.coef_[0] == pytest.approx(peer.coef_, abs=1e-6)
    assert mine.intercept_[0] == pytest.approx(peer.intercept_, abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_node_is_lasso(fit_intercept):
    X, y, _ = rows()
    mine = ct.NetworkedLasso(alpha=0.4, fit_intercept=fit_intercept, standardize=False, tol=1e-10).fit(X, y)
    peer = Lasso(alpha=0.2, fit_intercept=fit_intercept, tol=1e-12).fit(X, y)
    assert mine.coef_[0] == pytest.approx(peer.coef_, abs=1e-5)
    assert mine.intercept_[0] == pytest.approx(peer.intercept_, abs=1e-5)


def test_one_node_is_logistic_regression():
    X, y, _ = rows()
    y = labels_for(ct.NetworkedLogisticRegression, y)
    mine = ct.NetworkedLogisticRegression(ridge=0.05, standardize=False, tol=1e-10).fit(X, y)
    peer = LogisticRegression(C=1 / (2 * 0.05 * len(y)), tol=1e-10).fit(X, y)
    assert mine.coef_ == pytest.approx(peer.coef_, abs=1e-4)
    assert mine.intercept_ == pytest.approx(peer.intercept_, abs=1e-4)
    assert mine.predict_proba(X) == pytest.approx(peer.predict_proba(X), abs=1e-4)
    assert mine.predict_log_proba(X) == pytest.approx(peer.predict_log_proba(X), abs=1e-4)
    assert mine.decision_function(X) == pytest.approx(peer.decision_function(X), abs=1e-3)
    assert (mine.predict(X) == peer.predict(X)).all()


def test_nodes_alone_are_fitted_alone():
    X, y, nodes = rows()
    mine = ct.NetworkedLinearRegression(empirical(), lam=0.0).fit(X, y, names(nodes))
    for i in range(6):
        assert mine.coef_[i] == pytest.approx(LinearRegression().fit(X[nodes == i], y[nodes == i]).coef_)


# --- classes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [("dry", "wet"), (False, True), (3, 7), (-1.0, 1.0)])
def test_classes_keep_their_names(classes):
    X, y, nodes = rows()
    truth = np.array(classes)[(y > 0).astype(int)]
    gaps = truth.astype(object)
    gaps[nodes == 1] = None
    fitted = ct.NetworkedLogisticRegression(empirical()).fit(X, gaps, names(nodes))
    assert fitted.classes_.tolist() == list(classes)
    predicted = fitted.predict(X, names(nodes))
    assert set(predicted.tolist()) <= set(classes)
    assert (predicted == truth).mean() > 0.7
    p = fitted.predict_proba(X, names(nodes))
    assert p.sum(axis=1) == pytest.approx(1)
    assert (fitted.classes_[p.argmax(axis=1)] == predicted).all()
    assert fitted.score(X, gaps, groups=names(nodes)) == (predicted == truth)[nodes != 1].mean()


def test_classes_that_make_no_sense():
    X, y, nodes = rows()
    model = ct.NetworkedLogisticRegression(empirical())
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.ones(len(y)), names(nodes))
    with pytest.raises(ValueError, match="mixes strings"):
        model.fit(X, ["wet", 1] * 15, names(nodes))
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X, [np.inf, 1.0] * 15, names(nodes))
