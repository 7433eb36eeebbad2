"""inspect, graph, resolve and report."""

import json
from importlib import import_module

import numpy as np
import polars as pl
import pytest
from commands import FIT, assert_one_line, edges, parsed, rows, run, with_value, write

import coterie as ct
from coterie.cli.codes import ExitCode


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    data, graph = write(folder)
    run("fit", data, *FIT, "--graph", graph, "--lam", 1, "--out", folder / "model")
    return folder / "model"


def test_inspect_says_what_it_is_and_how_good(model):
    lines = run("inspect", model).stdout.splitlines()
    assert lines[0].startswith("Error on held-out nodes")
    assert any(line.startswith(("Within", "Equal")) for line in lines)
    assert any(line.startswith("Model: networked linear regression, lambda = 1;") for line in lines)
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["cluster", "nodes", "labelled", "humidity", "wind", "intercept"]
    assert sum(int(line.split()[1]) for line in table[1:]) == 12


def test_inspect_for_machines(model):
    found = parsed(run("inspect", model, "--json"))
    assert found["estimator"] == "NetworkedLinearRegression"
    assert found["notes"]["data"]["rows"] == 96


def test_inspect_lists_nodes(model):
    fitted = ct.load(model)
    lines = run("inspect", model, "--nodes").stdout.splitlines()
    table = lines[lines.index("") + 1 :]
    assert table[0].startswith("node  cluster  labelled rows  held out error  training error  humidity")
    assert [line.split()[0] for line in table[1:]] == fitted.nodes_.tolist()
    found = parsed(run("inspect", model, "--nodes", "--json"))["node_models"]
    assert [node["node"] for node in found] == fitted.nodes_.tolist()
    assert [node["labelled_rows"] for node in found] == fitted.n_labelled_.tolist()
    unlabelled = found[fitted.nodes_.tolist().index("s5")]
    assert unlabelled["held_out_error"] is unlabelled["training_error"] is None
    assert found[0]["held_out_error"] == fitted.held_out_.node_errors[0]
    assert found[0]["training_error"] == pytest.approx(np.sqrt(fitted.node_errors_[0]))
    assert found[0]["coefficients"]["wind"] == fitted.coef_[0, 1]


def test_what_is_cut_is_counted_and_json_has_all_of_it(tmp_path):
    data, graph = write(tmp_path)
    run("fit", data, *FIT, "--graph", graph, "--lam", 0, "--no-baselines", "--out", tmp_path / "m")
    fitted = ct.load(tmp_path / "m")
    count = int(fitted.clusters_.max()) + 1
    assert count > 10  # without any coupling, no two labelled nodes share a model
    last = run("inspect", tmp_path / "m").stdout.splitlines()[-1]
    assert last.startswith(f"... {count - 10} more cluster")
    assert "coterie coefficients" in last
    found = parsed(run("inspect", tmp_path / "m", "--json"))["cluster_models"]
    assert len(found) == count
    assert sorted(name for cluster in found for name in cluster["nodes"]) == sorted(fitted.nodes_)
    for cluster in found:
        k = fitted.nodes_.tolist().index(cluster["nodes"][0])
        assert (cluster["cluster"], cluster["coefficients"]["humidity"]) == (fitted.clusters_[k], fitted.coef_[k, 0])


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_coefficients_of_all_nodes(model, tmp_path, ending):
    out, fitted = tmp_path / f"all.{ending}", ct.load(model)
    assert run("coefficients", model, "--out", out).stdout == f"The coefficients of 12 nodes written to {out}\n"
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}[ending]
    table = read(out)
    assert table.columns == ["node", "humidity", "wind", "intercept", "cluster"]
    assert table["node"].to_list() == fitted.nodes_.tolist()
    np.testing.assert_allclose(table.select("humidity", "wind").to_numpy(), fitted.coef_)
    assert_one_line(run("coefficients", model, "--out", tmp_path / "all.txt"), ExitCode.USAGE, "ends in .parquet")


def test_inspect_what_is_not_a_model(tmp_path):
    assert_one_line(run("inspect", tmp_path / "none"), ExitCode.BAD_MODEL, "is not a model folder")


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_graph_writes_edges_that_fit_reads(tmp_path, ending):
    data, _ = write(tmp_path)
    out = tmp_path / f"near.{ending}"
    result = run("graph", data, "--node", "station", "--knn", "lat,lon:3", "--out", out)
    expected = rows().select("station", "lat", "lon").unique().sort("station")
    graph = ct.knn_graph(expected.select("lat", "lon"), 3, ids=expected["station"].to_list())
    assert result.stdout == f"{graph.n_edges} edges between 12 nodes written to {out}\n"
    common = ("fit", data, *FIT, "--lam", 0.1, "--json", "--out", tmp_path / "m")
    by_file = parsed(run(*common, "--graph", out))
    at_once = parsed(run(*common, "--knn", "lat,lon:3"))
    assert by_file["edges"] == graph.n_edges
    assert by_file["objective"] == pytest.approx(at_once["objective"], rel=1e-5)


def test_graph_on_a_line(tmp_path):
    data, _ = write(tmp_path)
    found = parsed(run("graph", data, "--node", "station", "--knn", "lat:2", "--json", "--out", tmp_path / "e.csv"))
    assert found["nodes"] == 12


def test_bad_coordinates(tmp_path):
    data, _ = write(tmp_path, rows=rows().with_columns(lat=pl.col("lat") + 100))
    common = ("graph", data, "--node", "station", "--out", tmp_path / "e.csv")
    assert_one_line(run(*common, "--knn", "lat,lon:3"), ExitCode.BAD_GRAPH, data, "latitude 1")
    assert_one_line(run(*common, "--knn", "lat,lon:12"), ExitCode.BAD_GRAPH, "between 1 and 11")
    assert_one_line(run(*common, "--knn", "lat,east:3"), ExitCode.MISSING_COLUMN, "no column 'east'")
    assert_one_line(run(*common, "--knn", "3"), ExitCode.USAGE, "such as lat,lon:5")
    assert not (tmp_path / "e.csv").exists()


def test_resolve_the_clusters_of_a_model(model):
    lines = run("resolve", model).stdout.splitlines()
    fitted = ct.load(model)
    found = ct.resolvability(fitted.graph_, fitted.n_labelled_ > 0, fitted.clusters_)
    assert lines[0].split()[:3] == ["cluster", "nodes", "labelled"]
    assert lines[-1].startswith(f"{sum(c.resolved for c in found)} of {len(found)} clusters resolved.")
    assert parsed(run("resolve", model, "--json"))["clusters"]["margin"] == pytest.approx([c.margin for c in found])


def test_resolve_counts_what_it_leaves_out(model, monkeypatch):
    clusters = int(ct.load(model).clusters_.max()) + 1
    assert "more cluster" not in run("resolve", model).stdout
    monkeypatch.setattr(import_module("coterie.cli.resolve"), "MOST_ROWS", clusters - 1)
    assert "... 1 more cluster; --json has all of them." in run("resolve", model).stdout


def test_resolve_clusters_that_a_table_names(tmp_path):
    few = pl.when(pl.col("station").is_in(["n0", "s3"])).then(pl.col("rain"))
    table = rows().with_columns(valley=pl.col("station").str.slice(0, 1), rain=few)
    data, graph = write(tmp_path, rows=table)
    common = ("resolve", data, "--graph", graph, "--node", "station", "--cluster", "valley", "--target", "rain")
    found = parsed(run(*common, "--json"))
    partition = [name[0] for name in sorted(set(table["station"]))]
    expected = ct.resolvability(ct.EmpiricalGraph.from_any(edges()), ["n0", "s3"], partition)
    assert found["clusters"]["margin"] == [c.margin for c in expected]
    assert found["clusters"]["n_labelled"] == [1, 1]
    assert run(*common).exit_code == 0


@pytest.mark.parametrize(
    ("column", "value", "code", "words"),
    [
        ("valley", None, ExitCode.BAD_VALUE, "column 'valley', row 6"),
        ("station", None, ExitCode.BAD_VALUE, "column 'station', row 6"),
        ("station", "far", ExitCode.UNKNOWN_NODE, "column 'station', row 6: 'far'"),
        ("valley", "x", ExitCode.DUPLICATE, "column 'valley', row "),
    ],
)
def test_bad_clusters(tmp_path, column, value, code, words):
    table = with_value(rows().with_columns(valley=pl.col("station").str.slice(0, 1)), column, 6, value)
    data, graph = write(tmp_path, rows=table)
    common = ("resolve", data, "--graph", graph, "--node", "station", "--cluster", "valley")
    assert_one_line(run(*common, "--target", "rain"), code, words)
    assert_one_line(run(*common), ExitCode.USAGE, "--target too")


def test_clusters_of_some_nodes_only(tmp_path):
    table = rows().with_columns(valley=pl.col("station").str.slice(0, 1)).filter(pl.col("station") != "n4")
    data, graph = write(tmp_path, rows=table)
    common = ("resolve", data, "--graph", graph, "--node", "station", "--cluster", "valley", "--target", "rain")
    assert_one_line(run(*common), ExitCode.BAD_DATA, data, "'n4'")


def test_report_of_a_model(tmp_path, model):
    result = run("report", model, "--out", tmp_path / "report.html")
    assert result.stdout == f"Report written to {tmp_path / 'report.html'}\n"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    notes = json.loads((model / "model.json").read_text(encoding="utf-8"))["notes"]
    assert notes["data"]["sha256"] in page
    assert "coterie fit" in page
    assert_one_line(run("report", model, "--out", tmp_path), ExitCode.USAGE, "is a folder")


@pytest.mark.slow
def test_all_that_fit_notes_can_be_shown(tmp_path):
    data, _ = write(tmp_path)
    options = ("--knn", "lat,lon:3", "--baselines", "--folds", 4, "--out", tmp_path / "m")
    result = run("fit", data, *FIT, *options)
    assert result.exit_code == 0, result.stderr
    assert run("report", tmp_path / "m", "--out", tmp_path / "r.html").exit_code == 0
    assert np.isfinite(ct.load(tmp_path / "m").lam_)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for word in ("local only", "margin", "cross-validation over nodes"):
        assert word in page.lower()
