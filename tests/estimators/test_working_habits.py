"""What people expect of an estimator: jobs, class weights, a logger, a line in the console."""

from __future__ import annotations

import logging

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import coterie as ct
from coterie.estimators.fold_paths import solve_folds

EDGES = [("a", "b"), ("b", "c"), ("c", "d")]


def rows(m: int = 40, rare: bool = False):
    rng = np.random.default_rng(0)
    X, towns = rng.standard_normal((m, 2)), np.tile(list("abcd"), m // 4)
    score = X @ [1.0, -1.0] + 0.5 * rng.standard_normal(m)
    return X, np.where(score > (1.5 if rare else 0.0), "yes", "no"), towns


@pytest.mark.slow
def test_folds_in_other_processes_give_the_same_choice() -> None:
    X, y, towns = rows()
    lines: list[float] = []
    one = ct.NetworkedLogisticRegressionCV(EDGES, n_lams=3, cv=3, random_state=0, tol=1e-3)
    two = ct.NetworkedLogisticRegressionCV(
        EDGES, n_lams=3, cv=3, random_state=0, tol=1e-3, n_jobs=2, verbose=lambda line, done: lines.append(done)
    )
    one.fit(X, y, towns)
    two.fit(X, y, towns)
    assert np.allclose(one.lam_choice_.errors, two.lam_choice_.errors, rtol=1e-9)
    assert lines[8] == 1.0  # three folds of three λ


def test_processes_share_the_cores(monkeypatch) -> None:
    asked = []

    def parallel(jobs, **options):
        return lambda calls: [function(*arguments, **named) for function, arguments, named in calls]

    def solved(problem, lams, ones, refit, options, expected, made, fold, progress=None):
        asked.append((options["threads"], expected))
        return fold

    monkeypatch.setattr("coterie.estimators.fold_paths.Parallel", parallel)
    monkeypatch.setattr("coterie.estimators.fold_paths.delayed", lambda f: lambda *a, **k: (f, a, k))
    monkeypatch.setattr("coterie.estimators.fold_paths._solve_fold", solved)
    monkeypatch.setattr("coterie.estimators.fold_paths.effective_n_jobs", lambda n: n or 1)
    monkeypatch.setattr("coterie.estimators.fold_paths.cores", lambda: 8)
    for n_jobs, threads in ((2, 8), (16, 8), (3, None), (2, 1), (None, 8)):
        solve_folds(None, [1.0], [1, 2, 3, 4, 5], n_jobs=n_jobs, threads=threads)
        del asked[1:-1]
    assert asked[0] == (4, 3)  # two processes of four threads, and not of eight
    assert asked[-1] == (8, 5)


def test_balanced_classes_count_alike() -> None:
    X, y, towns = rows(80, rare=True)
    fit = {"lam": 1.0, "engine": "numpy", "tol": 1e-6}
    plain = ct.NetworkedLogisticRegression(EDGES, **fit).fit(X, y, towns)
    balanced = ct.NetworkedLogisticRegression(EDGES, class_weight="balanced", **fit).fit(X, y, towns)
    share = (y == "yes").mean()
    assert np.allclose(balanced.class_weight_, [0.5 / (1 - share), 0.5 / share])
    assert (balanced.predict(X, towns) == "yes").mean() > (plain.predict(X, towns) == "yes").mean()
    by_hand = ct.NetworkedLogisticRegression(EDGES, **fit)
    by_hand.fit(X, y, towns, sample_weight=np.where(y == "yes", 0.5 / share, 0.5 / (1 - share)))
    assert np.allclose(balanced.coef_, by_hand.coef_, atol=1e-4)
    assert plain.class_weight_.tolist() == [1, 1]


def test_class_weights_are_kept_in_files(tmp_path) -> None:
    X, y, towns = rows()
    model = ct.NetworkedLogisticRegression(EDGES, class_weight={0: 1.0, 1: 3.0}, engine="numpy", tol=1e-3)
    model.fit(X, (y == "yes").astype(int), towns).save(tmp_path)
    again = ct.load(tmp_path)
    assert again.class_weight == {0: 1.0, 1: 3.0}
    assert again.class_weight_.tolist() == [1, 3]
    near = [model.weights_for(["a"], X[:8], (y == "yes").astype(int)[:8]).coef for model in (model, again)]
    assert np.allclose(*near)


@pytest.mark.parametrize("wrong", ["heavy", 3, {"no": 1, "perhaps": 2}])
def test_class_weights_that_cannot_be(wrong) -> None:
    X, y, towns = rows()
    model = ct.NetworkedLogisticRegression(EDGES, class_weight=wrong)
    with pytest.raises((ValueError, TypeError), match=r"class_weight|classes"):
        model.fit(X, y, towns)
    with pytest.raises(NotFittedError):
        model.predict(X, towns)


def test_progress_is_logged_where_somebody_listens(caplog, capsys) -> None:
    X, y, towns = rows()
    model = ct.NetworkedLogisticRegression(EDGES, engine="numpy", tol=1e-3)
    model.fit(X, y, towns)
    assert not caplog.records
    with caplog.at_level(logging.INFO, logger="coterie"):
        model.fit(X, y, towns)
        model.set_params(verbose=1).fit(X, y, towns)
    assert {record.name for record in caplog.records} == {"coterie"}
    assert "gap" in caplog.text
    assert capsys.readouterr().out == ""
    model.fit(X, y, towns)
    assert "gap" in capsys.readouterr().out


def test_objects_say_what_they_are_in_a_line() -> None:
    graph = ct.EmpiricalGraph.from_any(EDGES)
    data = ct.LocalDatasets.from_rows(np.eye(2)[[0, 1, 0, 1]], [1.0, 2.0, 3.0, 4.0], [0, 1, 2, 3])
    problem = ct.Problem(graph, data, lam=0.1)
    path = ct.solve_path(problem, n_lams=12, tol=1e-2, engine="numpy")
    X, y, towns = rows()
    model = ct.NetworkedLogisticRegressionCV(graph, n_lams=2, cv=2, random_state=0, engine="numpy", tol=1e-2)
    choice = model.fit(X, y, towns).lam_choice_
    for one in (graph, data, problem, problem.bound, path, path.solutions[0], path.solutions[0].clusters(), choice):
        assert repr(one).startswith(f"{type(one).__name__}(")
        assert "\n" not in repr(one)
        assert len(repr(one)) < 250
    assert repr(path).startswith("Path(12 solutions, lam ")
    assert repr(choice).startswith("LamChoice(2 lams, 2 folds over rows; best ")


def test_nodes_in_two_columns(tmp_path) -> None:
    rng, months = np.random.default_rng(0), [1, 2, 3]
    graph = ct.product_graph(ct.EmpiricalGraph.from_edges([(0, 1)], ids=["a", "b"]), ct.time_graph(months))
    table = pd.DataFrame({"town": np.repeat(["a", "b"], 30), "month": np.tile(months, 20), "x": rng.normal(size=60)})
    y = np.where(table["town"] == "a", 1, -1) * table["month"] * table["x"]
    model = ct.NetworkedLinearRegression(graph, lam=1e-3).fit(table, y, groups=["town", "month"])
    assert model.groups_column_ == ["town", "month"]
    assert model.feature_names_in_.tolist() == ["x"]
    assert dict(zip(model.nodes_, model.coef_[:, 0].round(), strict=True))["b", 3] == -3
    model.save(tmp_path / "model")
    loaded = ct.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
    named = ct.NetworkedLinearRegression(graph, lam=1e-3, node=["town", "month"]).fit(table, y)
    np.testing.assert_array_equal(named.coef_, model.coef_)
