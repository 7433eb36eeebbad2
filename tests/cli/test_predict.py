import numpy as np
import polars as pl
import pytest
from commands import FIT, assert_one_line, edges, parsed, rows, run, with_value, write

import coterie as ct
from coterie.cli.codes import ExitCode

READ = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    data, graph = write(folder)
    assert run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--out", folder / "model").exit_code == 0
    return folder / "model"


@pytest.mark.parametrize("ending", READ)
def test_predictions_are_those_of_the_model(tmp_path, model, ending):
    data, _ = write(tmp_path)
    out = tmp_path / f"predictions.{ending}"
    result = run("predict", model, data, "--out", out)
    assert result.stdout == f"96 predictions written to {out}\n"
    table = READ[ending](out)
    assert table.columns == ["station", "prediction"]
    assert table["station"].to_list() == rows()["station"].to_list()
    expected = ct.load(model).predict(rows().select("station", "humidity", "wind"))
    np.testing.assert_allclose(table["prediction"], expected, rtol=1e-12)


def test_several_files_in_batches(tmp_path, model):
    for day in range(3):
        rows(m=500, seed=day).write_parquet(tmp_path / f"{day}.parquet", row_group_size=700)
    result = run("predict", model, tmp_path / "*.parquet", "--json", "--out", tmp_path / "out" / "p.parquet")
    assert parsed(result)["rows"] == 18_000
    table = pl.concat([rows(m=500, seed=day) for day in range(3)])
    expected = ct.load(model).predict(table.select("station", "humidity", "wind"))
    written = pl.read_parquet(tmp_path / "out" / "p.parquet")
    assert written["station"].equals(table["station"])
    np.testing.assert_allclose(written["prediction"], expected, rtol=1e-12)


@pytest.mark.parametrize("ending", READ)
def test_columns_of_the_data_are_kept_as_they_stand(tmp_path, model, ending):
    data, _ = write(tmp_path, rows=rows().with_columns(zip=pl.lit("01003"), lat=pl.lit(None)))
    run("predict", model, data, "--keep", "--out", tmp_path / "p.csv")
    kept = (tmp_path / "p.csv").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in kept] == data.read_text().splitlines()
    assert kept[0].endswith(",prediction")
    for day in range(2):
        frame = rows(m=500, seed=day)
        {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}[ending](
            tmp_path / f"{day}.{ending}"
        )
    run("predict", model, tmp_path / f"[01].{ending}", "--keep", "--out", tmp_path / f"p.{ending}")
    run("predict", model, tmp_path / f"[01].{ending}", "--out", tmp_path / f"plain.{ending}")
    table, plain = READ[ending](tmp_path / f"p.{ending}"), READ[ending](tmp_path / f"plain.{ending}")
    assert table.drop("prediction").equals(pl.concat([rows(m=500, seed=day) for day in range(2)]))
    assert table["prediction"].equals(plain["prediction"])


def test_a_column_that_is_in_the_way_is_named(tmp_path, model):
    data, _ = write(tmp_path, rows=rows().with_columns(prediction=1))
    result = run("predict", model, data, "--keep", "--out", tmp_path / "p.csv")
    assert_one_line(result, ExitCode.USAGE, "column 'prediction' already")
    assert not (tmp_path / "p.csv").exists()


def test_classes_and_probabilities(tmp_path):
    data, graph = write(tmp_path)
    options = ("--target", "wet", "--features", "humidity,wind", "--loss", "logistic", "--lam", 0.1, "--quiet")
    run("fit", data, "--node", "station", *options, "--graph", graph, "--out", tmp_path / "model")
    run("predict", tmp_path / "model", data, "--quiet", "--out", tmp_path / "p.parquet")
    table = pl.read_parquet(tmp_path / "p.parquet")
    assert table.schema == {"station": pl.String, "prediction": pl.Int64, "probability": pl.Float64}
    assert table["prediction"].to_list() == (table["probability"] > 0.5).cast(int).to_list()
    assert table["probability"].is_between(0, 1).all()


def test_classes_with_names_and_another_column_of_nodes(tmp_path):
    table = rows()
    y = np.where(table["wet"] == 1, "wet", "dry")
    fitted = ct.NetworkedLogisticRegression(edges(), 0.1)
    fitted.fit(table.select("station", "humidity", "wind"), y, groups="station").save(tmp_path / "model")
    data, _ = write(tmp_path, rows=table.rename({"station": "where"}))
    out = tmp_path / "p.csv"
    assert run("predict", tmp_path / "model", data, "--node", "where", "--out", out).exit_code == 0
    assert set(pl.read_csv(out)["prediction"]) == {"wet", "dry"}
    assert_one_line(run("predict", tmp_path / "model", data, "--out", out), ExitCode.MISSING_COLUMN, "'station'")


def test_numbers_as_ids(tmp_path):
    fitted = ct.NetworkedLinearRegression(ct.EmpiricalGraph.from_edges([(0, 1)]), 0.1)
    table = pl.DataFrame({"id": [0, 1, 1], "x": [1.0, 2.0, 3.0]})
    fitted.fit(table, [1.0, 2.0, 4.0], groups="id").save(tmp_path / "model")
    table.write_parquet(tmp_path / "rows.parquet")
    assert run("predict", tmp_path / "model", tmp_path / "rows.parquet", "--out", tmp_path / "p.parquet").exit_code == 0
    assert pl.read_parquet(tmp_path / "p.parquet").schema["id"] == pl.Int64


def test_unknown_nodes_are_named_and_nothing_is_written(tmp_path, model):
    table = with_value(with_value(rows(), "station", 5, "far"), "station", 9, "farther")
    data, _ = write(tmp_path, rows=table)
    result = run("predict", model, data, "--out", tmp_path / "p.parquet")
    assert_one_line(
        result, ExitCode.UNKNOWN_NODE, f"{data}: column 'station', row 5: 'far'", "'far', 'farther'", "12 nodes"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "rows.csv"]


@pytest.mark.parametrize(
    ("table", "code", "words"),
    [
        (with_value(rows(), "wind", 8, None), ExitCode.BAD_VALUE, ["column 'wind', row 8"]),
        (rows().drop("wind"), ExitCode.MISSING_COLUMN, ["no column 'wind'"]),
        (rows()[:0], ExitCode.EMPTY, ["no rows"]),
    ],
)
def test_bad_rows(tmp_path, model, table, code, words):
    data, _ = write(tmp_path, rows=table)
    (tmp_path / "old.csv").write_text("old")
    assert_one_line(run("predict", model, data, "--out", tmp_path / "old.csv"), code, data, *words)
    assert (tmp_path / "old.csv").read_text() == "old"


def test_models_that_cannot_be_used(tmp_path, model):
    data, _ = write(tmp_path)
    out = ("--out", tmp_path / "p.csv")
    assert_one_line(run("predict", tmp_path, data, *out), ExitCode.BAD_MODEL, "is not a model folder")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "model.json").write_text("{")
    assert_one_line(run("predict", damaged, data, *out), ExitCode.BAD_MODEL, "damaged")
    fitted = ct.NetworkedLinearRegression(edges(), 0.1).fit(
        rows().select("wind").to_numpy(), rows()["rain"], rows()["station"]
    )
    fitted.save(tmp_path / "bare")
    assert_one_line(run("predict", tmp_path / "bare", data, *out), ExitCode.BAD_MODEL, "without names")


def test_where_to_write(tmp_path, model):
    data, _ = write(tmp_path)
    assert_one_line(run("predict", model, data, "--out", tmp_path), ExitCode.USAGE, "is a folder")
    assert_one_line(run("predict", model, data, "--out", data), ExitCode.USAGE, "what is read")
    assert_one_line(run("predict", model, tmp_path, "--out", tmp_path / "p.csv"), ExitCode.USAGE, "what is read")
    assert_one_line(run("predict", model, data, "--out", tmp_path / "p.xlsx"), ExitCode.USAGE, ".parquet")


def test_rows_of_nodes_that_no_label_reaches_are_marked(tmp_path):
    far = pl.DataFrame({"from": ["far"], "to": ["away"], "weight": [1.0]})
    data, graph = write(tmp_path, edges=pl.concat([edges(), far]))
    run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--out", tmp_path / "model")
    table = with_value(rows(), "station", 3, "far")
    table.write_csv(tmp_path / "new.csv")
    result = run("predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert "no label reaches the nodes of 1 rows" in result.stderr
    marked = pl.read_csv(tmp_path / "out.csv")
    assert marked["station"].filter(marked["undetermined"]).to_list() == ["far"]
