import json
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold
from towns import CHOOSING, PLAIN, TOWNS, empirical, labels_for, names, quick, rows

import coterie as ct
from coterie.io.errors import ModelFileError

FITTED = ("coef_", "intercept_", "dual_coef_", "nodes_", "clusters_", "undetermined_nodes_", "n_labelled_")
SCALARS = ("lam_", "gap_", "n_iter_", "n_features_in_")


def same(a, b, X, groups):
    for name in (*FITTED, "node_errors_"):
        assert np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "node_errors_"), name
        assert getattr(a, name).dtype == getattr(b, name).dtype, name
    for name in SCALARS:
        assert getattr(a, name) == getattr(b, name), name
    assert (a.predict(X, groups) == b.predict(X, groups)).all()
    assert repr(a.solution_) == repr(b.solution_)
    assert a.solution_.history == b.solution_.history
    assert type(a) is type(b)


@pytest.mark.parametrize(("model", "library"), list(zip([*PLAIN, *CHOOSING], [None, pd, pl] * 2, strict=True)))
def test_a_model_comes_back_as_it_was(tmp_path, model, library):
    X, y, nodes = rows()
    y = labels_for(model, y)
    gaps = y.astype(object)
    gaps[nodes == 4] = None
    table, groups = X, names(nodes)
    if library is not None:
        table, groups = library.DataFrame({"rain": X[:, 0], "wind": X[:, 1], "town": groups}), "town"
    fitted = quick(model, empirical(), penalty="l2").fit(table, gaps, groups)
    fitted.save(tmp_path / "m", notes={"source": "weather", "rows": 30})
    back = ct.load(tmp_path / "m")
    same(fitted, back, table, groups)
    assert back.notes_ == {"source": "weather", "rows": 30}
    mine, theirs = fitted.get_params(), back.get_params()
    del mine["graph"], theirs["graph"]
    assert mine == theirs
    assert back.graph_.names == fitted.graph_.names
    assert hasattr(back, "feature_names_in_") == (library is not None)
    if library is not None:
        assert (back.predict(table) == fitted.predict(table)).all()
        assert isinstance(back.coef_frame(), library.DataFrame)
    if model in CHOOSING:
        for column, values in fitted.cv_results_.items():
            assert (back.cv_results_[column] == values).all()
        assert back.lam_choice_.over == fitted.lam_choice_.over
    if hasattr(fitted, "classes_"):
        assert back.classes_.tolist() == ["dry", "wet"]
        assert (back.predict_proba(table, groups) == fitted.predict_proba(table, groups)).all()


@pytest.mark.parametrize(
    "ids",
    [TOWNS, [3, 1, 4, 15, 9, 2], [0.5, 1.5, 2.0, 3.0, 4.0, 5.0], ["x", 1, 2.5, "t", False, None], list("日本語äß€")],
)
def test_ids_of_every_json_type(tmp_path, ids):
    X, y, nodes = rows()
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (3, 4), (2, 3)], ids=ids)
    groups = [ids[i] for i in nodes]
    fitted = ct.NetworkedLinearRegression(graph).fit(X, y, groups)
    fitted.save(tmp_path / "m")
    back = ct.load(tmp_path / "m")
    same(fitted, back, X, groups)
    assert list(back.graph_.names) == ids
    assert [type(name) for name in back.graph_.names] == [type(name) for name in ids]


def test_numbered_nodes_stay_numbers(tmp_path):
    X, y, nodes = rows()
    graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (3, 4)], n_nodes=6)
    fitted = ct.NetworkedLinearRegression(graph, fit_intercept=False).fit(X, y, nodes)
    fitted.save(str(tmp_path / "m"))
    back = ct.load(str(tmp_path / "m"))
    same(fitted, back, X, nodes)
    assert back.graph_.ids is None
    assert json.loads((tmp_path / "m" / "model.json").read_text())["nodes"] is None


@pytest.mark.parametrize("bad", [frozenset({1}), pd.Timedelta("1D"), np.nan])
def test_an_id_that_json_cannot_hold_is_named(tmp_path, bad):
    X, y, nodes = rows()
    ids = [bad, *TOWNS[1:]]
    graph = nx.relabel_nodes(nx.path_graph(6), dict(enumerate(ids)))
    fitted = ct.NetworkedLinearRegression(graph).fit(X, y, [ids[i] for i in nodes])
    with pytest.raises((TypeError, ValueError)) as caught:
        fitted.save(tmp_path / "m")
    assert repr(bad) in str(caught.value)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("classes", [(False, True), (0, 7), (-1.0, 1.0), ("no", "yes")])
def test_classes_of_every_type(tmp_path, classes):
    X, y, nodes = rows()
    y = np.array(classes)[(y > 0).astype(int)]
    fitted = ct.NetworkedLogisticRegression(empirical()).fit(X, y, names(nodes))
    fitted.save(tmp_path / "m")
    back = ct.load(tmp_path / "m")
    assert back.classes_.dtype == fitted.classes_.dtype
    same(fitted, back, X, names(nodes))


def test_a_gap_that_is_not_finite_comes_back(tmp_path):
    X, y, nodes = rows()
    with pytest.warns(UserWarning, match="Certified gap"):
        fitted = ct.NetworkedLasso(empirical(), max_iter=0, tol=0.0).fit(X, y, names(nodes))
    fitted.save(tmp_path / "m")
    same(fitted, ct.load(tmp_path / "m"), X, names(nodes))


def test_parameters_that_are_objects(tmp_path):
    X, y, nodes = rows()
    model = ct.NetworkedLinearRegressionCV(
        empirical(),
        lams=np.array([0.1, 1.0]),
        cv=GroupKFold(2),
        random_state=np.random.RandomState(0),
        penalty=ct.GroupTotalVariation(),
    ).fit(X, y, names(nodes))
    model.save(tmp_path / "m")
    back = ct.load(tmp_path / "m")
    assert back.get_params() == {
        **ct.NetworkedLinearRegressionCV(back.graph, lams=[0.1, 1.0], penalty="l2").get_params(),
    }
    back.fit(X, y, names(nodes))

    @dataclass(frozen=True)
    class Mine(ct.TotalVariation):
        pass

    model = ct.NetworkedLinearRegression(empirical(), penalty=Mine()).fit(X, y, names(nodes))
    with pytest.raises(TypeError, match=r"cannot hold .*Mine.*; it takes the penalties l1, l2, squared"):
        model.save(tmp_path / "other")


def test_what_a_loaded_model_can_do(tmp_path):
    X, y, nodes = rows()
    fitted = ct.NetworkedLasso(empirical(), alpha=0.01, warm_start=True).fit(X, y, names(nodes))
    fitted.save(tmp_path / "m", notes={"a": 1})
    back = ct.load(tmp_path / "m")
    new = X[:3], y[:3]
    assert (back.weights_for(["a1", "b1"], *new).coef == fitted.weights_for(["a1", "b1"], *new).coef).all()
    assert nx.utils.graphs_equal(back.to_networkx(), fitted.to_networkx())
    with pytest.raises(ValueError, match="does not have its training rows"):
        back.add_nodes({"c": ["a1"]})
    back.save(tmp_path / "again")
    same(fitted, ct.load(tmp_path / "again"), X, names(nodes))
    assert ct.load(tmp_path / "again").notes_ == {"a": 1}
    assert back.fit(X, y, names(nodes)).n_iter_ <= fitted.n_iter_


def test_only_fitted_models_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        ct.NetworkedLasso(empirical()).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_model_replaces_another(tmp_path):
    X, y, nodes = rows()
    ct.NetworkedLasso(empirical()).fit(X, y, names(nodes)).save(tmp_path / "m")
    other = ct.NetworkedLinearRegression(empirical()).fit(X, y, names(nodes))
    other.save(tmp_path / "m")
    same(other, ct.load(tmp_path / "m"), X, names(nodes))
    assert sorted(p.suffix for p in (tmp_path / "m").iterdir()) == [".json", ".safetensors"]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": "NetworkedMagic"},
        {"parameters": {"magic": 1}},
        {"nodes": ["a1"]},
        {"certificate": {}},
        {"history": [[1, 2]]},
        {"lam": None, "n_features": None, "notes": {}, "versions": {}, "certificate": None},
    ],
)
def test_a_record_that_was_tampered_with(tmp_path, change):
    X, y, nodes = rows()
    ct.NetworkedLasso(empirical()).fit(X, y, names(nodes)).save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ModelFileError, match="the model is damaged"):
        ct.load(tmp_path / "m")


def test_no_training_rows_and_no_places_are_written(tmp_path):
    X, y, nodes = rows()
    ct.NetworkedLasso(empirical()).fit(X, y, names(nodes)).save(tmp_path / "m")
    record = json.loads((tmp_path / "m" / "model.json").read_text())
    assert str(tmp_path) not in json.dumps(record)
    assert set(record["versions"]) >= {"coterie", "numpy", "python", "scikit-learn"}
    assert record["schema"] == 3
