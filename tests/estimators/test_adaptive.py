"""A second fit on edges that count less where the first one found a difference."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import coterie as ct
from coterie.estimators import made_graph
from coterie.estimators.adaptive import EPSILON, adapted, reweighted
from coterie.estimators.assessment import assess
from coterie.estimators.fold_paths import solve_folds
from coterie.estimators.folds import folds_of
from coterie.estimators.lam_choice import LamChoice


def blocks(seed: int = 0):
    """Two blocks of ten nodes, rings with chords, and four wrong edges between them."""
    rng = np.random.default_rng(seed)
    inside = [(10 * b + k, 10 * b + (k + step) % 10) for b in (0, 1) for k in range(10) for step in (1, 2)]
    graph = ct.EmpiricalGraph.from_edges([*inside, (0, 10), (3, 14), (5, 17), (8, 19)])
    nodes = np.repeat(np.arange(20), 6)
    X = rng.standard_normal((120, 1))
    y = np.where(nodes < 10, 1.0, -1.0) * X[:, 0] + 0.5 * rng.standard_normal(120)
    return graph, X, y, nodes


def test_weights_are_divided_by_differences() -> None:
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)], [1.0, 2.0])
    w = np.array([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    A = reweighted(graph, w).weights
    size = np.sqrt(12.5)
    assert A[1] / A[0] == pytest.approx(2 * EPSILON * size / (EPSILON * size + 5))
    assert A.sum() == pytest.approx(3)
    assert reweighted(graph, np.zeros((3, 2))) is graph


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared"])
def test_two_fits_in_one(penalty: str) -> None:
    graph, X, y, nodes = blocks()
    options = {"lam": 0.5, "fit_intercept": False, "engine": "numpy", "penalty": penalty}
    first = ct.NetworkedLinearRegression(graph, **options).fit(X, y, groups=nodes)
    second = ct.NetworkedLinearRegression(graph, adaptive=True, **options).fit(X, y, groups=nodes)
    by_hand = reweighted(graph, first.solution_.w)
    np.testing.assert_allclose(second.graph_.weights, by_hand.weights, rtol=1e-3)
    again = ct.NetworkedLinearRegression(by_hand, **options).fit(X, y, groups=nodes)
    np.testing.assert_allclose(second.coef_, again.coef_, atol=1e-3)
    assert np.abs(second.coef_).mean() > np.abs(first.coef_).mean()  # less is lost across the wrong edges
    assert second.gap_ <= 1e-6


def test_a_fold_has_the_first_lam_that_others_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, X, y, nodes = blocks()
    used, first = [], []

    def noted(problem: ct.Problem, lam: float, options: dict) -> ct.Problem:
        used.append(lam)
        return adapted(problem, lam, options)

    def chosen(self: LamChoice, rule: str) -> np.ndarray:
        np.testing.assert_array_equal(lams_elsewhere(self, rule), self.lams[self.chosen_elsewhere(rule)])
        first.append(self.lams[self.by_rule(rule)])
        return self.lams[:4]  # others, one for each fold

    lams_elsewhere = LamChoice.lams_elsewhere
    monkeypatch.setattr(made_graph, "adapted", noted)
    monkeypatch.setattr(LamChoice, "lams_elsewhere", chosen)
    options = {"lams": [9.0, 3.0, 1.0, 0.3, 0.1], "cv": 4, "over": "rows", "engine": "numpy", "tol": 1e-3}
    model = ct.NetworkedLinearRegressionCV(graph, adaptive=True, fit_intercept=False, **options)
    model.fit(X, y, groups=nodes)
    assert used == [*first, 9.0, 3.0, 1.0, 0.3]
    used.clear()
    first.clear()
    ct.compare_baselines(model, X, y, nodes, cv=4)
    assert used == [9.0, 3.0, 1.0, 0.3]


def test_both_lam_are_chosen(tmp_path) -> None:
    graph, X, y, nodes = blocks()
    options = {"lams": [3.0, 1.0, 0.3], "cv": 3, "over": "rows", "random_state": 0, "engine": "numpy", "tol": 1e-4}
    model = ct.NetworkedLinearRegressionCV(graph, adaptive=True, fit_intercept=False, **options).fit(X, y, groups=nodes)
    truth = np.arange(20) // 10
    assert adjusted_rand_score(truth, model.clusters_) > 0.8
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(back.graph_.weights, model.graph_.weights)
    np.testing.assert_array_equal(back.graph.weights, graph.weights)
    np.testing.assert_array_equal(back.predict(X, groups=nodes), model.predict(X, groups=nodes))
    assert ct.compare_baselines(model, X, y, nodes, cv=3).errors.shape[1] == 3
    assert assess(model, baselines=False) is None
    with pytest.raises(ValueError, match="not adapted"):
        model.add_nodes({20: [0]})


def test_a_fold_makes_its_graph_from_its_training_rows_alone() -> None:
    graph, X, y, nodes = blocks()
    problem = ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, nodes))
    folds, seen = folds_of(problem.data, 3, "rows", np.arange(len(y)), 0)[0], []

    def made(training: ct.Problem) -> ct.Problem:
        seen.append(~np.isnan(training.data.y))
        return training

    solve_folds(problem, [0.1], folds, made=made, tol=1e-2, engine="numpy")
    for labelled, fold in zip(seen, folds, strict=True):
        np.testing.assert_array_equal(labelled, fold.train)


def test_held_out_errors_of_a_given_lam_are_honest() -> None:
    graph, X, y, nodes = blocks()
    model = ct.NetworkedLinearRegression(graph, lam=0.5, adaptive=True, engine="numpy", tol=1e-4).fit(
        X, y, groups=nodes
    )
    assert model.first_problem_.graph.weights.tolist() == graph.weights.tolist()
    assess(model, baselines=False)
    assert model.held_out_.error > 0


def test_places_at_times_and_numbers_of_clusters(tmp_path) -> None:
    space = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=list("abcd"))
    pairs = [(place, time) for time in (1, 2, 3) for place in "abcd" for _ in range(4)]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((len(pairs), 1))
    y = np.array([1.0 if place < "c" else -1.0 for place, _ in pairs]) * X[:, 0] + 0.1 * rng.standard_normal(len(pairs))
    model = ct.NetworkedLinearRegression(
        (space, ct.time_graph([1, 2, 3])), n_clusters=2, adaptive=True, fit_intercept=False, engine="numpy"
    ).fit(X, y, groups=pairs)
    assert model.clusters_.reshape(3, 4).tolist() == [[0, 0, 1, 1]] * 3
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(back.graph_.weights, model.graph_.weights)
    assert back.graph[0].n_nodes == 4
