"""`node=` names the column of the nodes, for callers that pass no groups; a fit checks all parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import coterie as ct

EDGES = [("a", "b"), ("b", "c"), ("c", "d")]


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": np.tile(list("abcd"), 12), "x": rng.standard_normal(48)})
    return frame, np.where(frame["town"] < "c", 2.0, -2.0) * frame["x"].to_numpy() + 0.1 * rng.standard_normal(48)


def test_scikit_learn_needs_no_routing() -> None:
    X, y = table()
    model = ct.NetworkedLinearRegression(EDGES, 0.01, node="town")
    assert model.fit(X, y).score(X, y) == ct.NetworkedLinearRegression(EDGES, 0.01).fit(X, y, "town").score(X, y)
    assert (cross_val_score(model, X, y, cv=3) > 0.9).all()
    search = GridSearchCV(model, {"lam": [1e-2, 1e3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"lam": 1e-2}
    assert make_pipeline(FunctionTransformer(), model).fit(X, y).score(X, y) > 0.9


def test_groups_come_before_the_parameter() -> None:
    X, y = table()
    model = ct.NetworkedLinearRegression(EDGES, 0.01, node="village").fit(X, y, groups="town")
    assert model.groups_column_ == "town"
    with pytest.raises(ValueError, match="no column 'village'"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [("fit_intercept", "yes"), ("max_iter", 1.5), ("tol", -1.0), ("standardize", 2), ("time_limit", "1"), ("node", 3)],
)
def test_parameters_that_make_no_sense(name: str, value: Any) -> None:
    X, y = table()
    model = ct.NetworkedLinearRegression(EDGES, 0.01).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"The '{name}' parameter of NetworkedLinearRegression must be"):
        model.fit(X, y, groups=X.pop("town"))


def test_ids_that_are_tuples_are_saved(tmp_path: Any) -> None:
    X, y = table()
    towns = [(town, 1) for town in X.pop("town")]
    graph = [(("a", 1), ("b", 1)), (("b", 1), ("c", 1)), (("c", 1), ("d", 1))]
    model = ct.NetworkedLinearRegression(graph, 0.01).fit(X, y, groups=towns)
    model.save(tmp_path / "m")
    assert (ct.load(tmp_path / "m").predict(X, groups=towns) == model.predict(X, groups=towns)).all()
