"""Weights of edges that are learnt with the models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import coterie as ct
from coterie.estimators import learnt_graph
from coterie.estimators.fold_paths import solve_folds
from coterie.estimators.folds import folds_of
from coterie.estimators.lam_errors import PATH_TOL, choice_of
from coterie.estimators.learnt_graph import LEAST, differences, learnt, shared_out

FAST = {"engine": "numpy", "tol": 1e-4, "fit_intercept": False}


def rings(seed: int = 0):
    """Two rings of eight nodes with chords, and three wrong edges between them."""
    rng = np.random.default_rng(seed)
    inside = [(8 * b + k, 8 * b + (k + step) % 8) for b in (0, 1) for k in range(8) for step in (1, 2)]
    graph = ct.EmpiricalGraph.from_edges([*inside, (0, 8), (3, 12), (5, 15)])
    nodes = np.repeat(np.arange(16), 8)
    X = rng.standard_normal((128, 1))
    y = np.where(nodes < 8, 1.0, -1.0) * X[:, 0] + 0.3 * rng.standard_normal(128)
    return graph, X, y, nodes


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # SciPy 1.12, of its own steps
@pytest.mark.parametrize("gamma", [0.05, 1.0, 30.0])
def test_every_node_solves_its_own_problem(gamma: float) -> None:
    rng = np.random.default_rng(1)
    edges = [(i, j) for i in range(8) for j in range(i) if rng.random() < 0.6]
    graph = ct.EmpiricalGraph.from_edges(edges, rng.uniform(0.1, 1, len(edges)))
    d = rng.exponential(size=graph.n_edges) * rng.integers(2, size=graph.n_edges)
    best = np.zeros(graph.n_edges)
    for i in range(graph.n_nodes):
        mine = (graph.edges == i).any(axis=1)
        A, far = graph.weights[mine], d[mine]
        found = minimize(
            lambda a, A=A, far=far: a @ far + gamma / 2 * ((a - A) ** 2 / A).sum(),
            A,
            bounds=[(LEAST * a, None) for a in A],
            constraints={"type": "eq", "fun": lambda a, A=A: a.sum() - A.sum()},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        best[mine] += found.x / 2
    weights = shared_out(graph, d, gamma).weights
    np.testing.assert_allclose(weights, best, atol=1e-4)
    assert weights.sum() == pytest.approx(graph.weights.sum())


def test_no_differences_no_change() -> None:
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], [1.0, 2.0])
    np.testing.assert_allclose(shared_out(graph, np.zeros(2), 1.0).weights, [1.0, 2.0])
    data = ct.LocalDatasets.from_rows([[1.0]], [1.0], [0], n_nodes=3)
    problem = ct.Problem(graph, data, ct.SquaredError())
    assert learnt(problem, 1.0, {"engine": "numpy"}).graph is graph
    alone = ct.Problem(ct.EmpiricalGraph.from_edges([], n_nodes=3), data)
    assert learnt(alone, 1.0, {"engine": "numpy"}).graph.n_edges == 0


def test_wrong_edges_lose_their_weight(tmp_path) -> None:
    graph, X, y, nodes = rings()
    options = {"lam": 1.0, **FAST}
    first = ct.NetworkedLinearRegression(graph, **options).fit(X, y, groups=nodes)
    model = ct.NetworkedLinearRegression(graph, learn_graph=True, **options).fit(X, y, groups=nodes)
    wrong = (graph.edges < 8).sum(axis=1) == 1
    assert model.graph_.weights[wrong].max() < 0.5 < model.graph_.weights[~wrong].mean()
    assert model.graph_.weights.min() > 0
    assert np.abs(model.coef_).mean() > np.abs(first.coef_).mean()  # less is lost across the wrong edges
    assert model.gap_ <= FAST["tol"]
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(back.graph_.weights, model.graph_.weights)
    np.testing.assert_array_equal(back.graph.weights, graph.weights)
    with pytest.raises(ValueError, match="fit again"):
        model.add_nodes({16: [0]})


def test_it_ends_where_weights_are_the_best_for_their_models() -> None:
    graph, X, y, nodes = rings()
    problem = ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, nodes))
    options = {"engine": "numpy", "tol": 1e-6}
    found = learnt(problem, 0.1, options)
    again = learnt(problem, 0.1, options)
    np.testing.assert_array_equal(found.graph.weights, again.graph.weights)
    w = ct.solve(found.bound.at(0.1), **options).w
    wrong = (graph.edges < 8).sum(axis=1) == 1
    assert differences(graph, w)[wrong].min() > differences(graph, w)[~wrong].max()


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared"])
def test_both_lam_are_chosen_by_folds_that_learn_their_own(penalty: str) -> None:
    graph, X, y, nodes = rings()
    options = {"lams": [1.0, 0.3], "cv": 2, "over": "rows", "random_state": 0, "penalty": penalty, **FAST}
    model = ct.NetworkedLinearRegressionCV(graph, learn_graph=True, **options).fit(X, y, groups=nodes)
    problem, order = model.first_problem_, np.argsort(nodes, kind="stable")
    assert problem.graph.weights.tolist() == graph.weights.tolist()
    folds, _ = folds_of(problem.data, 2, "rows", order, 0)
    paths = solve_folds(problem, [1.0, 0.3], folds, made=model.made_, tol=PATH_TOL, engine="numpy")
    mean = choice_of(problem, [1.0, 0.3], paths, "rows", unit=model.scaling_.y_spread)
    np.testing.assert_allclose(model.lam_choice_.errors, mean.errors, rtol=1e-6)


def test_what_it_does_not_go_with() -> None:
    graph, X, y, nodes = rings()
    for options, words in (
        ({"adaptive": True}, "choose one"),
        ({"shared": True}, "goes without shared=True"),
    ):
        with pytest.raises(ValueError, match=words):
            ct.NetworkedLinearRegression(graph, learn_graph=True, **options).fit(X, y, groups=nodes)
    with pytest.raises(ValueError, match="by folds"):
        ct.NetworkedLinearRegressionCV(graph, learn_graph=True, criterion="bic").fit(X, y, groups=nodes)


def test_weights_that_do_not_settle_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learnt_graph, "ROUNDS", 2)
    graph, X, y, nodes = rings()
    model = ct.NetworkedLinearRegression(graph, lam=0.05, learn_graph=True, **FAST)
    with pytest.warns(ConvergenceWarning, match="have not settled after 2 turns, the last of which moved one"):
        model.fit(X, y, groups=nodes)
