"""Refits, a shared component and strengths that folds choose, from the command line."""

import numpy as np
import polars as pl
import pytest
from commands import FIT, assert_one_line, edges, parsed, rows, run, write

import coterie as ct
from coterie.cli.codes import ExitCode
from coterie.report.text import FLATTERED


@pytest.fixture
def files(tmp_path):
    return write(tmp_path)


def fit(files, *options):
    data, graph = files
    return run("fit", data, *FIT, "--graph", graph, "--no-baselines", *options)


@pytest.mark.parametrize(
    ("options", "given"), [(("--refit", "clusters"), {"refit": "clusters"}), (("--shared",), {"shared": True})]
)
def test_options_are_parameters_of_the_estimators(files, tmp_path, options, given):
    result = fit(files, "--lam", 0.3, *options, "--out", tmp_path / "model", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    said = parsed(result)
    assert (said["refit"], said["shared"]) == (given.get("refit"), given.get("shared", False))
    table = rows()
    X = table.select("station", "humidity", "wind")
    expected = ct.NetworkedLinearRegression(edges(), 0.3, **given).fit(X, table["rain"], groups="station")
    fitted = ct.load(tmp_path / "model")
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-4)
    if "refit" in given:
        assert "refitted on these clusters" in run("inspect", tmp_path / "model").stdout


def test_coefficients_have_errors_given_the_clusters_where_there_is_a_refit(files, tmp_path):
    model, out = tmp_path / "model", tmp_path / "all.csv"
    assert fit(files, "--lam", 0.3, "--refit", "clusters", "--out", model, "--quiet").exit_code == 0
    assert run("coefficients", model, "--errors", "--out", out).exit_code == 0
    table, expected = pl.read_csv(out), ct.load(model).coef_frame(errors=True)
    assert table.columns == list(expected.columns)
    np.testing.assert_allclose(table["wind_se_given_clusters"], expected["wind_se_given_clusters"])
    assert fit(files, "--lam", 0.3, "--out", model, "--quiet").exit_code == 0
    assert_one_line(run("coefficients", model, "--errors", "--out", out), ExitCode.BAD_MODEL, "those of a refit")


def test_nodes_that_are_not_in_the_graph_get_the_shared_model(files, tmp_path):
    assert fit(files, "--lam", 0.3, "--shared", "--out", tmp_path / "model", "--quiet").exit_code == 0
    table = rows().with_columns(station=pl.lit("elsewhere"))
    table.write_csv(tmp_path / "new.csv")
    result = run("predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "predicted.csv")
    assert result.exit_code == 0, result.stderr
    assert f"{len(table)} rows of nodes that are not in the graph" in result.stderr
    model = ct.load(tmp_path / "model")
    expected = table.select("humidity", "wind").to_numpy() @ model.shared_coef_ + model.shared_intercept_
    np.testing.assert_allclose(pl.read_csv(tmp_path / "predicted.csv")["prediction"], expected, atol=1e-9)


def test_folds_choose_strengths_and_the_error_says_so(files, tmp_path):
    one = "--features", "humidity", "--no-intercept", "--folds", 2
    result = fit(files, *one, "--refine-strength", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.stderr
    assert FLATTERED in result.stdout
    model = ct.load(tmp_path / "model")
    assert model.refine_strength
    assert np.isin(model.strengths_, [0, *(4.0 ** np.arange(-3, 4)), np.inf]).all()


def test_strengths_are_chosen_by_folds_alone(files, tmp_path):
    result = fit(files, "--refine-strength", "--lam", "aicc", "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.USAGE, "--refine-strength", "--lam aicc")


def test_what_cannot_be_refitted_is_refused(files, tmp_path):
    result = fit(files, "--refit", "clusters", "--penalty", "squared", "--lam", 1, "--out", tmp_path / "model")
    assert result.exit_code != 0
    assert "needs clusters" in result.stderr
    assert not (tmp_path / "model").exists()
