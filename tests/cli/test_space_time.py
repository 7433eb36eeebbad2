"""Places at times from the command line."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from commands import assert_one_line, parsed, run

import coterie as ct
from coterie.io.errors import BadValueError
from coterie.io.times import WRITTEN, Month, Quarter, Times, Week

PLACES = ["s0", "s1", "s2", "s3"]
MONTHS = ["2025-01", "2025-02", "2025-03", "2025-04", "2025-06"]
FIT = ("--node", "station,month", "--time", "month", "--target", "y", "--features", "x")


@pytest.fixture
def files(tmp_path):
    """A table of stations and months, and the edges of the stations."""
    rng = np.random.default_rng(0)
    pairs = [(place, month) for place in PLACES for month in MONTHS for _ in range(4)]
    x, noise = rng.standard_normal((2, len(pairs)))
    slope = np.array([(1 if place < "s2" else -1) * (2 if month > "2025-03" else 1) for place, month in pairs])
    table = pl.DataFrame(pairs, schema=["station", "month"], orient="row")
    table = table.with_columns(x=pl.Series(x), y=pl.Series(slope * x + 0.1 * noise))
    table.write_csv(tmp_path / "rows.csv")
    pl.DataFrame({"from": PLACES[:-1], "to": PLACES[1:]}).write_csv(tmp_path / "space.csv")
    return tmp_path


def fit(files, *options):
    base = ("fit", files / "rows.csv", *FIT, "--graph", files / "space.csv", "--engine", "numpy")
    return run(*base, "--out", files / "model", *options)


def test_a_fit_from_files_is_that_from_python(files):
    result = fit(files, "--lam", 0.05, "--time-strength", 0.5, "--json")
    assert result.exit_code == 0, result.stderr
    assert parsed(result)["time_strength"] == 0.5
    table = pl.read_csv(files / "rows.csv")
    space = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=PLACES)
    time = ct.time_graph(MONTHS)
    model = ct.NetworkedLinearRegression((space, time), lam=0.05, time_strength=0.5, engine="numpy")
    model.fit(table.select("station", "month", "x"), table["y"], groups=["station", "month"])
    loaded = ct.load(files / "model")
    np.testing.assert_allclose(loaded.coef_, model.coef_, atol=1e-9)
    np.testing.assert_allclose(loaded.predict(table.drop("y")), model.predict(table.drop("y")), atol=1e-9)
    assert run("predict", files / "model", files / "rows.csv", "--out", files / "out.csv").exit_code == 0
    assert pl.read_csv(files / "out.csv")["month"].to_list() == table["month"].to_list()  # as it was written


def test_strengths_are_chosen_and_the_model_is_described(files):
    result = fit(files, "--over", "times", "--folds", 2, "--no-baselines")
    assert result.exit_code == 0, result.stderr
    assert "held-out times" in result.stdout
    assert "4 places at 5 times: 20 nodes, 31 edges" in result.stdout
    model = ct.load(files / "model")
    assert model.time_strength_ in (0.1, 1.0, 10.0)  # all edges but one weigh 1
    assert f"{model.time_strength_:g} times that in time" in result.stdout
    listed = run("inspect", files / "model", "--nodes")
    assert "s1, 2025-06 " in listed.stdout
    found = parsed(run("inspect", files / "model", "--nodes", "--json"))
    assert found["node_models"][-1]["node"] == ["s3", "2025-06"]
    assert run("coefficients", files / "model", "--out", files / "all.csv").exit_code == 0
    assert pl.read_csv(files / "all.csv").columns == ["station", "month", "x", "intercept", "cluster"]


def test_dates_of_nodes_to_label_next_are_written(files):
    table = pl.read_csv(files / "rows.csv")
    table.filter((pl.col("station") == "s0") | (pl.col("month") == "2025-01")).write_csv(files / "rows.csv")
    result = fit(files, "--lam", 0.5, "--time-strength", 1)
    assert result.exit_code == 0, result.stderr
    notes = ct.load(files / "model").notes_["resolvability"]
    assert "s3, 2025-02" in notes["next_label"]
    found = parsed(run("resolve", files / "model", "--json"))
    assert ["s3", "2025-02"] in found["clusters"]["next_label"]
    assert "Label next: s3, 2025-02." in run("resolve", files / "model").stdout


def test_predictions_for_the_next_times(files):
    assert fit(files, "--lam", 0.05).exit_code == 0
    new = pl.DataFrame(
        {"station": ["s0", "s3", "s3"], "month": ["2025-06", "2025-07", "2026-01"], "x": [1.0, 1.0, 2.0]}
    )
    new.write_csv(files / "new.csv")
    result = run("predict", files / "model", files / "new.csv", "--out", files / "out.csv", "--keep")
    assert result.exit_code == 0, result.stderr
    assert "2 predictions for times after 2025-06," in result.stderr
    out = pl.read_csv(files / "out.csv")
    assert out.columns == ["station", "month", "x", "prediction"]
    assert out["prediction"].to_numpy() == pytest.approx([2, -2, -4], abs=0.3)


@pytest.mark.parametrize(
    ("station", "month", "says"),
    [
        ("s9", "2025-01", ("'s9' is not a node", "4 places")),
        (
            "s1",
            "2025-05",
            ("row 1: '2025-05' is not among the 5 times of the model, '2025-01'", "nor after the last"),
        ),
        ("s1", "May", ("row 1", "no month like the others")),
    ],
)
def test_what_cannot_be_predicted_is_named(files, station, month, says):
    assert fit(files, "--lam", 0.05).exit_code == 0
    pl.DataFrame({"station": [station], "month": [month], "x": [1.0]}).write_csv(files / "new.csv")
    result = run("predict", files / "model", files / "new.csv", "--out", files / "out.csv")
    assert_one_line(result, result.exit_code, *says)
    assert result.exit_code != 0
    assert not (files / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--node", "station,month"), "say with --time"),
        (("--node", "station", "--over", "times"), "--over times is for places at times"),
        (("--node", "station", "--time-strength", 2), "--time-strength is for places at times"),
        (("--node", "month", "--time", "month"), "give two columns"),
        (("--node", "station", "--time", "month", "--time-strength", 0), "give a positive number"),
        (("--node", "station", "--time", "month", "--time-strength", "inf"), "give a positive number"),
        (("--node", "station", "--time", "month", "--shared"), "--shared is for nodes of one graph"),
    ],
)
def test_options_that_do_not_fit_together(files, options, says):
    base = ("fit", files / "rows.csv", "--target", "y", "--features", "x", "--graph", files / "space.csv")
    result = run(*base, *options, "--lam", 0.1, "--out", files / "model")
    assert_one_line(result, result.exit_code, says)
    assert not (files / "model").exists()


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (["3", "1", "2"], int, 1),
        (["3", "1.5", "2"], float, 1.5),
        (["2025-07-01", "2024-07-01"], date, date(2024, 7, 1)),
        (["2025-07", "2024-07"], Month, "2024-07"),
        (["2025-Q1", "2024-Q3"], Quarter, "2024-Q3"),
        (["2025-W01", "2024-W52"], Week, "2024-W52"),
        (["2025-07", "2024-07-15"], date, date(2024, 7, 15)),
        (["2025-07-01 12:00", "2025-07-01T06:30:00"], datetime, datetime(2025, 7, 1, 6, 30)),
    ],
)
def test_times_in_text(tmp_path, values, kind, first):
    (tmp_path / "t.csv").write_text("t\n" + "\n".join(values) + "\n")
    times, found = Times.found(tmp_path / "t.csv", "t")
    assert times == Times("t", kind) == Times.like("t", found)
    assert found[0] == first
    assert isinstance(kind(found[0]) if kind in WRITTEN else found[0], kind)


@pytest.mark.parametrize(
    "column", [[datetime(2025, 1, 1), datetime(2025, 1, 2)], [1, 2], [date(2025, 1, 1)], [0.5, 1.0]]
)
def test_times_in_parquet(tmp_path, column):
    pl.DataFrame({"t": column}).write_parquet(tmp_path / "t.parquet")
    times, found = Times.found(tmp_path / "t.parquet", "t")
    assert found == [value.date() if isinstance(value, datetime) else value for value in column] or found == column
    assert pl.read_parquet(tmp_path / "t.parquet").select(times.values)["t"].to_list() == found


def test_moments_with_a_zone_are_those_of_utc(tmp_path):
    (tmp_path / "t.csv").write_text("t\n2025-07-01T12:00:00Z\n2025-07-01 12:30:00.500+02:00\n")
    times, found = Times.found(tmp_path / "t.csv", "t")
    assert found == [datetime(2025, 7, 1, 10, 30, 0, 500_000, UTC), datetime(2025, 7, 1, 12, tzinfo=UTC)]
    assert times == Times.like("t", found)
    assert pl.read_csv(tmp_path / "t.csv").select(times.values)["t"].to_list() == found[::-1]
    (tmp_path / "t.csv").write_text("t\n2025-07-01T12:00:00Z\n2025-07-01 12:30\n")
    with pytest.raises(BadValueError, match=r"is no time like the others"):
        Times.found(tmp_path / "t.csv", "t")


def test_a_model_of_moments_with_a_zone(files):
    table = pl.read_csv(files / "rows.csv")
    table.with_columns(pl.col("month") + "-01T12:00:00+02:00").write_csv(files / "rows.csv")
    assert fit(files, "--lam", 0.05).exit_code == 0
    assert ct.load(files / "model").nodes_[0] == ("s0", datetime(2025, 1, 1, 10, tzinfo=UTC))
    new = {"station": ["s0", "s3"], "month": ["2025-06-01T10:00:00Z", "2025-07-01T12:00:00Z"], "x": [1.0, 1.0]}
    pl.DataFrame(new).write_csv(files / "new.csv")
    result = run("predict", files / "model", files / "new.csv", "--out", files / "out.csv")
    assert result.exit_code == 0, result.stderr
    assert "1 prediction for times after 2025-06-01 10:00" in result.stderr
    assert run("report", files / "model", "--out", files / "report.html").exit_code == 0


@pytest.mark.parametrize(
    ("times", "code", "says"),
    [
        (
            [datetime(2025, 1, day, tzinfo=timezone(timedelta(hours=2))) for day in (1, 2)],
            0,
            "1 prediction for times after",
        ),
        (np.array(["2025-01", "2025-02"], dtype="datetime64[M]"), 7, "the times of the model are datetime64"),
    ],
)
def test_times_of_a_model_that_was_fitted_in_python(tmp_path, times, code, says):
    graph = (ct.EmpiricalGraph.from_edges([(0, 1)], ids=["a", "b"]), ct.time_graph(times))
    table = pl.DataFrame({"station": ["a", "a"], "x": [1.0, 2.0]})
    model = ct.NetworkedLinearRegression(graph, lam=0.1, engine="numpy", node=["station", "moment"])
    model.fit(table.with_columns(moment=pl.Series(list(times), dtype=pl.Object)), [1.0, 2.0]).save(tmp_path / "model")
    table.with_columns(moment=pl.lit("2025-07-01T00:00:00Z")).head(1).write_csv(tmp_path / "new.csv")
    result = run("predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert result.exit_code == code, result.stderr
    assert says in result.stderr


def test_what_is_no_time_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("t\n1\n2\nJuly\n")
    with pytest.raises(BadValueError, match=r"row 3.*'July' is no time"):
        Times.found(tmp_path / "t.csv", "t")


def test_an_empty_time_is_named_with_its_row(files):
    text = (files / "rows.csv").read_text().splitlines()
    text[3] = text[3].replace("2025-01", "")
    (files / "rows.csv").write_text("\n".join(text) + "\n")
    result = fit(files, "--lam", 0.05)
    assert_one_line(result, result.exit_code, "'month', row 3", "there is no time")


def test_files_from_python(files):
    space = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2), (2, 3)], ids=PLACES)
    graph = (space, ct.time_graph([date(2025, month, 1) for month in (1, 2, 3, 4, 6)]))
    model = ct.NetworkedLinearRegression(graph, lam=0.05, engine="numpy")
    ct.fit_files(model, files / "rows.csv", node=["station", "month"], target="y", features=["x"])
    assert model.n_labelled_.tolist() == [4] * 20
    with pytest.raises(ValueError, match="name one column, or those of places and times"):
        ct.fit_files(model, files / "rows.csv", node="station", target="y", features=["x"])
