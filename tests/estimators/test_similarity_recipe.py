"""A graph that a model makes of the rows it learns from."""

from __future__ import annotations

import numpy as np
import pytest

import coterie as ct
from coterie.estimators import baselines, variants
from coterie.estimators.assessment import assess
from coterie.estimators.folds import folds_of
from coterie.graphs.similarity_recipe import joined

FAST = {"engine": "numpy", "tol": 1e-4}
CHOOSING = {"n_lams": 4, "cv": 2, "random_state": 0, **FAST}


def sites(seed: int = 0):
    """Twelve sites of two kinds, eight rows each; nobody says which are alike."""
    rng = np.random.default_rng(seed)
    names = np.repeat([f"site {i}" for i in range(12)], 8)
    kind = np.repeat(np.arange(12) % 2, 8)
    X = rng.standard_normal((96, 2))
    y = np.where(kind == 0, 2.0, -2.0) * X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(96)
    return X, y, names


def test_it_is_the_graph_of_the_rows() -> None:
    X, y, names = sites()
    model = ct.NetworkedLinearRegression(ct.SimilarityGraph(k=3), lam=0.1, **FAST).fit(X, y, groups=names)
    by_hand = ct.similarity_graph(np.column_stack([X, np.ones(96)]), y, names, k=3)
    assert model.graph_.ids == by_hand.ids
    np.testing.assert_array_equal(model.graph_.edges, by_hand.edges)
    np.testing.assert_allclose(
        model.graph_.weights / model.graph_.weights.mean(), by_hand.weights / by_hand.weights.mean(), rtol=1e-6
    )
    assert model.n_neighbours_ == 3
    assert model.gap_ <= 1e-4
    again = ct.NetworkedLinearRegression(model.graph_, lam=0.1, **FAST).fit(X, y, groups=names)
    np.testing.assert_allclose(again.predict(X, groups=names), model.predict(X, groups=names), atol=1e-6)


def test_k_is_chosen_with_lam(tmp_path) -> None:
    X, y, names = sites()
    model = ct.NetworkedLinearRegressionCV(ct.SimilarityGraph(k=[1, 3, 10]), over="rows", **CHOOSING)
    model.fit(X, y, groups=names)
    chosen = int(np.argmin(model.cv_results_["mean_error"]))
    assert sorted(set(model.cv_results_["k"])) == [1, 3, 10]
    assert (model.n_neighbours_, model.lam_) == (model.cv_results_["k"][chosen], model.cv_results_["lam"][chosen])
    assert model.made_(model.first_problem_).graph.edges.tolist() == model.graph_.edges.tolist()
    assert [k for k, _ in model.lam_choice_.curves()] == [1, 3, 10]
    assert "k = 3" in [text.get_text() for text in ct.plot.lam_choice(model).get_legend().get_texts()]
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(back.cv_results_["k"], model.cv_results_["k"])
    np.testing.assert_array_equal(back.predict(X, groups=names), model.predict(X, groups=names))
    assert assess(model).errors.shape[1] == 2
    with pytest.raises(ValueError, match="made of the rows"):
        model.add_nodes({"new": ["site 0"]})


def test_a_threshold_is_chosen_with_lam(tmp_path) -> None:
    X, y, names = sites()
    recipe = ct.SimilarityGraph(threshold=[0.05, 0.5, 3.0])
    model = ct.NetworkedLinearRegressionCV(recipe, over="rows", **CHOOSING).fit(X, y, groups=names)
    chosen = int(np.argmin(model.cv_results_["mean_error"]))
    assert sorted(set(model.cv_results_["threshold"])) == [0.05, 0.5, 3.0]
    assert model.threshold_ == model.cv_results_["threshold"][chosen] > 0.05
    assert "threshold 0.5" in [text.get_text() for text in ct.plot.lam_choice(model).get_legend().get_texts()]
    model.save(tmp_path / "model")
    back = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(back.cv_results_["threshold"], model.cv_results_["threshold"])
    assert back.threshold_ == model.threshold_
    near = ct.NetworkedLinearRegression(ct.SimilarityGraph(threshold=0.5), lam=0.1, **FAST).fit(X, y, groups=names)
    kind = np.array([int(name[5:]) % 2 for name in near.graph_.ids])
    assert (kind[near.graph_.edges[:, 0]] == kind[near.graph_.edges[:, 1]]).all()
    assert (near.threshold_, near.graph_.n_edges) == (0.5, 30)
    compared = ct.compare_baselines(model, X, y, names)
    assert compared.errors[compared.methods.index("networked")].mean() < 0.5


def test_a_fold_makes_its_graph_of_its_training_rows_alone(monkeypatch) -> None:
    X, y, names = sites()
    seen: list[np.ndarray] = []

    def made(recipe: ct.SimilarityGraph, problem: ct.Problem, value: float) -> ct.Problem:
        seen.append(problem.data.y)
        return joined(recipe, problem, value)

    monkeypatch.setattr(variants, "joined", made)
    model = ct.NetworkedLinearRegressionCV(ct.SimilarityGraph(k=2), over="rows", **CHOOSING).fit(X, y, groups=names)
    order = np.argsort(model.graph_.numbers(names), kind="stable")
    folds, _ = folds_of(model.first_problem_.data, 2, "rows", order, 0)
    known = {tuple(~np.isnan(labels)) for labels in seen}
    assert {tuple(fold.train) for fold in folds} < known
    assert model.first_problem_.graph.n_edges == 0


def test_held_out_nodes_and_a_second_fit() -> None:
    X, y, names = sites()
    graph = ct.SimilarityGraph(k=(2, 4), by="gradients")
    model = ct.NetworkedLinearRegressionCV(graph, over="nodes", learn_graph=True, **CHOOSING).fit(X, y, groups=names)
    assert model.lam_choice_.over == "nodes"
    assert model.held_out_.error > 0
    compared = ct.compare_baselines(ct.NetworkedLinearRegression(ct.SimilarityGraph(3), **FAST), X, y, names, cv=2)
    assert compared.errors.shape[1] == 2
    classes = ct.NetworkedLogisticRegression(ct.SimilarityGraph(k=2), lam=0.1, ridge=0.1, **FAST)
    assert classes.fit(X, y > 0, groups=names).graph_.n_edges > 0
    middle = ct.NetworkedQuantileRegression(ct.SimilarityGraph(k=2), lam=0.1, engine="numpy", tol=1e-3)
    assert middle.fit(X, y, groups=names).graph_.n_edges > 0


def test_names_of_classes_and_an_l1_norm_do_not_change_what_is_compared() -> None:
    X, _, names = sites()
    classes = np.random.default_rng(1).integers(3, size=96) * (X[:, 0] > -0.5)
    graphs = []
    for labels in (np.array(["a", "b", "c"]), np.array(["b", "a", "c"])):
        model = ct.NetworkedLogisticRegression(ct.SimilarityGraph(k=2), lam=0.1, l1=1e-4, engine="numpy", tol=1e-1)
        graphs.append(model.fit(X, labels[classes], groups=names).graph_)
    assert set(map(tuple, graphs[0].edges.tolist())) == set(map(tuple, graphs[1].edges.tolist()))


def test_baselines_and_columns_know_the_k_of_a_second_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, names = sites()
    made = []
    monkeypatch.setattr(
        baselines, "joined", lambda recipe, problem, value: made.append(value) or joined(recipe, problem, value)
    )
    recipe = ct.SimilarityGraph(k=(1, 3))
    model = ct.NetworkedLinearRegressionCV(recipe, over="rows", adaptive=True, **CHOOSING).fit(X, y, groups=names)
    assert set(model.cv_results_["k"]) == {model.n_neighbours_} == {3}
    ct.compare_baselines(model, X, y, names, cv=2)
    assert set(made) == {3}


def test_a_row_without_a_node_is_named_and_several_k_may_be_an_array() -> None:
    X, y, nodes = np.ones((6, 1)), np.arange(6.0), ["a", "a", "b", "b", "c", None]
    with pytest.raises(ValueError, match="groups is empty in row 5"):
        ct.NetworkedLinearRegression(ct.SimilarityGraph(k=1)).fit(X, y, groups=nodes)
    with pytest.raises(ValueError, match="one of several is chosen by the estimators that end in CV"):
        ct.NetworkedLinearRegression(ct.SimilarityGraph(k=np.array([1, 2]))).fit(X, y, groups=list("aabbcc"))
    with pytest.raises(TypeError, match="k must be a whole number, got '2'"):
        ct.NetworkedLinearRegression(ct.SimilarityGraph(k="2")).fit(X, y, groups=list("aabbcc"))


def test_what_it_does_not_go_with() -> None:
    X, y, names = sites()
    refused = [
        (ct.NetworkedLinearRegression(ct.SimilarityGraph([2, 3])), "estimators that end in CV"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph([])), "at least one number"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(12)), "between 1 and 11"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(threshold=[0.5, 1])), "estimators that end in CV"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(threshold=())), "threshold is an empty sequence"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(threshold=0.0)), "threshold must be a number > 0"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(threshold=True)), "threshold must be a number > 0"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(2.5)), "k must be a whole number"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(by="places")), "by must be"),
        (ct.NetworkedLinearRegression(ct.SimilarityGraph(), shared=True), "graph that is given"),
        (ct.NetworkedLinearRegressionCV(ct.SimilarityGraph(), criterion="bic"), "for each fold"),
    ]
    for model, words in refused:
        with pytest.raises((ValueError, TypeError), match=words):
            model.fit(X, y, groups=names)
    with pytest.raises(ValueError, match="say with groups="):
        ct.NetworkedLinearRegression(ct.SimilarityGraph()).fit(X, y)


@pytest.mark.parametrize("how", ["adaptive", "learn_graph"])
def test_thresholds_go_with_a_second_fit_and_are_of_the_last_one(how: str) -> None:
    X, y, names = sites()
    recipe = ct.SimilarityGraph(threshold=(0.3, 1.0))
    model = ct.NetworkedLinearRegressionCV(recipe, over="rows", **CHOOSING, **{how: True}).fit(X, y, groups=names)
    assert model.threshold_ in (0.3, 1.0)
    model.set_params(graph=ct.SimilarityGraph(k=3)).fit(X, y, groups=names)
    assert model.n_neighbours_ == 3
    assert not hasattr(model, "threshold_")
