"""What every rank of a job does in the tests of `test_mpi.py`: `mpiexec -n 3 python mpi_ranks.py NAME`.

Rank 0 says "fine" where all is as it should be. What is compared with a solve in one process is compared there alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
import pytest  # noqa: E402
import test_engines as engines  # noqa: E402
import test_provers as provers  # noqa: E402
from sklearn.base import clone  # noqa: E402

import coterie as ct  # noqa: E402
import coterie.datasets  # noqa: E402
from benchmarks import families  # noqa: E402
from coterie.engines.base import Mode  # noqa: E402
from coterie.engines.mpi import checkpoint, outline  # noqa: E402
from coterie.engines.mpi.assignment import assign  # noqa: E402
from coterie.engines.mpi.checkpoint import keeping  # noqa: E402
from coterie.engines.mpi.crew import Crew, RankFailed, crew  # noqa: E402
from coterie.engines.mpi.engine import MpiEngine  # noqa: E402
from coterie.engines.mpi.part import Share, find  # noqa: E402
from coterie.estimators import cross_validation, rank_folds  # noqa: E402
from coterie.estimators.by_ranks import RankFit  # noqa: E402
from coterie.estimators.offsets import Offset  # noqa: E402
from coterie.io.errors import DataError  # noqa: E402
from coterie.io.formats import Table  # noqa: E402
from coterie.io.ranks import pieces  # noqa: E402
from coterie.io.ranks.directory import Directory, sent_rows  # noqa: E402
from coterie.io.ranks.network import Edges, RankNetwork  # noqa: E402
from coterie.io.ranks.partition import by_labels  # noqa: E402
from coterie.io.ranks.pieces import pieces_of, shares  # noqa: E402
from coterie.io.rows import Columns  # noqa: E402
from coterie.kernels.choice import using  # noqa: E402
from coterie.kernels.forms import Form, chosen  # noqa: E402
from coterie.problem.convert import Measure  # noqa: E402
from coterie.solver.pace import Pace  # noqa: E402
from coterie.solver.parts import PartProblem, solve_parts  # noqa: E402
from pairs import in_pairs  # noqa: E402
from problems import EVERY_PENALTY, FIRST_LOSSES, KINDS, OTHER_LOSSES, instance  # noqa: E402

MODES = [Mode.RELAXED, Mode.HALPERN]
SMALL = {
    "a": partial(families.paper, 0.2),
    "b": partial(families.blocks, 0.06),
    "c": partial(families.spatial, 0.01),
    "d": partial(families.image, 0.005),
    "e": partial(families.path, 0.02),
}


def conformance(crew: Crew, form: Form) -> None:
    """The suites of engines and provers."""
    make = partial(MpiEngine, form)
    for penalty, mode, (loss, kind) in in_pairs(
        EVERY_PENALTY, MODES, list(zip(FIRST_LOSSES, ["few labelled", "weighted edges", "few labelled"], strict=True))
    ):
        engines.test_two_epochs(make, loss, penalty, mode, kind)
    for loss in OTHER_LOSSES:
        engines.test_two_epochs_of_other_losses(make, loss)
    for mode, kind in zip(MODES * 3, KINDS, strict=True):
        engines.test_every_kind_of_problem(make, mode, kind)
    engines.test_steps_and_modes_may_change_on_the_way(make)
    engines.test_blocks_may_be_cut_anywhere(make, Mode.HALPERN)
    engines.test_the_starting_point_is_not_changed_and_is_the_first_point(make)
    engines.test_no_edges(make, 4)
    engines.test_no_edges(make, 1)
    for penalty, n in zip(EVERY_PENALTY, [1, 3, 3], strict=True):
        engines.test_dual_steps(make, penalty, n)
    engines.test_an_engine_may_be_set_up_again(make)
    made = provers.Made(make, form is not Form.NUMPY)
    for (kind, loss), penalty in in_pairs(provers.CASES, EVERY_PENALTY):
        provers.test_every_operation(made, kind, loss, penalty)


def same_as_alone(crew: Crew, problem: ct.Problem, form: Form) -> None:
    """A solve of all ranks proves what a solve in one process does, and either fits what the other proves."""
    solution = ct.solve(problem, 1e-5, engine=MpiEngine(form))
    assert solution.w.shape == (problem.graph.n_nodes, problem.n_features)
    np.testing.assert_array_equal(crew.of_first(solution.w.copy()), solution.w)
    if crew.rank:
        return
    alone = ct.solve(problem, 1e-5, engine="numpy")
    room = 1e-9 * (1 + abs(alone.objective))
    assert solution.status is alone.status, (problem, solution, alone)
    assert solution.unconditional == alone.unconditional
    assert solution.dual_bound <= alone.objective + room
    assert alone.dual_bound <= solution.objective + room
    assert abs(problem.objective(solution.w) - solution.objective) <= room
    proof = ct.certify(problem, solution.w, solution.u)
    assert proof.dual_bound >= solution.dual_bound - 1e-4 * (1 + abs(alone.objective))


def solves(crew: Crew, form: Form) -> None:
    """Every loss, every penalty, every kind of problem, and every family."""
    losses = FIRST_LOSSES + OTHER_LOSSES
    for k, loss in enumerate(losses):
        penalty = EVERY_PENALTY[k % len(EVERY_PENALTY)]
        same_as_alone(crew, instance(KINDS[k % len(KINDS)], loss, penalty), form)
    same_as_alone(crew, replace(instance("few labelled"), lam=0.0), form)
    for k, problem in enumerate(held_in_other_ways()):
        same_as_alone(crew, problem, form)
        if form is Form.NUMPY:
            same_as_alone(crew, replace(problem, strength=[0.0, 2.0, np.inf if k % 2 else 1.0]), form)
    for build in (three_classes, *SMALL.values()):
        same_as_alone(crew, build(), form)


def held_in_other_ways() -> list[ct.Problem]:
    """Bounds on weights, of every loss, with each penalty."""
    bounds = {"lower": -0.2, "upper": 0.3}, {"positive": True}
    return [
        instance(KINDS[k % len(KINDS)], replace(loss, **bounds[k % 2]), EVERY_PENALTY[k % len(EVERY_PENALTY)])
        for k, loss in enumerate(FIRST_LOSSES + OTHER_LOSSES)
    ]


def three_classes() -> ct.Problem:
    """Labels of three classes, each of which has weights of its own."""
    network, rng = ct.datasets.stochastic_block_model((8, 8), labelled=8), np.random.default_rng(0)
    data = network.data
    labels = np.where(np.isnan(data.y), np.nan, rng.integers(3, size=len(data.y)))
    return ct.Problem(network.graph, replace(data, y=labels), ct.Multinomial(3, 0.01), lam=0.02)


def part_of(crew: Crew, problem: ct.Problem) -> PartProblem:
    """What this rank has of a problem, as if it had read no more than that."""
    graph, rows = problem.graph, problem.data.labelled
    share = Share.of(graph, assign(problem.bound, crew), crew.rank)
    place = find(share.own, rows.M)
    here = np.flatnonzero(place >= 0)
    mine = replace(rows.of_nodes(here), M=place[here])
    return PartProblem(share, graph.n_nodes, graph.n_edges, mine, problem.loss, problem.bound.penalty, problem.lam)


def parts_alike(crew: Crew, problem: ct.Problem) -> None:
    """Ranks that hold parts, and nobody the whole, prove what a solve in one process does."""
    found = solve_parts(part_of(crew, problem), 1e-5)
    w, u = np.zeros((problem.graph.n_nodes, problem.n_features)), np.zeros((problem.graph.n_edges, problem.n_features))
    key = problem.graph.edges @ [problem.graph.n_nodes, 1]
    for nodes, rows in zip(crew.in_turn(found.nodes), crew.in_turn(found.solution.w), strict=True):
        w[nodes] = rows
    for pairs, duals in zip(crew.in_turn(found.pairs), crew.in_turn(found.solution.u), strict=True):
        u[find(key, pairs @ [problem.graph.n_nodes, 1])] = duals
    if crew.rank:
        return
    solution, alone = found.solution, ct.solve(problem, 1e-5, engine="numpy")
    room = 1e-9 * (1 + abs(alone.objective))
    assert solution.status is alone.status, (problem, solution, alone)
    assert solution.dual_bound <= alone.objective + room
    assert alone.dual_bound <= solution.objective + room
    assert abs(problem.objective(w) - solution.objective) <= room
    assert found.clusters == len(ct.Clusters.of(problem.graph, w))
    proof = ct.certify(problem, w, u)
    assert proof.dual_bound >= solution.dual_bound - 1e-4 * (1 + abs(alone.objective))


def parts(crew: Crew) -> None:
    """Losses, penalties, kinds of problems and families; then with the rows of few nodes known to all ranks."""
    chosen.set(Form.NUMPY)
    losses = FIRST_LOSSES + OTHER_LOSSES
    for k, loss in enumerate(losses):
        parts_alike(crew, instance(KINDS[k % len(KINDS)], loss, EVERY_PENALTY[k % len(EVERY_PENALTY)]))
    for k, problem in enumerate(held_in_other_ways()):
        parts_alike(crew, problem)
        parts_alike(crew, replace(problem, strength=[0.5, 2.0, np.inf if k % 2 else 1.0]))
    for build in (three_classes, *SMALL.values()):
        parts_alike(crew, build())
    outline.ROWS = 40
    for name in ("a", "b", "d"):
        parts_alike(crew, SMALL[name]())


def rows_together(crew: Crew, table: Table, text: list[str]) -> None:
    """All ranks together read every row of a file once, in order."""
    here = [
        str(value) for piece in pieces_of(shares(table, crew)) for value in piece.scan().collect()["text"].to_list()
    ]
    letters = np.frombuffer("\t".join(here).encode(), dtype=np.uint8).copy()
    found = [part.tobytes().decode() for part in crew.in_turn(letters)]
    assert "\t".join(part for part in found if part) == "\t".join(text)


def reading(crew: Crew) -> None:
    """Shares of files, numbers of nodes, and parts that are found by passing on labels."""
    folder, rng = Path(os.environ["FILES"]), np.random.default_rng(0)
    text = [
        f"{k}" + "\n" * int(rng.integers(2)) + ', "' * int(rng.integers(2)) + "é" * int(rng.integers(9))
        for k in range(200)
    ]
    frame = pl.DataFrame({"text": text, "x": np.arange(200)})
    if crew.rank == 0:
        frame.write_csv(folder / "quoted.csv")
        frame.with_columns(pl.lit("1").alias("text")).write_csv(folder / "plain.csv")
        frame.write_parquet(folder / "rows.parquet", row_group_size=30)
        frame.head(1).write_csv(folder / "one.csv")
    crew.any(False)
    pieces.PIECE = 100
    rows_together(crew, Table(folder / "quoted.csv"), text)
    rows_together(crew, Table(folder / "plain.csv"), ["1"] * 200)
    rows_together(crew, Table(folder / "rows.parquet"), text)
    rows_together(crew, Table(folder / "one.csv"), text[:1])
    problem = families.blocks(0.06)
    V, mine = problem.graph.n_nodes, np.arange(problem.graph.n_edges) % crew.size == crew.rank
    ends = problem.graph.edges[mine]
    directory = Directory(crew, pl.Series("id", np.unique(ends)).cast(pl.String))
    assert directory.n_nodes == V
    numbers, _ = directory.numbers_of(pl.Series("id", np.arange(V + 1)).cast(pl.String))
    assert sorted(numbers.tolist()) == list(range(-1, V))
    assert numbers[V] == -1
    pairs = np.sort(numbers[ends], axis=1)
    edges = Edges(*sent_rows(crew, directory.home_of(pairs[:, 0]), pairs, np.ones(len(pairs))))
    directory.owner = by_labels(directory, edges, problem.n_features)
    network = RankNetwork.joined(directory, edges)
    sizes = crew.every(np.array([len(network.share.own), len(network.share.far)]))
    assert sizes[:, 0].sum() == V
    assert sizes[:, 0].max() <= 1.5 * V / crew.size
    assert directory.numbers_of(network.names)[0].tolist() == network.share.own.tolist()
    cut = (directory.owners_of(edges.pairs)[:, 0] != directory.owners_of(edges.pairs)[:, 1]).sum()
    assert crew.sum(float(cut)) < 0.5 * problem.graph.n_edges * (1 - 1 / crew.size)


def places(folder: Path) -> None:
    """Twenty places in two clusters: rows and edges in files."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(80)
    y = np.where(np.arange(80) < 40, x, -x) + 0.1 * rng.standard_normal(80)
    rows = pl.DataFrame({"place": [f"p{r // 4}" for r in range(80)], "x": x, "y": y})
    pairs = [(f"p{i}", f"p{i + step}") for step in (1, 3) for i in range(20 - step)]
    edges = pl.DataFrame({"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "weight": 1.0})
    parts = pl.DataFrame({"node": [f"p{i}" for i in range(20)], "part": [i % 2 for i in range(20)]})
    tables = {
        "rows": rows,
        "edges": edges,
        "parts": parts,
        "hole": rows.with_columns(pl.when(pl.int_range(80) == 75).then(None).otherwise("x").alias("x")),
        "stranger": rows.with_columns(
            pl.when(pl.int_range(80) == 75).then(pl.lit("q")).otherwise("place").alias("place")
        ),
        "loop": pl.concat([edges, edges.tail(1).with_columns(pl.col("a").alias("b"))]),
        "clash": pl.concat([edges, edges.head(1).with_columns(weight=2.0)]),
        "many": parts.with_columns(pl.col("part") + 7),
        "few": parts.head(19),
        "twice": pl.concat([parts, parts.head(1)]),
        "other": parts.with_columns(pl.col("node") + "q"),
        "unlabelled": rows.with_columns(pl.lit(None, pl.Float64).alias("y")),
    }
    for name, table in tables.items():
        table.write_csv(folder / f"{name}.csv")


def fit_places(crew: Crew, rows: str = "rows", edges: str = "edges", parts: str | None = None, lam: float = 0.1) -> Any:
    folder = Path(os.environ["FILES"])
    model, table = ct.NetworkedLinearRegression(lam=lam), Table(folder / f"{rows}.csv")
    columns = Columns.of(table, "place", "y") if table.path.exists() else Columns("place", ("x",), "y")
    partition = None if parts is None else Table(folder / f"{parts}.csv")
    RankFit(model, table, Table(folder / f"{edges}.csv"), columns, Measure(), partition, lambda line: None).fit()
    return model


FITS: list[tuple[Any, str, dict[str, Any]]] = [
    (ct.NetworkedLogisticRegression(lam=0.5, tol=1e-5), "kind", {}),
    (ct.NetworkedLogisticRegression(lam=0.5, tol=1e-5), "sign", {}),
    (ct.NetworkedPoissonRegression(lam=0.5, penalty="l2", tol=1e-5), "count", {"exposure": "long"}),
    (ct.NetworkedHuberRegression(lam=0.5, penalty="squared", tol=1e-5), "y", {}),
    (ct.NetworkedQuantileRegression(lam=0.5, ridge=0.1, tol=1e-4), "y", {}),
    (ct.NetworkedLasso(lam=0.1, tol=1e-5), "y", {"one_hot": ["colour"], "missing": "mean"}),
    (ct.NetworkedLinearRegression(lam=0.1, tol=1e-5), "y", {"one_hot": ["colour"], "missing": "drop"}),
]


def many_columns(folder: Path) -> None:
    """The same places with labels of several kinds, and features with gaps; the third rank owns no node."""
    places(folder)
    rng, rows = np.random.default_rng(1), pl.read_csv(folder / "rows.csv")
    y, x = pl.col("y"), pl.col("x")
    colours = pl.Series("colour", np.array(["red", "green", None, "blue"], dtype=object)[np.arange(80) % 4], pl.String)
    rows.with_columns(
        pl.when(y < -0.5)
        .then(pl.lit("low"))
        .when(y > 0.5)
        .then(pl.lit("high"))
        .otherwise(pl.lit("middle"))
        .alias("kind"),
        (y > 0).cast(pl.Int64).alias("sign"),
        y.exp().round().alias("count"),
        pl.Series("long", rng.uniform(0.5, 2.0, 80)),
        pl.when(pl.int_range(80) % 7 != 0).then(x).alias("hole"),
        colours,
    ).write_csv(folder / "columns.csv")


def fits(crew: Crew) -> None:
    """Losses, penalties, levels and gaps: ranks that read shares fit what one process fits."""
    chosen.set(Form.NUMPY)
    folder, pieces.PIECE = Path(os.environ["FILES"]), 500
    if crew.rank == 0:
        many_columns(folder)
    crew.any(False)
    table, edges, parts = (Table(folder / f"{name}.csv") for name in ("columns", "edges", "parts"))
    graph = ct.EmpiricalGraph.from_any(pl.read_csv(edges.path))
    for model, target, made in FITS:
        features = ["hole", "colour"] if "missing" in made else ["x"]
        given = Offset.of(None, made.get("exposure"))
        known = None if given is None else given.column
        columns = Columns.of(table, "place", target, features, classes=target in ("kind", "sign"), offset=known)
        ours = clone(model)
        prepared = {name: made[name] for name in ("one_hot", "missing") if name in made}
        RankFit(ours, table, edges, columns, Measure(), parts, lambda line: None, given, **prepared).fit()
        ours.save(folder / "model")
        if crew.rank:
            continue
        alone = clone(model).set_params(graph=graph, engine="numpy")
        ct.fit_files(alone, table, "place", target, features, **made)
        found = ct.load(folder / "model")
        assert found.preparation_ == alone.preparation_
        assert found.offset_ == alone.offset_
        assert found.gap_ <= model.tol
        np.testing.assert_allclose(found.scaling_.y_centre, alone.scaling_.y_centre)
        np.testing.assert_allclose(found.scaling_.spread, alone.scaling_.spread)
        np.testing.assert_array_equal(found.n_labelled_, alone.n_labelled_)
        np.testing.assert_allclose(found.solution_.objective, alone.solution_.objective, rtol=3 * model.tol)
        np.testing.assert_allclose(found.coef_, alone.coef_, atol=0.05)
        np.testing.assert_allclose(found.node_errors_, alone.node_errors_, atol=0.05)


CHOICES: list[tuple[Any, str, dict[str, Any]]] = [
    (ct.NetworkedLinearRegressionCV, "y", {"penalty": "squared", "cv_repeats": 2}),
    (ct.NetworkedLassoCV, "y", {"over": "nodes", "alpha": 0.01}),
    (ct.NetworkedLogisticRegressionCV, "kind", {"ridge": 0.1}),
    (ct.NetworkedQuantileRegressionCV, "y", {"penalty": "l2", "ridge": 0.1}),
]


def choices(crew: Crew) -> None:
    """λ by folds: ranks that read shares deal out the folds of one process, and choose as well as that."""
    chosen.set(Form.NUMPY)
    rank_folds.PATH_TOL = cross_validation.PATH_TOL = 1e-3
    folder, pieces.PIECE = Path(os.environ["FILES"]), 500
    if crew.rank == 0:
        many_columns(folder)
    crew.any(False)
    table, edges, parts = (Table(folder / f"{name}.csv") for name in ("columns", "edges", "parts"))
    graph = ct.EmpiricalGraph.from_any(pl.read_csv(edges.path))
    for kind, target, given in CHOICES:
        options = {"n_lams": 3, "cv": 2, "tol": 1e-3, "random_state": 0, **given}
        columns, ours = Columns.of(table, "place", target, ["x"], classes=target == "kind"), kind(**options)
        RankFit(ours, table, edges, columns, Measure(), parts, lambda line: None).fit()
        ours.save(folder / "model")
        if crew.rank:
            continue
        alone = kind(graph, engine="numpy", **options)
        ct.fit_files(alone, table, "place", target, ["x"])
        found = ct.load(folder / "model")
        one, other = found.lam_choice_, alone.lam_choice_
        assert one.over == other.over
        np.testing.assert_allclose(one.lams, other.lams, rtol=1e-3)
        np.testing.assert_allclose(one.weights, other.weights)
        np.testing.assert_allclose(one.errors, other.errors, rtol=0.05)
        assert other.mean[np.argmin(np.abs(other.lams - found.lam_))] <= 1.05 * other.mean.min()
        np.testing.assert_allclose(found.held_out_.error, alone.held_out_.error, rtol=0.05)
        np.testing.assert_allclose(found.held_out_.node_errors, alone.held_out_.node_errors, rtol=0.2, atol=0.05)


def refusals(crew: Crew) -> None:
    """What cannot be used is named, with the rank that found it, at all ranks, which go on; nothing is half-written."""
    chosen.set(Form.NUMPY)
    folder, last = Path(os.environ["FILES"]), crew.size - 1
    if crew.rank == 0:
        places(folder)
    crew.any(False)
    for said, given in (
        (
            rf"rank {last} of \d cannot read its share of .*hole.csv: BadValueError: .*column 'x', row 76",
            {"rows": "hole"},
        ),
        (rf"rank {last} .*stranger.csv: column 'place', row 76: 'q' is not a node of the graph", {"rows": "stranger"}),
        (rf"rank {last} .*loop.csv: column 'b', row 37: node 'p16' is joined to itself", {"edges": "loop"}),
        (r"rank \d .*clash.csv: an edge of node 'p[01]' is given twice, with weights 1.0 and 2.0", {"edges": "clash"}),
        (rf"rank 0 .*many.csv: column 'part', row 1 .*'7' is none of the {crew.size} ranks", {"parts": "many"}),
        (r"rank \d .*few.csv: node 'p19' of the graph is not there", {"parts": "few"}),
        (r"rank \d .*twice.csv: node 'p0' stands there twice", {"parts": "twice"}),
        (r"rank 0 .*other.csv: 'p0q' is not a node of the graph", {"parts": "other"}),
        (
            rf"rank {last} of \d cannot find the rows: .*nothing.csv",
            {"rows": "nothing" if crew.rank == last else "rows"},
        ),
        (rf"rank {last} has another set of options", {"lam": 0.2 if crew.rank == last else 0.1}),
        (
            rf"rank {last} has another table of rows \(here .*csv\) than rank 0",
            {"rows": "unlabelled" if crew.rank == last else "rows"},
        ),
    ):
        with pytest.raises(RankFailed, match=said):
            fit_places(crew, **given)
    with pytest.raises(DataError, match=r"unlabelled.csv: column 'y' is empty in every row"):
        fit_places(crew, "unlabelled")
    (folder / "file").touch()
    fitted = fit_places(crew, parts="parts")
    assert set(fitted._write.args[1]["numbers"]) <= set(range(20))
    with pytest.raises(RankFailed, match=r"rank 0 .* cannot write to .*NotADirectoryError"):
        fitted.save(folder / "file")
    fitted.save(folder / "model")
    if crew.rank == 0:
        found = ct.load(folder / "model")
        assert found.nodes_.tolist() == sorted(f"p{i}" for i in range(20))
        assert not [path for path in folder.iterdir() if path.name.startswith(".coterie")]


def numpy(crew: Crew) -> None:
    with using(Form.NUMPY):
        conformance(crew, Form.NUMPY)
        solves(crew, Form.NUMPY)


def compiled(crew: Crew) -> None:
    """Few kinds of kernels, as every rank compiles them: each loss, penalty and mode once, and dual steps."""
    make = partial(MpiEngine, Form.ANY_N)
    with using(Form.ANY_N):
        for loss, penalty, mode in zip(FIRST_LOSSES, EVERY_PENALTY, [*MODES, Mode.RELAXED], strict=True):
            engines.test_two_epochs(make, loss, penalty, mode, "few labelled")
        engines.test_dual_steps(make, ct.TotalVariation(), 3)
        provers.test_every_operation(provers.Made(make, True), *provers.CASES[0], ct.TotalVariation())
        same_as_alone(crew, SMALL["b"](), Form.ANY_N)
        same_as_alone(crew, SMALL["d"](), Form.ANY_N)


def full_disk(crew: Crew) -> None:
    """A checkpoint that one rank cannot write ends the solve of all; the message names its file; nothing is left."""
    folder, last = Path(os.environ["FILES"]), crew.size - 1
    problem = families.path(0.05)

    def no_room(arrays: object, to: Path) -> None:
        to.write_text("a part")
        if crew.rank == last:
            raise OSError("no space left")

    checkpoint._save = no_room
    with (
        keeping(folder, every=0.0),
        pytest.raises(RankFailed, match=rf"rank {last} .* write .*-{last}-of-.*: OSError: no space left"),
    ):
        ct.solve(problem, 0.0, engine="mpi")
    crew.any(False)
    assert not list(folder.iterdir())


def limits(crew: Crew) -> None:
    """A limit of time, and Ctrl-C at one rank, end the solve of all at the same iteration."""
    problem = families.path(0.05)

    def same_everywhere(solution: ct.Solution, status: ct.Status) -> None:
        assert solution.status is status, solution
        ends = crew.every(np.array([solution.n_iter, solution.gap, solution.objective]))
        assert (ends == ends[0]).all()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        limited = ct.solve(problem, 0.0, time_limit=0.5, engine="mpi", callback=lambda record: time.sleep(0.3))
        same_everywhere(limited, ct.Status.TIME_LIMIT)
        seen = []

        def press(record: ct.Record) -> None:
            seen.append(record)
            if crew.rank == crew.size - 1 and len(seen) == 2:
                os.kill(os.getpid(), signal.SIGINT)

        same_everywhere(ct.solve(problem, 0.0, engine="mpi", callback=press), ct.Status.INTERRUPTED)


def refused(crew: Crew, what: str, **given: object) -> None:
    with pytest.raises(RankFailed, match=f"rank {crew.size - 1} has another {what}"):
        ct.solve(engine="mpi", **given)


def differences(crew: Crew) -> None:
    """Ranks that were given something else are named, at every rank, and all go on."""
    last = crew.rank == crew.size - 1
    refused(crew, "problem", problem=instance(lam=0.2 if last else 0.1))
    refused(crew, "problem", problem=instance(seed=2 if last else 1))
    refused(crew, "tol", problem=instance(), tol=1e-3 if last else 1e-4)
    assert ct.solve(instance(), engine="mpi").status is ct.Status.OPTIMAL


def failure(crew: Crew) -> None:
    """An error that only one rank has ends the job."""

    def fail(record: ct.Record) -> None:
        if crew.rank == crew.size - 1:
            raise MemoryError("there is no more")

    ct.solve(families.path(0.05), 0.0, engine="mpi", callback=fail)


def say_who(crew: Crew) -> None:
    """Leave the number of this process in a file of its own, for somebody to kill it."""
    path = Path(os.environ["PIDS"]) / f"{crew.rank}.pid"
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)


def forever(crew: Crew) -> None:
    """Until somebody kills a rank."""
    say_who(crew)
    while True:
        ct.solve(families.path(0.05), engine="mpi")


def keeps(crew: Crew) -> None:
    """Keeps checkpoints until somebody kills it."""
    say_who(crew)
    with keeping(os.environ["KEPT"], every=0.0):
        while True:
            ct.solve(families.blocks(0.06), engine="mpi")


def resumes(crew: Crew) -> None:
    """Goes on from such a checkpoint, once; what another problem has left is of no use."""
    with keeping(os.environ["KEPT"], every=0.0, resume=True) as kept:
        same_as_alone(crew, families.blocks(0.06), Form.NUMPY)
        assert kept.resumed > 0
    with keeping(os.environ["KEPT"], resume=True) as kept:
        same_as_alone(crew, families.blocks(0.06, seed=1), Form.NUMPY)
        assert kept.resumed == 0


def keeps_parts(crew: Crew) -> None:
    """A fit of which every rank has its own nodes, and its checkpoints."""
    chosen.set(Form.NUMPY)
    if crew.rank == 0:
        places(Path(os.environ["FILES"]))
    crew.any(False)
    with keeping(os.environ["KEPT"], every=0.0, resume=True) as kept:
        fit_places(crew)
    assert (kept.resumed > 0) == (crew.size == 3)


def silence(crew: Crew) -> None:
    """The last rank does not come for long."""
    if crew.rank == crew.size - 1:
        time.sleep(600)
    ct.solve(instance(), engine="mpi")


if __name__ == "__main__":
    Pace.form = lambda pace, n_iter=0: Form.NUMPY  # type: ignore[method-assign]  nothing is compiled unasked
    all_ranks = crew()
    globals()[sys.argv[1]](all_ranks)
    if all_ranks.rank == 0:
        print("fine")
