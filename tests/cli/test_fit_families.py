"""Counts, outliers and quantiles from the command line."""

import numpy as np
import polars as pl
import pytest
from commands import FIT, assert_one_line, edges, parsed, rows, run, with_value, write

import coterie as ct
from coterie.cli.codes import ExitCode

COUNTS = ("--node", "station", "--target", "storms", "--features", "humidity,wind", "--loss", "poisson", "--lam", 0.1)


def counted() -> pl.DataFrame:
    """Rows with hours of observation and storms in them; s5 has no counts."""
    table, rng = rows(), np.random.default_rng(1)
    hours = rng.uniform(1, 20, len(table))
    storms = rng.poisson(0.3 * hours * np.exp(0.3 * table["humidity"].to_numpy())).tolist()
    known = [None if station == "s5" else n for station, n in zip(table["station"], storms, strict=True)]
    return table.with_columns(hours=hours, log_hours=np.log(hours), storms=pl.Series(known))


@pytest.fixture
def files(tmp_path):
    return write(tmp_path, rows=counted())


def fit(files, folder, *options):
    data, graph = files
    return run("fit", data, *options, "--graph", graph, "--out", folder, "--quiet", "--json")


def test_counts_with_an_exposure(files, tmp_path):
    data, _ = files
    result = fit(files, tmp_path / "model", *COUNTS, "--exposure", "hours", "--no-baselines")
    assert result.exit_code == 0, result.stderr
    said = parsed(result)
    assert said["estimator"] == "NetworkedPoissonRegression"
    assert said["held_out"]["measure"] == "mean deviance"
    assert said["exposure"] == "hours"
    table = counted()
    expected = ct.NetworkedPoissonRegression(edges(), 0.1).fit(
        table.select("station", "humidity", "wind", "hours"), table["storms"], groups="station", exposure="hours"
    )
    fitted = ct.load(tmp_path / "model")
    assert fitted.offset_ == ("exposure", "hours")
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-6)
    for column in (("--exposure", "hours"), ("--offset", "log_hours"), ()):
        assert run("predict", tmp_path / "model", data, *column, "--quiet", "--out", tmp_path / "p.csv").exit_code == 0
        found = pl.read_csv(tmp_path / "p.csv")["prediction"].to_numpy()
        wanted = expected.predict(table.select("station", "humidity", "wind", "hours"))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    said = run("inspect", tmp_path / "model").stdout
    assert "mean deviance" in said
    assert "networked poisson regression" in said.lower()


@pytest.mark.parametrize(
    ("column", "row", "value", "code", "words"),
    [
        ("storms", 7, -3.0, ExitCode.BAD_LABEL, "column 'storms', row 7: -3.0 is not a count"),
        ("hours", 9, 0.0, ExitCode.BAD_VALUE, "column 'hours', row 9: 0.0 is not an exposure"),
        ("hours", 9, None, ExitCode.BAD_VALUE, "column 'hours', row 9 (node"),
        ("hours", 9, "long", ExitCode.BAD_VALUE, "'long' is not a number; an offset or an exposure is a number"),
    ],
)
def test_bad_cells_are_named(tmp_path, column, row, value, code, words):
    table = counted()
    table = table.with_columns(pl.col(column).cast(pl.String)) if isinstance(value, str) else table
    data, graph = write(tmp_path, rows=with_value(table, column, row, value))
    result = run("fit", data, *COUNTS, "--exposure", "hours", "--graph", graph, "--out", tmp_path / "m", "--quiet")
    assert_one_line(result, code, words)
    assert not (tmp_path / "m").exists()


def test_a_missing_exposure_is_never_filled(tmp_path):
    data, graph = write(tmp_path, rows=with_value(counted(), "hours", 5, None))
    fill = ("--missing", "mean", "--exposure", "hours", "--graph", graph, "--out", tmp_path / "m", "--quiet")
    assert_one_line(run("fit", data, *COUNTS, *fill), ExitCode.BAD_VALUE, "column 'hours', row 5", "in every row")


def test_a_prediction_needs_the_exposure_again(files, tmp_path):
    fit(files, tmp_path / "model", *COUNTS, "--exposure", "hours", "--no-baselines")
    data, _ = write(tmp_path / "new", rows=counted().drop("hours"))
    out = ("--out", tmp_path / "p.csv")
    assert_one_line(run("predict", tmp_path / "model", data, *out), ExitCode.MISSING_COLUMN, "'hours'")
    bad, _ = write(tmp_path / "bad", rows=with_value(counted(), "hours", 4, -1.0))
    result = run("predict", tmp_path / "model", bad, *out, "--quiet")
    assert_one_line(result, ExitCode.BAD_VALUE, "column 'hours', row 4: -1.0 is not an exposure")
    assert not (tmp_path / "p.csv").exists()


def test_huber_and_quantile(files, tmp_path):
    said = parsed(fit(files, tmp_path / "h", *FIT, "--loss", "huber", "--delta", 0.5, "--lam", 0.1, "--no-baselines"))
    assert (said["held_out"]["measure"], said["delta"]) == ("mean absolute error", 0.5)
    said = parsed(
        fit(files, tmp_path / "q", *FIT, "--loss", "quantile", "--quantile", 0.8, "--lam", 0.1, "--no-baselines")
    )
    assert (said["held_out"]["measure"], said["quantile"]) == ("pinball loss", 0.8)
    assert 0.5 < said["held_out"]["coverage"] <= 1
    assert "% of labels below" in run("inspect", tmp_path / "q").stdout
    assert ct.load(tmp_path / "q").quantile == 0.8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--delta", 1), "--delta belongs to --loss huber, not to squared"),
        (("--exposure", "hours"), "--exposure belongs to --loss poisson, not to squared"),
        (("--loss", "lasso", "--l1", 1), "--l1 belongs to --loss squared, logistic"),
        (("--loss", "quantile", "--lam", "aicc"), "--lam aicc needs a likelihood, which --loss quantile does not have"),
        (("--loss", "quantile", "--refit", "clusters"), "--refit clusters is for losses without kinks"),
        (("--penalty", "squared", "--refit", "clusters"), "needs clusters, which --penalty squared does not make"),
        (("--loss", "huber", "--delta", 0), "--delta 0.0: give a number above 0"),
        (("--loss", "quantile", "--quantile", 1), "--quantile 1.0: give a number between 0 and 1"),
        (("--loss", "poisson", "--offset", "wind", "--exposure", "hours"), "not both"),
    ],
)
def test_options_of_other_losses_are_refused(files, tmp_path, options, words):
    data, graph = files
    result = run("fit", data, *FIT, *options, "--graph", graph, "--out", tmp_path / "model", "--quiet")
    assert_one_line(result, ExitCode.USAGE, words)


def test_fit_files_takes_an_exposure(files):
    data, _ = files
    model = ct.NetworkedPoissonRegression(edges(), 0.1, engine="numpy")
    ct.fit_files(model, data, "station", "storms", ["humidity", "wind"], exposure="hours")
    assert model.offset_ == ("exposure", "hours")
    with pytest.raises(TypeError, match="NetworkedLasso takes no offset"):
        ct.fit_files(ct.NetworkedLasso(edges()), data, "station", "storms", offset="hours")
