"""Tables as people have them: other separators and encodings, standard input, words, levels and gaps."""

import gzip

import numpy as np
import polars as pl
import pytest
from commands import FIT, assert_one_line, edges, parsed, rows, run, with_value, write
from typer.testing import CliRunner

import coterie as ct
from coterie.cli import app
from coterie.cli.codes import ExitCode

LAM = ("--lam", "0.01", "--engine", "numpy", "--tol", "1e-4")


def in_german(frame):
    """As spreadsheets write it there."""
    text = frame.write_csv(separator="\t").replace(".", ",").replace("\t", ";")
    return text.replace("station", "Messstation ü").encode("cp1252")


def coefficients(folder):
    model = ct.load(folder)
    return np.hstack([model.coef_, model.intercept_[:, None]])


def test_a_table_from_a_spreadsheet_gives_the_same_model(tmp_path):
    data, graph = write(tmp_path)
    assert run("fit", data, *FIT, "--graph", graph, *LAM, "--out", tmp_path / "plain").exit_code == 0
    data.write_bytes(in_german(rows()))
    graph.write_bytes(in_german(edges()))
    form = ("--separator", ";", "--decimal", ",", "--encoding", "cp1252")
    fit = ("--node", "Messstation ü", *FIT[2:])
    assert run("fit", data, *fit, "--graph", graph, *LAM, *form, "--out", tmp_path / "model").exit_code == 0
    assert np.allclose(coefficients(tmp_path / "model"), coefficients(tmp_path / "plain"))
    graph = tmp_path / "edges.tsv"
    edges().write_csv(graph, separator="\t")  # as `coterie graph` writes them
    assert run("fit", data, *fit, "--graph", graph, *LAM, *form, "--out", tmp_path / "mixed").exit_code == 0
    assert np.allclose(coefficients(tmp_path / "mixed"), coefficients(tmp_path / "plain"))
    out = tmp_path / "out.tsv"
    result = run("predict", tmp_path / "model", data, "--decimal", ",", "--encoding", "cp1252", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert out.read_text().startswith("Messstation ü\tprediction\n")


def test_standard_input(tmp_path):
    data, graph = write(tmp_path)
    given = ("--graph", graph, *LAM, "--json", "--out", tmp_path / "model")
    packed = gzip.compress(data.read_bytes())
    result = CliRunner().invoke(app, list(map(str, ("fit", "-", *FIT, *given))), input=packed)
    assert result.exit_code == 0, result.stderr
    assert parsed(result)["nodes"] == 12
    notes = ct.load(tmp_path / "model").notes_
    assert notes["data"]["files"] == ["standard input"]
    assert notes["data"]["rows"] == 96
    out = tmp_path / "p.csv"
    words = ("predict", tmp_path / "model", "-", "--out", out)
    assert CliRunner().invoke(app, list(map(str, words)), input=data.read_bytes()).exit_code == 0
    assert len(pl.read_csv(out)) == 96


@pytest.mark.parametrize("word", [("--separator", "ab"), ("--decimal", "x"), ("--encoding", "klingon")])
def test_options_that_cannot_be(tmp_path, word):
    data, graph = write(tmp_path)
    assert_one_line(
        run("fit", data, *FIT, "--graph", graph, *LAM, *word, "--out", tmp_path / "model"), ExitCode.USAGE, word[0]
    )


def table_with_levels():
    """Rows whose rain depends on a colour, with gaps in the wind, which is sometimes only said to blow."""
    plain = rows()
    colour = ["red", "green", "blue", "green"] * 24
    shift = pl.Series([{"red": 3.0, "green": 0.0, "blue": -3.0}[one] for one in colour])
    return plain.with_columns(pl.Series("colour", colour), rain=pl.col("rain") + shift)


def test_levels_are_features_in_fit_and_in_predict(tmp_path):
    data, graph = write(tmp_path, rows=table_with_levels())
    fit = ("--node", "station", "--target", "rain", "--features", "humidity,colour,wind", "--one-hot", "colour")
    streamed = run("fit", data, *fit, "--graph", graph, *LAM, "--out", tmp_path / "model")
    assert streamed.exit_code == 0, streamed.stderr
    model = ct.load(tmp_path / "model")
    assert list(model.feature_names_in_) == ["humidity", "colour=green", "colour=red", "wind"]
    assert np.allclose(model.coef_[:, 2], 6, atol=0.7)
    new = table_with_levels().head(5)
    new.write_csv(tmp_path / "new.csv")
    assert run("predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "p.csv").exit_code == 0
    by_hand = new.with_columns(pl.col("colour").eq(one).cast(float).alias(f"colour={one}") for one in ("green", "red"))
    expected = model.predict(by_hand.select("station", *model.feature_names_in_))
    assert np.allclose(pl.read_csv(tmp_path / "p.csv")["prediction"], expected)
    with_value(new, "colour", 3, "pink").write_csv(tmp_path / "new.csv")
    assert_one_line(
        run("predict", tmp_path / "model", tmp_path / "new.csv", "--out", tmp_path / "p.csv"),
        ExitCode.BAD_VALUE,
        *("column 'colour', row 3", "'pink'", "'blue', 'green', 'red'"),
    )


def test_the_fit_in_memory_prepares_alike(tmp_path):
    gaps = with_value(with_value(table_with_levels(), "wind", 3, None), "colour", 4, None)
    data, _ = write(tmp_path, rows=gaps)
    columns = {"node": "station", "target": "rain", "features": ["humidity", "colour", "wind"]}
    made = {"one_hot": ["colour"], "missing": "mean"}
    network = ct.EmpiricalGraph.from_any(edges())
    models = [ct.NetworkedLinearRegression(network, lam=0.01, engine="numpy", tol=1e-8) for _ in range(2)]
    ct.fit_files(models[0], data, **columns, **made)
    from coterie.estimators.from_files import FileFit
    from coterie.io.preparation import prepare
    from coterie.io.rows import Columns

    read = Columns.of(data, "station", "rain", columns["features"])
    prepared, _ = prepare(data, read, ["colour"], "mean")
    said = []
    FileFit(models[1], data, prepared, said.append).fit(needs_rows=True)
    assert models[0].preparation_ == models[1].preparation_ == prepared.made
    assert np.allclose(models[0].coef_, models[1].coef_, atol=1e-4)
    models[0].save(tmp_path / "model")
    assert ct.load(tmp_path / "model").preparation_ == prepared.made
    assert models[0].fit(rows().select("humidity"), rows()["wind"], rows()["station"]).preparation_ is None


def test_gaps_are_filled_and_said(tmp_path):
    data, graph = write(tmp_path, rows=with_value(with_value(rows(), "wind", 3, None), "wind", 50, None))
    refused = run("fit", data, *FIT, "--graph", graph, *LAM, "--out", tmp_path / "model")
    assert_one_line(refused, ExitCode.BAD_VALUE, "column 'wind', row 3", "--missing mean or drop")
    filled = run("fit", data, *FIT, "--graph", graph, *LAM, "--missing", "mean", "--out", tmp_path / "model")
    assert filled.exit_code == 0, filled.stderr
    assert "2 missing values are filled with the means of their columns (wind 2)" in filled.stderr
    done = run("predict", tmp_path / "model", data, "--out", tmp_path / "p.csv")
    assert "2 values are missing; they get the means of the fit" in done.stderr
    assert pl.read_csv(tmp_path / "p.csv")["prediction"].null_count() == 0


def test_rows_with_gaps_are_dropped_and_have_no_prediction(tmp_path):
    data, graph = write(tmp_path, rows=with_value(with_value(rows(), "wind", 3, None), "wind", 50, None))
    dropped = run("fit", data, *FIT, "--graph", graph, *LAM, "--missing", "drop", "--out", tmp_path / "model")
    assert dropped.exit_code == 0, dropped.stderr
    assert "2 of 96 rows are left out, because values are missing (wind 2)" in dropped.stderr
    done = run("predict", tmp_path / "model", data, "--out", tmp_path / "p.csv")
    assert "2 values are missing; 2 rows have no prediction" in done.stderr
    found = pl.read_csv(tmp_path / "p.csv")["prediction"]
    assert [k + 1 for k, gap in enumerate(found.is_null()) if gap] == [3, 50]


@pytest.mark.parametrize("names", [("dry", "wet"), ("no", "yes"), ("False", "True")])
def test_classes_by_name(tmp_path, names):
    named = rows().with_columns(wet=pl.col("wet").replace_strict({0: names[0], 1: names[1]}))
    data, graph = write(tmp_path, rows=with_value(named, "wet", 5, None))
    fit = ("--node", "station", "--target", "wet", "--features", "humidity,wind", "--loss", "logistic")
    result = run("fit", data, *fit, "--graph", graph, *LAM, "--out", tmp_path / "model")
    assert result.exit_code == 0, result.stderr
    assert f"probabilities are those of '{names[1]}'" in result.stderr
    assert run("predict", tmp_path / "model", data, "--out", tmp_path / "p.csv").exit_code == 0
    found = pl.read_csv(tmp_path / "p.csv", schema_overrides={"prediction": pl.String})
    assert (found["prediction"] == names[1]).to_list() == (found["probability"] > 0.5).to_list()
    assert (found["prediction"] == named["wet"]).mean() > 0.7


@pytest.mark.parametrize("names", [("dry", "moist", "wet"), (0, 1, 2)], ids=str)
def test_three_classes(tmp_path, names):
    """By name or by number, with a column of probabilities for each."""
    level = pl.col("humidity").rank("ordinal") * 3 // 97
    named = rows().with_columns(wet=level.replace_strict(dict(enumerate(names))))
    data, graph = write(tmp_path, rows=named)
    fit = ("--node", "station", "--target", "wet", "--features", "humidity,wind", "--loss", "logistic")
    result = run("fit", data, *fit, "--graph", graph, *LAM, "--out", tmp_path / "model")
    assert result.exit_code == 0, result.stderr
    assert "column 'wet' has 3 classes" in result.stderr
    assert run("predict", tmp_path / "model", data, "--out", tmp_path / "p.csv").exit_code == 0
    found = pl.read_csv(tmp_path / "p.csv")
    columns = [f"probability_{name}" for name in names]
    assert found.columns == ["station", "prediction", *columns]
    best = found.select(columns).to_numpy().argmax(axis=1)
    assert found["prediction"].to_list() == [names[k] for k in best]
    assert (found["prediction"] == named["wet"]).mean() > 0.7
    assert run("inspect", tmp_path / "model").exit_code == 0
    assert run("report", tmp_path / "model", "--out", tmp_path / "r.html").exit_code == 0


def test_more_classes_than_anybody_has(tmp_path):
    data, graph = write(tmp_path, rows=rows().with_columns(wet=pl.int_range(96) * 2 + 1000))
    fit = ("--node", "station", "--target", "wet", "--features", "humidity,wind", "--loss", "logistic", "--quiet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coterie.estimators.file_checks.MOST_CLASSES", 20)
        refused = run("fit", data, *fit, "--graph", graph, *LAM, "--out", tmp_path / "model")
    assert_one_line(refused, ExitCode.BAD_LABEL, "column 'wet' has 96 classes", "are these numbers to be predicted?")


def test_numbers_that_come_as_text_are_numbers(tmp_path):
    text = rows().with_columns(pl.col("wet").cast(pl.String))
    _, graph = write(tmp_path)
    data = tmp_path / "rows.parquet"
    fit = ("--node", "station", "--target", "wet", "--features", "humidity,wind", "--loss", "logistic", "--quiet")
    text.write_parquet(data)
    assert run("fit", data, *fit, "--graph", graph, *LAM, "--out", tmp_path / "model").exit_code == 0
    assert ct.load(tmp_path / "model").classes_.tolist() == [0, 1]
    with_value(text, "wet", 7, "0.5").write_parquet(data)
    refused = run("fit", data, *fit, "--graph", graph, *LAM, "--out", tmp_path / "model")
    assert_one_line(refused, ExitCode.BAD_LABEL, "column 'wet', row 7: 0.5 is not a class")
