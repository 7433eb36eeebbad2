import numpy as np
import pytest
from towns import TOWNS, empirical, names, rows

import coterie as ct
from coterie.io.moments import Moments
from coterie.io.rows import Columns

COLUMNS = Columns("town", ("humidity", "wind"), "rain")


def data():
    """Rows of five towns; the sixth has none."""
    X, y, nodes = rows()
    there = nodes != 5
    return X[there], y[there], names(nodes[there])


@pytest.mark.parametrize(
    "model",
    [
        ct.NetworkedLinearRegression(empirical(), tol=1e-9),
        ct.NetworkedLinearRegression(empirical(), tol=1e-9, weight_by="nodes", ridge=0.1),
        ct.NetworkedLasso(empirical(), tol=1e-9),
        ct.NetworkedLinearRegressionCV(empirical(), n_lams=5, cv=3, random_state=0, tol=1e-9),
        ct.NetworkedLassoCV(empirical(), n_lams=5, cv=3, random_state=0, tol=1e-9),
    ],
)
def test_moments_give_the_fit_of_the_rows(model, tmp_path):
    X, y, ids = data()
    expected = model.fit(X, y, ids).solution_.objective, model.lam_, model.n_labelled_, model.node_errors_
    errors = model.cv_results_["mean_error"] if hasattr(model, "cv_results_") else None
    model.fit_moments(Moments.of(X, y, ids), COLUMNS)
    assert model.solution_.objective == pytest.approx(expected[0], rel=1e-8)
    assert model.lam_ == pytest.approx(expected[1])
    np.testing.assert_array_equal(model.n_labelled_, expected[2])
    np.testing.assert_allclose(model.node_errors_, expected[3], rtol=1e-3)
    if errors is not None:
        np.testing.assert_allclose(model.cv_results_["mean_error"], errors, rtol=0.05)  # folds are solved roughly
    assert model.coef_frame().columns == ["node", "humidity", "wind", "intercept", "cluster"]
    model.save(tmp_path / "model")
    assert ct.load(tmp_path / "model").groups_column_ == "town"


def test_rows_cannot_be_held_out_of_moments():
    moments = Moments.of(*data())
    for parameters in ({"over": "rows"}, {"cv": [([0], [1])]}):
        with pytest.raises(ValueError, match="only folds over nodes"):
            ct.NetworkedLassoCV(empirical(), **parameters).fit_moments(moments, COLUMNS)


def test_moments_without_labels_and_of_unknown_nodes():
    X, y, ids = data()
    with pytest.raises(ValueError, match="nothing to learn from"):
        ct.NetworkedLasso(empirical()).fit_moments(Moments.of(X, np.full_like(y, np.nan), ids), COLUMNS)
    with pytest.raises(ValueError, match="'far'"):
        ct.NetworkedLasso(empirical()).fit_moments(Moments.of(X, y, ["far", *ids[1:]]), COLUMNS)


def test_a_time_limit_ends_a_fit():
    X, y, ids = data()
    model = ct.NetworkedLinearRegression(empirical(), 0.1, tol=0, time_limit=0)
    with pytest.warns(match="time limit"):
        model.fit(X, y, ids)
    assert model.solution_.status is ct.Status.TIME_LIMIT
    assert set(model.nodes_) == set(TOWNS)


def test_whoever_asks_is_told_how_far_a_fit_is(tmp_path):
    X, y, ids = data()
    told = []
    model = ct.NetworkedLinearRegressionCV(
        empirical(), n_lams=4, cv=2, tol=1e-9, random_state=0, verbose=lambda line, done: told.append((line, done))
    )
    model.fit(X, y, ids).save(tmp_path / "model")
    assert ct.load(tmp_path / "model").verbose == 0
    folds = [done for line, done in told if line.startswith("fold")]
    assert folds == [k / 8 for k in range(1, 9)]
    solve = [done for line, done in told if "gap" in line and line.startswith("iteration")]
    assert solve == sorted(solve)
    assert solve[-1] == 1.0
