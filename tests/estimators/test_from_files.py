"""fit_files: one pass over files where that is enough, rows in memory where not; the fit of the rows either way."""

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from towns import empirical, names, networkx_graph, rows

import coterie as ct
from coterie.io.errors import BadLabelError, DataError, TooLargeError, UnknownNodeError


def written(tmp_path, **columns):
    X, y, nodes = rows()
    table = pl.DataFrame({"town": names(nodes), "humidity": X[:, 0], "wind": X[:, 1], "rain": y} | columns)
    table.write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


@pytest.mark.parametrize(
    ("model", "in_memory"),
    [
        (ct.NetworkedLinearRegression(empirical()), False),
        (ct.NetworkedLassoCV(networkx_graph(), n_lams=4, cv=2, over="nodes", random_state=0), False),
        (ct.NetworkedLassoCV(empirical(), n_lams=4, cv=2, random_state=0), True),
        (ct.NetworkedLogisticRegression(empirical()), True),
    ],
)
def test_the_fit_of_the_rows(tmp_path, model, in_memory):
    X, y, nodes = rows()
    if isinstance(model, ct.NetworkedLogisticRegression):
        y = (y > 0).astype(int)
    path, said = written(tmp_path, rain=y), []
    model.set_params(verbose=lambda line, done: said.append(line))
    assert ct.fit_files(model, path, "town", "rain") is model
    assert any("all rows in memory" in line for line in said) == in_memory
    coef = model.coef_
    np.testing.assert_allclose(coef, model.fit(X, y, names(nodes)).coef_, rtol=1e-3, atol=1e-4)
    assert model.classes_.tolist() == [0, 1] if hasattr(model, "classes_") else model.lam_ > 0


def test_some_features(tmp_path):
    model = ct.fit_files(ct.NetworkedLinearRegression(empirical()), written(tmp_path), "town", "rain", ["wind"])
    assert model.feature_names_in_.tolist() == ["wind"]
    assert model.coef_frame().columns == ["node", "wind", "intercept", "cluster"]


def test_what_is_refused(tmp_path, monkeypatch):
    model, path = ct.NetworkedLinearRegression(empirical()), written(tmp_path)
    with pytest.raises(ValueError, match="there is no graph"):
        ct.fit_files(ct.NetworkedLinearRegression(), path, "town", "rain")
    with pytest.raises(UnknownNodeError, match="'far'"):
        ct.fit_files(model, written(tmp_path, town=["far"] * 30), "town", "rain")
    with pytest.raises(BadLabelError, match="'rain' is empty in every row"):
        ct.fit_files(model, written(tmp_path, rain=[None] * 30), "town", "rain")
    with pytest.raises(DataError, match=r"rows\.csv: cv=40 folds"):
        ct.fit_files(ct.NetworkedLassoCV(empirical(), cv=40), written(tmp_path), "town", "rain")
    monkeypatch.setattr("coterie.io.memory.memory_available", lambda: 10)
    with pytest.raises(TooLargeError, match="weights and duals"):
        ct.fit_files(model, path, "town", "rain")


def test_a_fit_that_ends_early_warns(tmp_path):
    model = ct.NetworkedLasso(empirical(), tol=1e-15, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        ct.fit_files(model, written(tmp_path), "town", "rain")
