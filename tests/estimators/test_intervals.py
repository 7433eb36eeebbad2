"""Prediction intervals: how many labels they cover, and what they refuse."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from test_information import PATH, rows

import coterie as ct
from coterie.io.files import MissingExtraError


def fitted(seed: int = 0, m: int = 10, **options):
    X, y, nodes = rows(seed, m)
    return ct.NetworkedLinearRegression(PATH, lam=0.05, **options).fit(X, y, nodes)


def chain(rng: np.random.Generator, V: int = 60) -> tuple[list, np.ndarray]:
    """A long path, whose nodes have intercepts that vary slowly."""
    return [(k, k + 1) for k in range(V - 1)], np.cumsum(0.3 * rng.standard_normal(V))


def test_intervals_are_those_of_the_quantile():
    model = fitted()
    X, y, nodes = rows(1, 10)
    ends = model.calibrate(X, y, nodes).predict_interval(X, nodes, coverage=0.8)
    residuals = np.sort(np.abs(y - model.predict(X, nodes)))
    half = residuals[int(np.ceil(0.8 * (len(y) + 1))) - 1]
    assert np.allclose(ends, model.predict(X, nodes)[:, None] + [-half, half])
    assert model.calibration_[:2] == ("rows", "split")


@pytest.mark.slow
def test_new_rows_are_covered():
    shares = []
    for seed in range(20):
        model = fitted(seed, 20, engine="numpy")
        X, y, nodes = rows(100 + seed, 20)
        split = model.calibrate(*(part[::2] for part in (X, y, nodes))).predict_interval(X[1::2], nodes[1::2])
        cross = model.calibrate().predict_interval(X[1::2], nodes[1::2])
        shares.append([np.mean((e[:, 0] <= y[1::2]) & (y[1::2] <= e[:, 1])) for e in (split, cross)])
    assert 0.86 < np.mean(shares, axis=0)[0] < 0.95
    assert 0.86 < np.mean(shares, axis=0)[1] < 0.95


@pytest.mark.slow
def test_nodes_without_labels_are_covered_by_nodes_and_not_by_rows():
    inside = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        edges, level = chain(rng)
        nodes = np.repeat(np.arange(60), 6)
        X, y = rng.standard_normal((360, 1)), level[nodes] + 0.05 * rng.standard_normal(360)
        part = rng.permutation(np.arange(60) % 3)[nodes]
        labels = np.where(part == 0, y, np.nan)
        model = ct.NetworkedLinearRegression(edges, lam=0.01, penalty="squared", engine="numpy").fit(X, labels, nodes)
        unseen = X[part == 2], nodes[part == 2]
        model.calibrate(X[part == 1], y[part == 1], nodes[part == 1], by="nodes")
        assert len(model.calibration_.residuals) == 20
        by_nodes = model.predict_interval(*unseen)
        by_folds = model.calibrate(by="nodes").predict_interval(*unseen)
        model.calibrate(by="rows")
        with pytest.warns(UserWarning, match=r'has no labels, .* use calibrate\(by="nodes"\)'):
            by_rows = model.predict_interval(*unseen)
        inside.append(
            [np.mean((e[:, 0] <= y[part == 2]) & (y[part == 2] <= e[:, 1])) for e in (by_nodes, by_folds, by_rows)]
        )
    split, cross, rows_only = np.mean(inside, axis=0)
    assert split > 0.8
    assert cross > 0.7
    assert rows_only < min(split, cross)


def test_the_first_call_calibrates_and_files_keep_it(tmp_path):
    model = fitted(2)
    X, _, nodes = rows(2, 10)
    ends = model.predict_interval(X, nodes)
    assert model.calibration_[:2] == ("rows", "cross")
    assert len(model.calibration_.residuals) == 60
    model.save(tmp_path / "model")
    assert np.array_equal(ct.load(tmp_path / "model").predict_interval(X, nodes), ends)
    X, y, nodes = rows(3, 10)
    assert not hasattr(model.fit(X, y, nodes), "calibration_")  # what was learnt of another fit


def test_too_few_residuals_are_infinite_and_said_to_be():
    model = fitted(4, 2)
    X, y, nodes = (part[:9] for part in rows(5, 2))
    model.calibrate(X, y, nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.predict_interval(X, nodes, 0.9)).all()  # nine rows are enough for .9
    with pytest.warns(UserWarning, match=r"a coverage of 0.95 needs 19 calibrated rows; there are 9"):
        assert np.isinf(model.predict_interval(X, nodes, 0.95)).all()


def test_nodes_that_no_label_reaches_have_no_interval():
    X, y, nodes = rows(6)
    graph = ct.EmpiricalGraph.from_edges(PATH, n_nodes=7)
    model = ct.NetworkedLinearRegression(graph, lam=0.1).fit(X, y, nodes).calibrate(by="nodes")
    with pytest.warns(UserWarning, match="needs 9 calibrated nodes"):
        ends = model.predict_interval(X[:2], [0, 6], 0.9)
    assert np.isinf(ends).all()
    assert np.isinf(model.predict_interval(X[:2], [0, 6], 0.5)).all(axis=1).tolist() == [False, True]


def test_what_cannot_be_calibrated_is_refused(tmp_path):
    model = fitted(7)
    X, y, nodes = rows(7, 10)
    with pytest.raises(ValueError, match="node 0 had labels in the fit"):
        model.calibrate(X, y, nodes, by="nodes")
    with pytest.raises(ValueError, match="rows to calibrate with need labels"):
        model.calibrate(X, groups=nodes)
    with pytest.raises(ValueError, match="nothing to calibrate with"):
        model.calibrate(X, np.full(len(y), np.nan), nodes)
    with pytest.raises(ValueError, match="coverage must be between 0 and 1, got 90"):
        model.predict_interval(X, nodes, 90)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"training rows are not there .* calibrate\(X, y, groups\)"):
        ct.load(tmp_path / "model").predict_interval(X, nodes)


def test_filters_of_warnings_stay_as_they_are():
    before = list(warnings.filters)
    fitted(9).predict_interval([[0.0, 0.0]], [0])
    assert list(warnings.filters) == before


def test_without_crepes_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "crepes", None)
    with pytest.raises(MissingExtraError, match=r"coterie\[intervals\]"):
        fitted(8).predict_interval([[0.0, 0.0]], [0])


def test_where_few_nodes_have_labels_there_are_fewer_folds():
    X, y, nodes = rows(0)
    model = ct.NetworkedLinearRegression(PATH, lam=0.05).fit(X, np.where(nodes < 3, y, np.nan), nodes)
    assert np.isfinite(model.predict_interval(X, nodes, coverage=0.5)).all()
    assert model.calibration_[:2] == ("nodes", "cross")
    assert len(model.calibration_.residuals) == 3
    with pytest.raises(ValueError, match=r'by must be "auto", "rows" or "nodes", got \'places\''):
        model.calibrate(by="places")


KINDS = {
    "PoissonRegression": (r"counts vary the more .* NetworkedQuantileRegression", [0.0, 1.0, 2.0, 3.0]),
    "QuantileRegression": (r"fit two, such as quantile=0.05 and quantile=0.95", [0.0, 1.0, 2.0, 3.0]),
    "LogisticRegression": (r"predict_proba says how likely", [0.0, 1.0, 1.0, 0.0]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["calibrate", "predict_interval"])
@pytest.mark.parametrize("form", ["", "CV"])
def test_a_model_without_intervals_says_why(kind, name, form) -> None:
    made = getattr(ct, f"Networked{kind}{form}")
    says, _ = KINDS[kind]
    with pytest.raises(AttributeError, match=f"^Networked{kind}{form} has no {name}: .*{says}"):
        getattr(made(), name)
    assert not hasattr(made(), name)
    assert not hasattr(made, name)
    assert hasattr(ct.NetworkedHuberRegression(), name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fitted_model_without_intervals_says_why(kind) -> None:
    says, y = KINDS[kind]
    model = getattr(ct, f"Networked{kind}")([(0, 1)], engine="numpy").fit([[0.0], [1.0], [0.5], [0.2]], y, [0, 0, 1, 1])
    with pytest.raises(AttributeError, match=says):
        model.predict_interval([[1.0]], [0])
