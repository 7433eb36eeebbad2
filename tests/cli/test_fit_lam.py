"""So many clusters, rules, edges weighed anew and classes that count alike, from the command line."""

import numpy as np
import polars as pl
import pytest
from commands import FIT, assert_one_line, edges, parsed, rows, run, write

import coterie as ct
from coterie.cli.codes import ExitCode
from coterie.estimators import learnt_graph

CV = ("--folds", 2, "--over", "rows")


@pytest.fixture
def files(tmp_path):
    return write(tmp_path)


def fit(files, *options):
    data, graph = files
    return run("fit", data, *FIT, "--graph", graph, "--no-baselines", "--tol", 1e-4, *options)


def from_rows(model, target="rain"):
    """The same model fitted from Python."""
    table = rows()
    return model.set_params(tol=1e-4).fit(table.select("station", "humidity", "wind"), table[target], groups="station")


def test_lam_is_found_by_the_number_of_clusters(files, tmp_path):
    result = fit(files, "--n-clusters", 2, "--penalty", "l2", "--out", tmp_path / "model", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    said = parsed(result)
    assert (said["clusters"], said["lam_chosen_by"], said["lam_chosen_over"]) == (2, "n_clusters", None)
    expected = from_rows(ct.NetworkedLinearRegression(edges(), n_clusters=2, penalty="l2"))
    assert said["lam"] == pytest.approx(expected.lam_, rel=1e-6)
    assert "found by n_clusters=2" in run("inspect", tmp_path / "model").stdout


def test_a_rule_chooses_among_the_lams_of_folds(files, tmp_path):
    result = fit(files, *CV, "--rule", "one_se", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.stderr
    assert "within one standard error of it); l1 total variation" in result.stdout
    model = ct.load(tmp_path / "model")
    assert model.rule == "one_se"
    assert model.lam_ == model.lam_choice_.lams[model.lam_choice_.one_se]


@pytest.mark.parametrize(
    ("option", "said"),
    [("adaptive", "across which a first one found a difference"), ("learn_graph", "were learnt in turns")],
)
@pytest.mark.parametrize("lam", [("--lam", 0.1), ("--n-clusters", 2, "--penalty", "l2")])
def test_edges_are_weighed_anew(files, tmp_path, option, said, lam):
    result = fit(files, *lam, f"--{option.replace('_', '-')}", "--out", tmp_path / "model")
    assert result.exit_code == 0, result.stderr
    assert said in result.stdout
    how = {"lam": 0.1} if lam[0] == "--lam" else {"n_clusters": 2, "penalty": "l2"}
    fitted, expected = (
        ct.load(tmp_path / "model"),
        from_rows(ct.NetworkedLinearRegression(edges(), **how, **{option: True})),
    )
    assert not np.allclose(fitted.graph_.weights, edges()["weight"])
    np.testing.assert_allclose(fitted.graph_.weights, expected.graph_.weights, rtol=1e-3)
    np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-2)


def test_folds_weigh_edges_anew_themselves(files, tmp_path):
    result = fit(files, *CV, "--adaptive", "--out", tmp_path / "model", "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    assert parsed(result)["lam_chosen_by"] == "cv"
    assert ct.load(tmp_path / "model").adaptive


@pytest.mark.parametrize("quiet", [False, True])
def test_weights_of_edges_that_have_not_settled_are_said(files, tmp_path, monkeypatch, quiet):
    monkeypatch.setattr(learnt_graph, "ROUNDS", 1)
    options = ("--lam", 0.01, "--learn-graph", "--out", tmp_path / "model", *(["--quiet"] if quiet else []))
    result = fit(files, *options)
    assert result.exit_code == 0, result.stderr
    assert ("coterie: warning: learn_graph: weights of edges have not settled" in result.stderr) is not quiet


def test_classes_count_alike(files, tmp_path):
    data, graph = files
    table = rows().with_columns(wet=(pl.col("rain") > 2).cast(int))
    table.write_csv(data)
    given = "--node", "station", "--target", "wet", "--features", "humidity,wind", "--lam", 0.1, "--loss", "logistic"
    how = "--class-weight", "balanced", "--no-baselines", "--out", tmp_path / "model"
    result = run("fit", data, "--graph", graph, *given, *how, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
    expected = ct.NetworkedLogisticRegression(edges(), lam=0.1, class_weight="balanced")
    expected.fit(table.select("station", "humidity", "wind"), table["wet"], groups="station")
    np.testing.assert_allclose(ct.load(tmp_path / "model").coef_, expected.coef_, atol=1e-3)
    weights = parsed(result)["class_weight"]
    assert list(weights.values()) == pytest.approx(expected.class_weight_.tolist())
    assert weights["1"] > 1 > weights["0"]
    assert "all classes count alike" in run("inspect", tmp_path / "model").stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--n-clusters", 2, "--lam", "cv"), "itself; leave out --lam cv"),
        (("--n-clusters", 2, "--lam", 0.5), "itself; leave out --lam 0.5"),
        (("--n-clusters", 2, "--penalty", "squared"), "--n-clusters needs clusters"),
        (("--n-clusters", 2, "--shared"), "--shared joins all nodes"),
        (("--n-clusters", 2, "--refine-strength"), "it does not go with --n-clusters"),
        (("--n-clusters", 2, "--rule", "best"), "it does not go with --n-clusters"),
        (("--lam", 0.5, "--rule", "one_se"), "it does not go with --lam 0.5"),
        (("--lam", "bic", "--rule", "one_se"), "it does not go with --lam bic"),
        (("--adaptive", "--learn-graph"), "two ways to weigh edges anew"),
        (("--adaptive", "--shared"), "--adaptive does not go with --shared"),
        (("--learn-graph", "--lam", "aicc"), "--learn-graph does not go with --lam aicc"),
        (("--class-weight", "balanced"), "--class-weight belongs to --loss logistic, not to squared"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_any_work(files, tmp_path, options, told):
    assert_one_line(fit(files, *options, "--out", tmp_path / "model"), ExitCode.USAGE, told)
    assert not (tmp_path / "model").exists()


def test_so_many_clusters_as_no_lam_leaves_are_refused(files, tmp_path):
    result = fit(files, "--n-clusters", 13, "--out", tmp_path / "model")
    assert_one_line(result, ExitCode.BAD_DATA, "n_clusters=13: there are 12 nodes")
