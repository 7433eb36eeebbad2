"""Several classes, with names, in a federation: the model of all rows in one place, also if a site misses a class."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import coterie as ct
from coterie.federation.classes import SeenElsewhere, as_labels, at_a_site, class_names, numbered
from coterie.federation.partition import partition
from coterie.federation.project import write_sites
from coterie.federation.site_files import BadSiteError, Settings, SiteFiles
from flower_grid import CONFIG

CLASSES = ("mild", "severe", "none")
NAMES, SITE_OF = ("east", "north", "west"), np.arange(12) // 4
RUN = {**CONFIG, "loss": "logistic", "ridge": 0.05, "lam": 0.05, "classes": ", ".join(CLASSES)}


def problem_of_classes() -> ct.Problem:
    """Twelve nodes at three sites; the first site has no row of the last class."""
    rng = np.random.default_rng(0)
    nodes = np.repeat(np.arange(12), 6)
    X = rng.standard_normal((len(nodes), 2))
    scores = np.einsum("rj,rkj->rk", X, 2 * rng.standard_normal((3, 3, 2))[nodes // 4])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(float)
    y[(nodes < 4) & (y == 2)] = 1.0
    y[nodes % 5 == 4] = np.nan
    graph = ct.EmpiricalGraph.from_edges([(i, i + 1) for i in range(11)])
    return ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, nodes), ct.Multinomial(3, ridge=0.05), lam=0.05)


def write_named(folder: Path) -> ct.Problem:
    """The sites' folders, with the names of classes as labels."""
    problem = problem_of_classes()
    write_sites(folder, problem, SITE_OF, NAMES)
    for name in NAMES:
        site = folder / "sites" / name
        with (site / "data.csv").open(newline="") as file:
            header, *lines = csv.reader(file)
        with (site / "data.csv").open("w", newline="") as file:
            named = ([*line[:-1], CLASSES[int(float(line[-1]))] if line[-1] else ""] for line in lines)
            csv.writer(file).writerows([header, *named])
        policy = site / "site.toml"
        policy.write_text(policy.read_text().replace('"0, 1, 2"', f'"{RUN["classes"]}"'))
    return problem


def federate(folder: Path, **changes: Any) -> Any:
    pytest.importorskip("flwr", reason="needs the extra coterie[flower]")
    from coterie.federation.server_app import run
    from flower_grid import InProcessGrid

    config = {**RUN, "graph": str(folder / "graph.csv"), "out": str(folder / "model"), **changes}
    (folder / "model").mkdir()
    return run(InProcessGrid([folder / "sites" / name for name in NAMES], config), config, folder / "model")  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_is_the_model_of_all_rows_in_one_place(tmp_path: Path) -> None:
    problem = write_named(tmp_path)
    outcome, best = federate(tmp_path), ct.solve(problem, 1e-9)
    assert outcome.status is ct.Status.OPTIMAL
    assert outcome.objective <= best.objective * (1 + 1e-6)
    assert outcome.dual_bound <= best.objective * (1 + 1e-9)
    model = ct.load(tmp_path / "model")
    assert model.classes_.tolist() == list(CLASSES)
    w = np.zeros((12, 6))
    w[model.nodes_.astype(int)] = model.coef_.reshape(12, 6)
    assert problem.objective(w) == pytest.approx(outcome.objective, rel=1e-9)
    X, nodes = problem.data.X, problem.data.nodes.astype(str)
    chances = model.predict_proba(pl.DataFrame({"node": nodes, "x0": X[:, 0], "x1": X[:, 1]}))
    assert chances.shape == (72, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    for file in (tmp_path / "model" / "weights.csv", tmp_path / "sites" / "east" / "weights.csv"):
        assert file.read_text().splitlines()[0] == "node," + ",".join(f"{c}: x{k}" for c in CLASSES for k in range(2))


def test_a_site_whose_policy_has_other_classes_refuses(tmp_path: Path) -> None:
    write_named(tmp_path)
    with pytest.raises(Exception, match="has a policy with another loss"):
        federate(tmp_path, classes="severe, mild, none")


def test_labels_that_are_no_class_are_named(tmp_path: Path) -> None:
    write_named(tmp_path)
    settings = Settings.of({**RUN, "classes": "mild, severe, dead"})
    with pytest.raises(BadSiteError, match=r"north: .*row \d+.*none; the classes of this run are mild, severe, dead"):
        SiteFiles.read(tmp_path / "sites" / "north", settings)
    files = SiteFiles.read(tmp_path / "sites" / "east", Settings.of(RUN))
    assert set(files.rows.y[~np.isnan(files.rows.y)]) == {0.0, 1.0}
    assert files.problem.loss == SeenElsewhere(3, ridge=0.05)


@pytest.mark.parametrize("text", ["mild", "mild, mild", "mild,,severe", ","])
def test_classes_are_two_or_more(text: str) -> None:
    with pytest.raises(ValueError, match="give the names of two classes or more, each of them once"):
        class_names({"classes": text})


def test_classes_are_for_the_logistic_loss() -> None:
    with pytest.raises(BadSiteError, match="classes are for the loss logistic"):
        Settings.of({**RUN, "loss": "squared"})


def test_labels_may_be_numbers() -> None:
    assert as_labels(("1", "2", "-3")).tolist() == [1, 2, -3]
    assert as_labels(("1", "b")).tolist() == ["1", "b"]
    np.testing.assert_array_equal(numbered([1.0, np.nan, 3.0, 9.0], ("1", "2", "3")), [0, np.nan, 2, -1])
    np.testing.assert_array_equal(numbered(["b", None, "1"], ("1", "b")), [1, np.nan, 0])


def test_a_part_of_a_problem_keeps_offsets_and_may_miss_a_class() -> None:
    problem = problem_of_classes()
    parts, _ = partition(problem.graph, SITE_OF)
    assert [type(part.problem(problem).loss) for part in parts] == [SeenElsewhere] * 3
    assert at_a_site(ct.Logistic()) == ct.Logistic()
    counts = ct.LocalDatasets.from_rows(np.ones((12, 1)), np.ones(12), np.arange(12), offset=np.arange(12.0))
    of_counts = ct.Problem(problem.graph, counts, ct.Poisson(), lam=0.1)
    np.testing.assert_array_equal(parts[1].problem(of_counts).data.offset, [4, 5, 6, 7])
