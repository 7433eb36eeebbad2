import numpy as np
import polars as pl
import pytest
from commands import FIT, STATIONS, assert_one_line, edges, parsed, rows, run, with_value, write

import coterie as ct
from coterie.cli.codes import ExitCode
from coterie.engines.gpu import device


def reference(model, target="rain"):
    """The model fitted from Python, from rows in memory."""
    table = rows()
    return model.fit(table.select("station", "humidity", "wind"), table[target], groups="station")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "model"),
    [
        (("--lam", 0.1), ct.NetworkedLinearRegression(edges(), 0.1)),
        (
            ("--lam", 0.1, "--ridge", 0.2, "--l1", 0.01, "--positive"),
            ct.NetworkedLinearRegression(edges(), 0.1, ridge=0.2, l1=0.01, positive=True),
        ),
        (
            ("--lam", 0.1, "--lower", "wind=0.1", "--lower", "humidity=-1", "--upper", 0.5),
            ct.NetworkedLinearRegression(edges(), 0.1, lower={"wind": 0.1, "humidity": -1.0}, upper=0.5),
        ),
        (
            ("--lam", 0.1, "--ridge", 0.2, "--no-intercept"),
            ct.NetworkedLinearRegression(edges(), 0.1, ridge=0.2, fit_intercept=False),
        ),
        (("--lam", 0.1, "--penalty", "l2"), ct.NetworkedLinearRegression(edges(), 0.1, penalty="l2")),
        (("--lam", 0.05, "--loss", "lasso", "--alpha", 0.3), ct.NetworkedLasso(edges(), 0.05, alpha=0.3)),
        (("--lam", "cv", "--folds", 3), ct.NetworkedLinearRegressionCV(edges(), cv=3, over="nodes", random_state=0)),
        (
            ("--lam", "cv", "--over", "rows", "--seed", 2),
            ct.NetworkedLinearRegressionCV(edges(), over="rows", random_state=2),
        ),
        (("--loss", "lasso"), ct.NetworkedLassoCV(edges(), random_state=0)),
    ],
)
@pytest.mark.usefixtures("compiled")
def test_a_fit_from_files_is_the_fit_from_rows(tmp_path, options, model):
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--tol", 1e-9, *options, "--out", tmp_path / "model")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Error on held-out ")
    assert "\nWithin " in result.stdout
    assert result.stdout.endswith(f"Model written to {tmp_path / 'model'}\n")
    fitted, expected = ct.load(tmp_path / "model"), reference(model.set_params(tol=1e-9))
    assert type(fitted) is type(expected)
    assert fitted.lam_ == pytest.approx(expected.lam_)
    assert fitted.solution_.objective == pytest.approx(expected.solution_.objective, rel=1e-8)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-5)
    np.testing.assert_allclose(fitted.node_errors_, expected.node_errors_, rtol=1e-4)
    np.testing.assert_array_equal(fitted.n_labelled_, expected.n_labelled_)
    assert fitted.feature_names_in_.tolist() == ["humidity", "wind"]


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--lower", "rian=0"), ExitCode.MISSING_COLUMN, "there is no feature 'rian'; there are humidity, wind"),
        (("--lower", "wind=low"), ExitCode.USAGE, "--lower wind=low: give column=number, as age=0"),
        (("--upper", "wind=1", "--upper", "wind=2"), ExitCode.USAGE, "wind has a bound already"),
        (("--upper", "1", "--upper", "wind=2"), ExitCode.USAGE, "one number is for all features"),
        (("--lower", "0", "--refit", "clusters"), ExitCode.USAGE, "would not keep coefficients inside their bounds"),
        (("--lower", "1", "--upper", "0"), ExitCode.BAD_DATA, "lower is 1, but upper is 0 for feature humidity"),
    ],
)
def test_bounds_that_make_no_sense(tmp_path, options, code, told):
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, *options, "--out", tmp_path / "model")
    assert_one_line(result, code, told)


def test_logistic_regression_says_what_memory_it_takes(tmp_path):
    data, graph = write(tmp_path)
    arguments = ("--node", "station", "--target", "wet", "--features", "humidity,wind", "--loss", "logistic")
    result = run("fit", data, *arguments, "--graph", graph, "--lam", 0.1, "--out", tmp_path / "model")
    assert result.exit_code == 0
    assert "rows in memory, about 0.1 MB" in result.stderr
    model = ct.load(tmp_path / "model")
    assert model.classes_.tolist() == [0, 1]
    expected = reference(ct.NetworkedLogisticRegression(edges(), 0.1), "wet")
    assert model.solution_.objective == pytest.approx(expected.solution_.objective, rel=1e-5)


def test_wide_tables_are_read_as_rows(tmp_path, monkeypatch):
    """Moments of 3,000 features take 0.1 GB per node; rows that are fewer than features take less."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3000))
    table = {f"x{k}": X[:, k] for k in range(X.shape[1])}
    pl.DataFrame(table | {"node": np.repeat(["a", "b"], 6), "y": X[:, 0]}).write_parquet(tmp_path / "rows.parquet")
    pl.DataFrame({"i": ["a"], "j": ["b"]}).write_csv(tmp_path / "edges.csv")
    read = []

    def fit(self, X, y, groups):
        read.append(X.shape)
        raise ValueError("enough is known")

    monkeypatch.setattr(ct.NetworkedLasso, "fit", fit)
    files = (tmp_path / "rows.parquet", "--graph", tmp_path / "edges.csv", "--out", tmp_path / "model")
    result = run("fit", *files, "--node", "node", "--target", "y", "--loss", "lasso", "--lam", 0.1, "--quiet")
    assert_one_line(result, ExitCode.BAD_DATA, "enough is known")
    assert read == [(12, 3001)]


def test_too_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("coterie.io.memory.memory_available", lambda: 1000)
    data, graph = write(tmp_path)
    options = ("--over", "rows", "--quiet", "--out", tmp_path / "model")
    result = run("fit", data, *FIT, "--graph", graph, *options)
    assert_one_line(result, ExitCode.TOO_LARGE, "take fewer columns or edges")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_folders_of_other_kinds_and_patterns(tmp_path, ending):
    _, graph = write(tmp_path)
    table = rows()
    (tmp_path / "days").mkdir()
    for day, part in enumerate((table[:40], table[40:])):
        file = tmp_path / "days" / f"{day}.{ending}"
        part.write_parquet(file) if ending == "parquet" else part.write_ipc(file)
    for data in (tmp_path / "days", tmp_path / "days" / f"*.{ending}"):
        result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--json", "--out", tmp_path / "model")
        assert parsed(result)["labelled_rows"] == 88
    notes = ct.load(tmp_path / "model").notes_
    assert [file[-len(ending) - 2 :] for file in notes["data"]["files"]] == [f"0.{ending}", f"1.{ending}"]
    assert notes["data"]["rows"] == 96


@pytest.mark.slow
def test_what_counts_alike_and_how_sure_the_choice_is(tmp_path):
    data, graph = write(tmp_path, rows=rows().filter((pl.col("station") != "n0") | (pl.col("humidity") > 0.5)))
    common = ("fit", data, *FIT, "--graph", graph, "--folds", 2, "--repeats", 2, "--out", tmp_path / "model")
    found = {}
    for way in ("rows", "nodes"):
        result = run(*common, "--weight-by", way)
        assert result.exit_code == 0, result.stderr
        assert f"every {way[:-1]} counts alike" in result.stdout
        model = ct.load(tmp_path / "model")
        choice = model.lam_choice_
        assert f"smallest error {choice.mean.min():.4g} +- " in result.stdout
        assert (model.weight_by, choice.repeats, model.standardize) == (way, 2, True)
        found[way] = parsed(run(*common, "--weight-by", way, "--json"))
        assert found[way]["weight_by"] == way
        assert found[way]["standardize"]
        # the second time kernels may be compiled that were not at first
        assert found[way]["lam_chosen_error"] == pytest.approx(choice.mean.min(), rel=1e-9)
        assert found[way]["lam_chosen_standard_error"] > 0
    assert found["rows"]["objective"] != found["nodes"]["objective"]
    assert parsed(run(*common, "--json"))["weight_by"] == "rows"
    assert run(*common, "--weight-by", "sites").exit_code == ExitCode.USAGE


@pytest.mark.slow
def test_what_people_ask_first_is_said_first(tmp_path):
    data, graph = write(tmp_path)
    arguments = ("fit", data, *FIT, "--graph", graph, "--folds", 2, "--out", tmp_path / "m")
    lines = run(*arguments).stdout.splitlines()
    model = ct.load(tmp_path / "m")
    held_out = model.held_out_
    assert lines[0].startswith(f"Error on held-out nodes: root mean squared error {held_out.error:.3g} +- ")
    assert lines[0].endswith(f" in units of rain, R^2 {held_out.score:.3g} (2 folds).")
    assert lines[1].startswith("The same for other methods, the smallest first: ")
    assert f"networked {held_out.error:.3g}" in lines[1]
    assert lines[2].startswith("The network ")
    order = [next(k for k, line in enumerate(lines) if line.startswith(start)) for start in ORDER]
    assert order == sorted(order)
    assert "same for other" not in run(*arguments, "--no-baselines").stdout
    assert run("inspect", tmp_path / "m").stdout.splitlines()[0] == lines[0]


ORDER = ("Error on held-out", "The same for", ("Within", "Equal"), "Features:", "Network:", "Clusters")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_labels_are_held_out_where_lam_is_given(tmp_path, loss):
    target, table = {"squared": "rain", "logistic": "wet"}[loss], rows().filter(pl.col("station") != "s5")
    some = edges().filter((pl.col("from") != "s5") & (pl.col("to") != "s5"))
    data, graph = write(tmp_path, rows=table, edges=some)
    named = ("--node", "station", "--target", target, "--features", "humidity,wind", "--loss", loss)
    result = run("fit", data, *named, "--graph", graph, "--lam", 0.1, "--json", "--out", tmp_path / "m")
    found, model = parsed(result)["held_out"], ct.load(tmp_path / "m")
    assert found["over"] == "rows"
    assert found["measure"] == {"squared": "root mean squared error", "logistic": "log-loss"}[loss]
    assert 0.5 < found["score"] <= 1
    assert model.held_out_.error == found["error"] > 0
    assert np.isfinite(model.held_out_.node_errors).all()
    assert model.held_out_.counts.sum() == 88
    methods = parsed(result)["baselines"]["methods"]
    assert "networked" in methods
    assert "squared variation" not in methods  # its choice of λ would cost more than the fit


def test_a_criterion_chooses_lam_and_labels_are_held_out_afterwards(tmp_path):
    data, graph = write(tmp_path)
    named = ("fit", data, *FIT, "--graph", graph, "--folds", 2, "--no-baselines", "--out", tmp_path / "m")
    result = run(*named, "--lam", "aicc")
    assert result.exit_code == 0, result.stderr
    assert "chosen by AICc" in result.stdout
    assert "Effective parameters: " in result.stdout
    assert result.stdout.startswith("Error on held-out nodes: ")
    found = parsed(run(*named, "--lam", "bic", "--json"))
    assert found["lam_chosen_by"] == "bic"
    assert found["lam_chosen_over"] is None
    assert found["bic"] == ct.load(tmp_path / "m").bic_
    assert parsed(run(*named, "--lam", "0.1", "--json"))["lam_chosen_by"] == "given"


def test_json_for_machines(tmp_path):
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--json", "--out", tmp_path / "model")
    found, model = parsed(result), ct.load(tmp_path / "model")
    assert result.stderr == ""
    assert found["converged"]
    assert found["gap"] == model.gap_ <= found["tol"] == 1e-6
    assert found["nodes"] == 12
    assert found["labelled_nodes"] == 11
    assert found["exit_code"] == 0
    assert found["features"] == ["humidity", "wind"]


def test_quiet_is_quiet(tmp_path):
    data, graph = write(tmp_path)
    options = ("--lam", 0.1, "--max-iter", 1, "--tol", 1e-30, "--quiet", "--out", tmp_path / "model")
    result = run("fit", data, *FIT, "--graph", graph, *options)
    assert result.exit_code == ExitCode.NOT_CONVERGED
    assert result.output == ""


@pytest.mark.parametrize("limit", [("--max-iter", 1), ("--time-limit", 0)])
def test_not_converged_has_its_own_code_and_still_writes_the_model(tmp_path, limit):
    data, graph = write(tmp_path)
    options = ("--lam", 0.1, *limit, "--tol", 1e-30, "--out", tmp_path / "model")
    result = run("fit", data, *FIT, "--graph", graph, *options)
    model = ct.load(tmp_path / "model")
    assert result.exit_code == ExitCode.NOT_CONVERGED
    assert f"not converged: the gap is {model.gap_:.1e}" in result.stderr
    assert "\nNot converged" in result.stdout
    assert 0 <= model.gap_ < 1


def test_what_travels_with_the_model(tmp_path):
    import hashlib

    data, _ = write(tmp_path)
    options = ("--knn", "lon,lat:3", "--lam", 0.1, "--baselines", "--folds", 2, "--seed", 3)
    result = run(
        "fit",
        data,
        "--node",
        "station",
        "--target",
        "rain",
        "--features",
        "humidity,wind",
        *options,
        "--out",
        tmp_path / "m",
    )
    assert "The same for other methods, the smallest first: " in result.stdout
    model = ct.load(tmp_path / "m")
    notes = model.notes_
    assert notes["command"].startswith(f"coterie fit {data} --node station")
    assert notes["seed"] == 3
    assert notes["data"] == {"files": [str(data)], "rows": 96, "sha256": hashlib.sha256(data.read_bytes()).hexdigest()}
    assert notes["coordinates"]["names"] == ["lat", "lon"]
    place = dict(zip(model.nodes_, notes["coordinates"]["values"], strict=True))
    assert place["s4"] == pytest.approx([59.4, 20.1])
    compared = {"local only", "pooled", "node intercepts", "mixed model", "networked", "squared variation"}
    assert set(notes["baselines"]["methods"]) == compared
    assert len(notes["baselines"]["weights"]) == 2
    assert "The network " in result.stdout
    assert len(notes["resolvability"]["margin"]) == model.clusters_.max() + 1


def test_coordinates_are_not_features_unless_named(tmp_path):
    data, _ = write(tmp_path, rows=rows().drop("wet"))
    common = ("fit", data, "--node", "station", "--target", "rain", "--knn", "lat,lon:3", "--lam", 1, "--json")
    assert parsed(run(*common, "--out", tmp_path / "m"))["features"] == ["humidity", "wind"]
    assert parsed(run(*common, "--features", "lat,wind", "--out", tmp_path / "m"))["features"] == ["lat", "wind"]


def test_nodes_without_rows_get_a_model_and_are_counted(tmp_path):
    data, graph = write(tmp_path, rows=rows().filter(pl.col("station") != "n3"))
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--out", tmp_path / "m")
    assert result.stderr == "coterie: 1 of the 12 nodes of the graph have no rows; their models come from neighbours\n"
    model = ct.load(tmp_path / "m")
    assert np.abs(model.coef_[model.nodes_ == "n3"]).max() > 0.5


def test_nodes_that_no_label_reaches_are_named(tmp_path):
    island = pl.concat([edges(), pl.DataFrame({"from": ["x1"], "to": ["x2"], "weight": [1.0]})])
    data, graph = write(tmp_path, edges=island)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--out", tmp_path / "m")
    assert "No label reaches 2 nodes, whose models say nothing: x1, x2." in result.stdout


def test_ids_are_text_where_the_graph_has_text(tmp_path):
    numbers = {name: str(k) for k, name in enumerate(STATIONS)}
    named = edges().with_columns(pl.col("from", "to").replace(numbers))
    more = pl.concat([named, pl.DataFrame({"from": ["0"], "to": ["x"], "weight": [1.0]})])
    data, graph = write(tmp_path, rows=rows().with_columns(pl.col("station").replace(numbers)), edges=more)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--json", "--out", tmp_path / "m")
    assert parsed(result)["nodes"] == 13
    assert run("predict", tmp_path / "m", data, "--out", tmp_path / "p.csv").exit_code == 0


NODES = rows()["station"]
BAD_ROWS = [
    (with_value(rows(), "humidity", 7, None), ExitCode.BAD_VALUE, ["column 'humidity', row 7", "is missing"]),
    (with_value(rows(), "humidity", 7, np.nan), ExitCode.BAD_VALUE, ["column 'humidity', row 7", "is nan"]),
    (with_value(rows(), "rain", 9, np.inf), ExitCode.BAD_VALUE, ["column 'rain', row 9", "is inf"]),
    (with_value(rows(), "station", 4, None), ExitCode.BAD_VALUE, ["column 'station', row 4", "no node id"]),
    (rows().with_columns(wind=pl.lit("much")), ExitCode.BAD_VALUE, ["column 'wind', row 1", "'much'", "not a number"]),
    (rows().drop("wind"), ExitCode.MISSING_COLUMN, ["no column 'wind'", "'humidity'"]),
    (rows().drop("station"), ExitCode.MISSING_COLUMN, ["no column 'station'"]),
    (with_value(rows(), "station", 5, "far"), ExitCode.UNKNOWN_NODE, ["column 'station', row 5: 'far'", "12 nodes"]),
    (rows().with_columns(rain=None), ExitCode.BAD_LABEL, ["column 'rain'", "empty in every row"]),
    (rows()[:0], ExitCode.EMPTY, ["no rows"]),
]


@pytest.mark.parametrize(("table", "code", "words"), BAD_ROWS)
def test_bad_rows(tmp_path, table, code, words):
    data, graph = write(tmp_path, rows=table)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--out", tmp_path / "model")
    assert_one_line(result, code, data, *words)
    assert not (tmp_path / "model").exists()


BAD_EDGES = [
    (with_value(edges(), "to", 3, "n2"), ExitCode.BAD_GRAPH, ["column 'to', row 3", "'n2' is joined to itself"]),
    (with_value(edges(), "weight", 2, -1.0), ExitCode.BAD_GRAPH, ["column 'weight', row 2", "-1.0"]),
    (with_value(edges(), "weight", 2, None), ExitCode.BAD_GRAPH, ["column 'weight', row 2", "is missing"]),
    (with_value(edges(), "from", 2, None), ExitCode.BAD_VALUE, ["column 'from', row 2"]),
    (edges().select("from", "weight"), ExitCode.BAD_GRAPH, ["two columns of nodes"]),
    (edges().with_columns(weight=pl.lit("heavy")), ExitCode.COLUMN_TYPE, ["'weight'", "String"]),
    (edges().with_columns(to=0.5), ExitCode.COLUMN_TYPE, ["'to'", "whole numbers or text"]),
    (
        pl.concat([edges(), pl.DataFrame({"from": ["n1"], "to": ["n0"], "weight": [3.0]})]),
        ExitCode.DUPLICATE,
        ["column 'weight', row 14", "'n1' - 'n0'", "3.0 here, and 1.0 before"],
    ),
    (edges()[:0], ExitCode.EMPTY, ["no rows"]),
]


@pytest.mark.parametrize(("table", "code", "words"), BAD_EDGES)
def test_bad_edges(tmp_path, table, code, words):
    data, graph = write(tmp_path, edges=table)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--out", tmp_path / "model")
    assert_one_line(result, code, graph, *words)
    assert not (tmp_path / "model").exists()


def test_columns_of_other_types(tmp_path):
    _, graph = write(tmp_path)
    rows().with_columns(wind=pl.lit("much")).write_parquet(tmp_path / "rows.parquet")
    result = run("fit", tmp_path / "rows.parquet", *FIT, "--graph", graph, "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.COLUMN_TYPE, "rows.parquet: column 'wind' is String")


def test_files_that_cannot_be_read(tmp_path):
    _, graph = write(tmp_path)
    whole = tmp_path / "whole.parquet"
    rows(m=200).write_parquet(whole)
    (tmp_path / "cut.parquet").write_bytes(whole.read_bytes()[:-300])
    (tmp_path / "nothing.csv").touch()
    (tmp_path / "rows.xlsx").touch()
    for name, code in (
        ("cut.parquet", ExitCode.UNREADABLE),
        ("nothing.csv", ExitCode.EMPTY),
        ("rows.xlsx", ExitCode.UNREADABLE),
        ("not-there.csv", ExitCode.UNREADABLE),
    ):
        for data, network in ((tmp_path / name, graph), (whole, tmp_path / name)):
            result = run("fit", data, *FIT, "--graph", network, "--out", tmp_path / "model")
            assert_one_line(result, code, name)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([2] + [0, 1] * 47 + [0], ["column 'wet', row 1: 2.0", "only row of its class"]),
        ([1] * 96, ["column 'wet'", "one class only"]),
        ([None] * 96, ["column 'wet'", "empty in every row"]),
    ],
)
def test_labels_that_are_no_classes(tmp_path, labels, words):
    data, graph = write(tmp_path, rows=rows().with_columns(wet=pl.Series(labels)))
    arguments = ("--node", "station", "--target", "wet", "--features", "humidity,wind", "--loss", "logistic", "--quiet")
    result = run("fit", data, *arguments, "--graph", graph, "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.BAD_LABEL, data, *words)


def test_a_station_in_two_places(tmp_path):
    moved = rows()
    row = moved["station"].to_list().index("n2", moved["station"].to_list().index("n2") + 1) + 1
    data, _ = write(tmp_path, rows=with_value(moved, "lon", row, 33.0))
    result = run("fit", data, *FIT, "--knn", "lat,lon:3", "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.DUPLICATE, f"{data}: column 'lon', row {row}: 33.0", "node 'n2' had 20.2")


def test_units_do_not_matter(tmp_path):
    _, graph = write(tmp_path)
    write(other := tmp_path / "other", rows=rows().with_columns(pl.col("wind") * 1000, pl.col("rain") * 100 + 7))
    options = ("--graph", graph, "--lam", 0.1, "--baselines", "--folds", 3, "--tol", 1e-9, "--json", "--out")
    one, two = (parsed(run("fit", folder / "rows.csv", *FIT, *options, folder / "m")) for folder in (tmp_path, other))
    assert 1e4 * one["objective"] == pytest.approx(two["objective"], rel=1e-8)
    plain, scaled = ct.load(tmp_path / "m"), ct.load(other / "m")
    np.testing.assert_allclose(scaled.coef_, plain.coef_ * [100, 0.1], rtol=1e-3, atol=1e-4)
    errors = [np.array(found["baselines"]["errors"]) for found in (one, two)]
    np.testing.assert_allclose(errors[1], 100 * errors[0], rtol=1e-2)
    assert two["held_out"]["error"] == pytest.approx(100 * one["held_out"]["error"], rel=1e-2)
    assert two["held_out"]["score"] == pytest.approx(one["held_out"]["score"], abs=1e-2)


def test_more_folds_than_nodes(tmp_path):
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--folds", 40, "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.BAD_DATA, data, "cv=40 folds over nodes")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "either --graph"),
        (("--graph", "edges.csv", "--knn", "lat,lon:5"), "either --graph"),
        (("--knn", "lat,lon"), "such as lat,lon:5"),
        (("--knn", "lat,lon:0"), "such as lat,lon:5"),
        (("--knn", "lat,lon:5", "--lam", "much"), "--lam much"),
        (("--knn", "lat,lon:5", "--lam", "nan"), "--lam nan"),
        (("--knn", "lat,lon:5", "--lam", "-1"), "--lam -1"),
        (("--knn", "lat,lon:5", "--engine", "steam"), "no engine 'steam'"),
        (("--knn", "lat,lon:5", "--alpha", "1"), "--alpha belongs to --loss lasso"),
        (("--knn", "lat,lon:5", "--profile"), "belong to --engine mpi"),
        (("--knn", "lat,lon:5", "--partition", "ranks.csv"), "belong to --engine mpi"),
        (("--knn", "lat,lon:5", "--loss", "lasso", "--l1", "1"), "--l1 belongs to"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, words):
    result = run("fit", tmp_path / "rows.csv", *FIT, *options, "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.USAGE, words)


def test_interruption_while_reading_writes_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("coterie.io.stream.stream_moments", interrupt)
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.INTERRUPTED, "nothing was written")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "rows.csv"]


def test_interruption_after_the_solve_keeps_the_model(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("coterie.graphs.resolvability", interrupt)
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 0.1, "--out", tmp_path / "model")
    assert result.exit_code == ExitCode.INTERRUPTED
    assert ct.load(tmp_path / "model").gap_ <= 1e-6


def test_baselines_that_cannot_be_had_do_not_cost_the_model(tmp_path):
    data, graph = write(tmp_path)
    options = ("--lam", 0.1, "--baselines", "--folds", 40, "--out", tmp_path / "model")
    result = run("fit", data, *FIT, "--graph", graph, *options)
    assert result.exit_code == 0
    assert "it is not known how good predictions are: cv=40 folds over nodes" in result.stderr
    assert "baselines" not in ct.load(tmp_path / "model").notes_


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--lam", 0.1), ("--over", "rows", "--folds", 2)])
def test_features_of_very_different_sizes_are_worth_a_warning(tmp_path, options):
    data, graph = write(tmp_path, rows=rows().with_columns(wind=500 * pl.col("wind")))
    common = ("fit", data, *FIT, "--graph", graph, *options, "--out", tmp_path / "model")
    assert "sizes" not in run(*common).stderr
    result = run(*common, "--no-scale")
    assert result.stderr.count("features of very different sizes (humidity") == 1
    assert "wind" in result.stderr


def test_features_are_listed_and_ids_and_coordinates_are_none(tmp_path):
    data, graph = write(tmp_path)
    rows().with_columns(row_id=pl.lit(7)).write_csv(data)
    common = ("fit", data, "--node", "station", "--target", "rain", "--graph", graph, "--lam", 0.1)
    result = run(*common, "--exclude", "wet", "--out", tmp_path / "model")
    assert "columns that are not used: wet, lat, lon, row_id" in result.stderr
    assert "Features: humidity, wind." in result.stdout
    assert_one_line(run(*common, "--features", "wind", "--exclude", "wet", "--out", tmp_path / "x"), 2, "--exclude")


def test_strengths_of_columns(tmp_path):
    data, graph = write(tmp_path)
    options = ("--lam", 0.1, "--strength", "humidity=inf", "--strength", "wind=2", "--strength", "intercept=0")
    result = run("fit", data, *FIT, "--graph", graph, *options, "--no-baselines", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.stderr
    assert "relative to lambda, humidity inf (one coefficient for all), wind 2, intercept 0 (every" in result.stdout
    model = ct.load(tmp_path / "model")
    assert model.column_strength == {"humidity": np.inf, "wind": 2.0, "intercept": 0.0}
    assert (model.coef_[:, 0] == model.coef_[0, 0]).all()
    assert parsed(run("inspect", tmp_path / "model", "--json"))["column_strength"]["wind"] == 2.0


@pytest.mark.parametrize(
    ("strength", "code", "message"),
    [
        ("rainfall=2", ExitCode.MISSING_COLUMN, "there is no feature 'rainfall'; there are humidity, wind, intercept"),
        (
            "wind=much",
            ExitCode.USAGE,
            "give column=strength, as age=2 or age=inf; a strength is 0, a number from 1e-09 to 1e+09",
        ),
        ("wind=-1", ExitCode.USAGE, "give column=strength"),
        ("wind", ExitCode.USAGE, "give column=strength"),
    ],
)
def test_a_strength_that_is_none_is_named(tmp_path, strength, code, message):
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--strength", strength, "--out", tmp_path / "model")
    assert result.exit_code == code
    assert f"--strength {strength.split('=')[0]}" in result.stderr
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "model").exists()


@pytest.fixture
def no_torch(monkeypatch):
    device.missing.cache_clear()
    monkeypatch.setattr(device, "find_spec", lambda name: None)
    yield
    device.missing.cache_clear()


def test_without_a_gpu_one_line_says_what_is_missing(tmp_path, no_torch):
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 1, "--engine", "gpu", "--out", tmp_path / "model")
    assert_one_line(result, 1, "needs torch, which is not installed")


def test_a_problem_too_large_for_memory_is_one_line(tmp_path, monkeypatch):
    def too_large(*args, **kwargs):
        raise MemoryError("Unable to allocate 1. PiB")

    monkeypatch.setattr(ct.NetworkedLinearRegression, "_learn", too_large)
    data, graph = write(tmp_path)
    result = run("fit", data, *FIT, "--graph", graph, "--lam", 1, "--out", tmp_path / "model")
    assert_one_line(result, 15, "Unable to allocate 1. PiB")
