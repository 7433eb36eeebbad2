"""Fits of which ranks read shares, here by a job of one rank, which is this process."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import coterie as ct
from coterie.estimators.column_strength import strengths_of
from coterie.estimators.offsets import Offset
from coterie.io.errors import BadLabelError, BadValueError, DataError
from coterie.io.formats import Table
from coterie.io.rows import Columns
from coterie.problem.convert import Measure

if find_spec("mpi4py") is None:
    pytest.skip("mpi4py is not installed (coterie[mpi])", allow_module_level=True)

from mpi4py import MPI

from coterie.engines.mpi import engine
from coterie.engines.mpi.checkpoint import keeping
from coterie.engines.mpi.crew import Crew, RankFailed
from coterie.estimators import by_ranks, cross_validation, rank_data, rank_folds, rank_lams
from coterie.io.ranks import pieces
from coterie.io.ranks.network import read_edges
from coterie.io.ranks.partition import _at_home, _wishes, assign, by_labels, read_partition
from coterie.kernels.choice import using
from coterie.kernels.forms import Form
from coterie.solver import part_problem
from coterie.solver.pace import Pace

NAMES = [f"town {i}" if i % 3 else f'"town"\n{i}' for i in range(12)]  # some need quotation marks


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Crew:
    """The crew of one, small pieces, and files of a fit in the folder that is worked in."""
    crew = Crew(MPI.COMM_SELF)
    for module in (engine, part_problem, by_ranks, rank_lams):
        monkeypatch.setattr(module, "crew", lambda: crew)
    monkeypatch.setattr(pieces, "PIECE", 200)
    monkeypatch.setattr(Pace, "form", lambda pace, n_iter=0: Form.NUMPY)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(12), 8)
    X = rng.standard_normal((96, 2))
    X[:, 1] += 5.0
    y = np.where(of < 6, X[:, 0], -X[:, 0]) + 0.1 * rng.standard_normal(96)
    y[::9] = np.nan
    rows = pl.DataFrame({"town": [NAMES[i] for i in of], "a": X[:, 0], "b": X[:, 1], "y": y})
    rows.with_columns(pl.col("y").fill_nan(None)).write_csv("rows.csv")
    rows.write_parquet("rows.parquet")
    label = pl.when(pl.col("y") > 0).then(pl.lit("yes")).when(pl.col("y").is_not_nan()).then(pl.lit("no"))
    rows.with_columns(label.alias("y")).write_csv("classes.csv")
    third = pl.when(pl.col("y").is_not_nan()).then((pl.col("y") * 2).clip(-1, 1).round() + 1)
    rows.with_columns(third.replace_strict({0: "low", 1: "middle", 2: "high"}).alias("y")).write_csv("three.csv")
    rows.with_columns(third.cast(pl.Int64).cast(pl.String).alias("y")).write_parquet("numbers.parquet")
    counts = pl.col("y").exp().round().alias("y"), pl.Series("long", rng.uniform(0.5, 2.0, 96))
    rows.with_columns(counts).with_columns(pl.col("y").fill_nan(None)).write_csv("counts.csv")
    colour = pl.Series("colour", np.array(["red", "green", None, "blue"], dtype=object)[np.arange(96) % 4], pl.String)
    hole = pl.when(pl.int_range(96) % 7 != 0).then("a").alias("a")
    rows.with_columns(colour, hole, pl.col("y").fill_nan(None)).write_csv("gaps.csv")
    pl.DataFrame({"i": NAMES[:-1], "j": NAMES[1:], "weight": np.arange(1.0, 12.0)}).write_csv("edges.csv")
    return crew


def fit(model: Any, rows: str, partition: str | None = None, **made: Any) -> Any:
    table, said = Table(rows), []
    given = Offset.of(made.pop("offset", None), made.pop("exposure", None))
    known = None if given is None else given.column
    features = made.pop("features", ["a", "b"])
    columns = Columns.of(table, "town", "y", features, classes=hasattr(model, "predict_proba"), offset=known)
    tables = table, Table("edges.csv"), columns, Measure(), None if partition is None else Table(partition)
    with using(Form.NUMPY):
        return by_ranks.RankFit(model, *tables, said.append, given, **made).fit()


MADE = {"features": ["a", "b", "colour"], "one_hot": ["colour"], "missing": "mean"}
MODELS = {
    "squared": (ct.NetworkedLinearRegression(lam=0.1), "rows.csv", {}),
    "parquet": (ct.NetworkedLinearRegression(lam=0.1, standardize=False), "rows.parquet", {}),
    "lasso": (ct.NetworkedLasso(lam=0.1, penalty="l2", tol=1e-5), "rows.csv", {}),
    "logistic": (ct.NetworkedLogisticRegression(lam=0.1), "classes.csv", {}),
    "three classes": (ct.NetworkedLogisticRegression(lam=0.5, penalty="l2"), "three.csv", {}),
    "classes that are numbers": (ct.NetworkedLogisticRegression(lam=0.1), "numbers.parquet", {}),
    "huber": (ct.NetworkedHuberRegression(lam=0.5, penalty="squared"), "rows.csv", {}),
    "quantile": (ct.NetworkedQuantileRegression(lam=0.5, quantile=0.4), "rows.csv", {}),
    "poisson": (ct.NetworkedPoissonRegression(lam=0.5), "counts.csv", {}),
    "offset": (ct.NetworkedPoissonRegression(lam=0.5), "counts.csv", {"offset": "long"}),
    "exposure": (ct.NetworkedPoissonRegression(lam=0.5, penalty="l2"), "counts.csv", {"exposure": "long"}),
    "one-hot and means": (ct.NetworkedLinearRegression(lam=0.1), "gaps.csv", MADE),
    "strengths": (
        ct.NetworkedLinearRegression(lam=0.1, column_strength={"a": 0.5, "intercept": np.inf}),
        "rows.csv",
        {},
    ),
    "strengths of classes": (ct.NetworkedLogisticRegression(lam=0.5, column_strength={"b": 3.0}), "three.csv", {}),
    "strengths of one": (ct.NetworkedLinearRegression(lam=0.1, column_strength={"b": 1.0}), "rows.csv", {}),
    "dropped rows": (ct.NetworkedLasso(lam=0.1), "gaps.csv", MADE | {"missing": "drop"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_fit_of_one_process(name: str) -> None:
    given, rows, made = MODELS[name]
    graph = ct.EmpiricalGraph.from_any(pl.read_csv("edges.csv"))
    whole = clone(given).set_params(graph=graph, engine="numpy")
    ct.fit_files(whole, rows, node="town", target="y", **{"features": ["a", "b"], **made})
    model = clone(given)
    facts = fit(model, rows, **made)
    model.save("model")
    found = ct.load("model")
    assert facts.labelled_rows == whole.n_labelled_.sum()
    assert (facts.labelled_nodes, facts.undetermined_nodes) == (12, [])
    assert found.preparation_ == whole.preparation_
    assert strengths_of(found) == strengths_of(whole)
    assert found.offset_ == whole.offset_
    np.testing.assert_array_equal(getattr(found, "classes_", None), getattr(whole, "classes_", None))
    np.testing.assert_allclose(
        [found.scaling_.y_centre, *found.scaling_.spread], [whole.scaling_.y_centre, *whole.scaling_.spread]
    )
    assert found.gap_ <= given.tol
    assert found.nodes_.tolist() == whole.nodes_.tolist()
    np.testing.assert_array_equal(found.n_labelled_, whole.n_labelled_)
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-2)
    np.testing.assert_allclose(found.node_errors_, whole.node_errors_, atol=1e-2)
    assert found.solution_.objective == pytest.approx(whole.solution_.objective, rel=3e-5)
    assert found.solution_.dual_bound <= whole.solution_.objective * (1 + 1e-9)


CHOICES = {
    "squared": (ct.NetworkedLinearRegressionCV, "rows.csv", {"over": "nodes"}),
    "counts": (ct.NetworkedPoissonRegressionCV, "counts.csv", {"penalty": "l2", "ridge": 0.1}),
    "strengths": (
        ct.NetworkedLinearRegressionCV,
        "rows.csv",
        {"penalty": "l2", "column_strength": {"a": 0.3, "b": np.inf}},
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_folds_choose_as_those_of_one_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, rows, options = CHOICES[name]
    options = {"n_lams": 3, "cv": 2, "tol": 1e-3, "random_state": 0, **options}
    for module in (rank_folds, cross_validation):
        monkeypatch.setattr(module, "PATH_TOL", 1e-4)
    graph = ct.EmpiricalGraph.from_any(pl.read_csv("edges.csv"))
    whole = kind(graph, engine="numpy", **options)
    ct.fit_files(whole, rows, node="town", target="y", features=["a", "b"])
    model = kind(**options)
    fit(model, rows)
    model.save("model")
    found = ct.load("model")
    assert found.lam_choice_.over == whole.lam_choice_.over
    np.testing.assert_allclose(found.lam_choice_.lams, whole.lam_choice_.lams, rtol=1e-4)
    np.testing.assert_allclose(found.lam_choice_.errors, whole.lam_choice_.errors, rtol=0.02)
    np.testing.assert_allclose(found.lam_choice_.weights, whole.lam_choice_.weights)
    assert found.lam_ == pytest.approx(whole.lam_, rel=1e-4)
    ours, theirs = found.held_out_, whole.held_out_
    assert ours.error == pytest.approx(theirs.error, rel=0.02)
    assert ours.score == pytest.approx(theirs.score, rel=0.05, abs=0.02)
    assert ours.counts.sum() == (whole.n_labelled_.sum() if theirs.counts is None else theirs.counts.sum())
    np.testing.assert_allclose(ours.node_errors, theirs.node_errors, rtol=0.1, atol=0.05)


def test_the_strength_of_a_column_is_that_of_its_levels() -> None:
    model = ct.NetworkedLinearRegression(lam=0.1)
    fit(model, "gaps.csv", **MADE, strength={"colour": np.inf, "a": 2.0})
    assert strengths_of(model) == {"colour=green": np.inf, "colour=red": np.inf, "a": 2.0}
    assert np.ptp(model.solution_.w[:, 2:4], axis=0).tolist() == [0.0, 0.0]
    with pytest.raises(
        DataError, match=r"--strength nothing=…: there is no feature 'nothing'; there are a, b, intercept"
    ):
        fit(ct.NetworkedLinearRegression(lam=0.1), "rows.csv", strength={"nothing": 2.0})
    with pytest.raises(TypeError, match="know no strengths of 0"):
        fit(ct.NetworkedLinearRegression(lam=0.1), "rows.csv", strength={"a": 0.0})


def test_moments_are_kept_where_these_are_less(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [ct.NetworkedLinearRegression(lam=0.1, weight_by="nodes", fit_intercept=False) for _ in range(2)]
    for model, needed in zip(models, (0, 10**9), strict=True):
        monkeypatch.setattr(rank_data, "memory_needed", lambda *given, needed=needed: needed)
        fit(model, "rows.csv")
    rows, moments = models
    np.testing.assert_array_equal(moments.n_labelled_, rows.n_labelled_)
    np.testing.assert_allclose(moments.solution_.w, rows.solution_.w, atol=1e-3)
    assert moments.solution_.objective == pytest.approx(rows.solution_.objective, rel=1e-5)


def test_what_cannot_be_used_is_refused() -> None:
    pl.read_csv("rows.csv").with_columns(pl.lit(None).alias("y")).write_csv("none.csv")
    with pytest.raises(BadLabelError, match=r"none\.csv: column 'y' is empty in every row"):
        fit(ct.NetworkedLinearRegression(lam=0.1), "none.csv")
    with pytest.raises(BadLabelError, match=r"rows\.csv: column 'y', row 2: .* is not a class"):
        fit(ct.NetworkedLogisticRegression(lam=0.1), "rows.csv")
    pl.read_csv("classes.csv").with_columns(pl.lit("yes").alias("y")).write_csv("one.csv")
    with pytest.raises(BadLabelError, match=r"one\.csv: column 'y' has labels of one class only; two are needed"):
        fit(ct.NetworkedLogisticRegression(lam=0.1), "one.csv")
    with pytest.raises(BadLabelError, match=r"rows\.csv: column 'y', row \d+: -.* is not a count"):
        fit(ct.NetworkedPoissonRegression(lam=0.1), "rows.csv")
    pl.read_csv("counts.csv").with_columns(pl.col("y") * 0).write_csv("zeros.csv")
    with pytest.raises(DataError, match=r"zeros\.csv: every count is zero"):
        fit(ct.NetworkedPoissonRegression(lam=0.1), "zeros.csv")
    with pytest.raises(BadValueError, match=r"counts\.csv: column 'a', row \d+: -.* is not an exposure"):
        fit(ct.NetworkedPoissonRegression(lam=0.1), "counts.csv", exposure="a", features=["b"])
    with pytest.raises(DataError, match=r"column 'colour' is to be one-hot, but is no feature"):
        fit(ct.NetworkedLinearRegression(lam=0.1), "gaps.csv", one_hot=["colour"])


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"node": NAMES, "part": [0] * 11 + [3]}, r"row 12 \(node 'town 11'\): '3' is none of the 1 ranks, 0 to 0"),
        ({"node": NAMES[1:], "part": [0] * 11}, r"node '\"town\"\\n0' of the graph is not there"),
        ({"node": [*NAMES, "town 1"], "part": [0] * 13}, "node 'town 1' stands there twice"),
        ({"node": [*NAMES[:-1], "nowhere"], "part": [0] * 12}, "'nowhere' is not a node of the graph"),
    ],
)
def test_a_partition_that_does_not_fit_is_refused(table: dict[str, Any], said: str) -> None:
    pl.DataFrame(table).write_csv("parts.csv")
    with pytest.raises(RankFailed, match=said):
        fit(ct.NetworkedLinearRegression(lam=0.1), "rows.csv", "parts.csv")


def test_nodes_are_numbered_in_their_order(alone: Crew) -> None:
    directory, edges = read_edges(Table("edges.csv"), Measure(), True, alone)
    assert directory.names.to_list() == sorted(NAMES)
    assert directory.numbers_of(pl.Series("id", [*sorted(NAMES), "nowhere"]))[0].tolist() == [*range(12), -1]
    assert len(edges.pairs) == 11
    assert (edges.pairs[:, 0] < edges.pairs[:, 1]).all()
    assign(directory, edges, 2)
    assert by_labels(directory, edges, 2).tolist() == [0] * 12
    pl.DataFrame({"node": NAMES, "part": 0}).write_csv("parts.csv")
    read_partition(Table("parts.csv"), directory)
    assert directory.owner.tolist() == [0] * 12


def test_nodes_wish_for_the_label_of_most_neighbours(alone: Crew) -> None:
    directory, edges = read_edges(Table("edges.csv"), Measure(), True, alone)
    part, rng = _at_home(directory, edges), np.random.default_rng(0)
    for _ in range(20):
        P, V = int(rng.integers(2, 6)), part.own
        label, room = rng.integers(P, size=V), rng.random(P) * rng.integers(3)
        A = (part.problem.graph.D.T @ part.problem.graph.D).toarray()
        near = -np.where(np.eye(V) > 0, 0.0, A) @ np.eye(P)[label]
        score = near / near.sum(axis=1, keepdims=True) + room
        score[np.arange(V), label] += 1e-9
        wish = _wishes(part, label, room)
        np.testing.assert_allclose(score[np.arange(V), wish], score.max(axis=1))


def test_an_edge_of_two_weights_is_refused(alone: Crew) -> None:
    pl.DataFrame({"i": ["a", "b"], "j": ["b", "a"], "weight": [1.0, 2.0]}).write_csv("edges.csv")
    with pytest.raises(RankFailed, match=r"row 2: the edge 'b' – 'a' has the weight 2\.0 here, and 1\.0 before"):
        read_edges(Table("edges.csv"), Measure(), True, alone)


@pytest.mark.parametrize("count", [10, 11])
def test_distances_become_weights(alone: Crew, count: int) -> None:
    edges = pl.read_csv("edges.csv").head(count).with_columns(weight=pl.col("weight") - 1)
    edges.write_csv("edges.csv")
    _, found = read_edges(Table("edges.csv"), Measure(distance="weight"), True, alone)
    expected = ct.EmpiricalGraph.from_any(edges, distance="weight")
    np.testing.assert_array_equal(found.pairs, expected.edges)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-15)


def test_labels_that_demand_nothing_of_edges_choose_no_lam(monkeypatch: pytest.MonkeyPatch) -> None:
    pl.read_csv("rows.csv").with_columns(pl.lit(0.0).alias("y")).write_csv("zeros.csv")
    model = ct.NetworkedLinearRegressionCV(n_lams=2, cv=2, random_state=0)
    with pytest.raises(DataError, match=r"zeros\.csv: labels make no demand on the edges"):
        fit(clone(model), "zeros.csv")
    monkeypatch.setattr(rank_lams, "memory_available", lambda: 1000)
    with pytest.raises(RankFailed, match=r"cannot find the largest useful lam: .*told all 11 edges .*number for --lam"):
        fit(clone(model), "rows.csv")


def test_whole_numbers_can_be_ids(alone: Crew) -> None:
    pl.DataFrame({"i": ["007", "8"], "j": ["8", "10"]}).write_csv("edges.csv")
    directory, _ = read_edges(Table("edges.csv"), Measure(), False, alone)
    assert directory.names.to_list() == ["10", "7", "8"]


def test_a_fit_goes_on_from_its_checkpoint() -> None:
    with keeping("kept", every=0.0, resume=True) as kept:
        fit(ct.NetworkedLinearRegression(lam=0.1), "rows.csv")
        assert kept.resumed == 0
        fit(ct.NetworkedLinearRegression(lam=0.1), "rows.csv")
        assert kept.resumed > 0
    pl.DataFrame({"node": NAMES, "part": 0}).write_csv("parts.csv")
    with keeping("kept", every=0.0, resume=True) as kept:  # asked for more, and shared out in another way
        fit(ct.NetworkedLinearRegression(lam=0.1, tol=1e-8, time_limit=60.0), "rows.csv", "parts.csv")
        assert kept.resumed > 0
    with keeping("kept", every=0.0, resume=True) as kept:
        fit(ct.NetworkedLinearRegression(lam=0.2), "rows.csv")
        assert kept.resumed == 0
