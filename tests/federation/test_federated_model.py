"""A federated model is a model: `coterie inspect`, `predict` and `report` open it, and say what is not known here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra coterie[flower]")

import polars as pl
from typer.testing import CliRunner, Result

import coterie as ct
from coterie.cli import app
from coterie.datasets import stochastic_block_model
from coterie.federation.digest import data_digest
from coterie.federation.loop import Outcome
from coterie.federation.project import write_sites
from coterie.federation.server_app import run
from coterie.federation.site_files import BadSiteError, Settings, SiteFiles
from coterie.solver.clusters import Clusters
from flower_grid import CONFIG, InProcessGrid

NAMES = ("east", "north", "west")
SITE_OF = np.arange(12) // 4
LOSSES: dict[str, tuple[ct.Loss, dict[str, Any]]] = {
    "squared": (ct.SquaredError(ridge=0.01), {"ridge": 0.01}),
    "lasso": (ct.Lasso(0.01), {"alpha": 0.01}),
    "logistic": (ct.Logistic(ridge=0.01), {"ridge": 0.01}),
}
FAMILIES: dict[str, tuple[ct.Loss, dict[str, Any]]] = {
    "poisson": (ct.Poisson(0.01), {"ridge": 0.01, "offset": "offset"}),
    "huber": (ct.Huber(0.01, delta=0.5), {"ridge": 0.01, "delta": 0.5}),
    "quantile": (ct.Quantile(0.01, q=0.6), {"ridge": 0.01, "quantile": 0.6}),
}


def command(*arguments: Any) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def federate(folder: Path, loss: str = "squared", **changes: Any) -> tuple[ct.Problem, Outcome]:
    """Twelve nodes at three sites; the model is in `model`."""
    truth = ((2.0, 2.0), (-2.0, 2.0), (1.0, -1.0))
    network = stochastic_block_model((4, 4, 4), truth, p_in=0.8, p_out=0.05, labelled=8, noise=0.1, seed=1)
    kind, strength = (LOSSES | FAMILIES)[loss]
    y = network.data.y if loss != "logistic" else np.where(np.isnan(network.data.y), np.nan, network.data.y > 0)
    y = np.floor(np.abs(y)) if loss == "poisson" else y
    offset = np.linspace(0.0, 1.0, len(y)) if loss == "poisson" else None
    data = ct.LocalDatasets.from_rows(network.data.X, y, network.data.nodes, n_nodes=12, offset=offset)
    problem = ct.Problem(network.graph, data, kind, lam=0.05)
    write_sites(folder, problem, SITE_OF, NAMES)
    for name in NAMES:
        path = folder / "sites" / name / "site.toml"
        path.write_text(path.read_text().replace('"answer", ', '"answer", "release", '))
    config = {**CONFIG, "loss": loss, "lam": 0.05, **strength, **{k.replace("_", "-"): v for k, v in changes.items()}}
    config |= {"graph": str(folder / "graph.csv"), "out": str(folder / "model")}
    (folder / "model").mkdir()
    grid = InProcessGrid([folder / "sites" / name for name in NAMES], config)
    return problem, run(grid, config, folder / "model")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_the_model_of_all_rows_in_one_place(tmp_path: Path, loss: str) -> None:
    problem, outcome = federate(tmp_path, loss)
    model = ct.load(tmp_path / "model")
    best = ct.solve(problem, 1e-9)
    w = np.zeros((12, 2))
    w[model.nodes_.astype(int)] = model.coef_
    assert problem.objective(w) == pytest.approx(outcome.objective, rel=1e-9)
    assert problem.objective(w) <= best.objective * (1 + 1e-6)
    assert model.lam == model.lam_ == 0.05
    assert model.get_params()["alpha" if loss == "lasso" else "ridge"] == 0.01
    assert [line.gap for line in model.solution_.history] == [one.gap for one in outcome.history]
    assert model.solution_.status is outcome.status is ct.Status.OPTIMAL
    assert model.dual_coef_.shape == (model.graph_.n_edges, 2)
    assert (np.abs(model.dual_coef_) <= 0.05 * model.graph_.weights[:, None] * (1 + 1e-12)).all()


@pytest.mark.parametrize("loss", ["poisson", "huber", pytest.param("quantile", marks=pytest.mark.slow)])
def test_other_families_go_through_the_same_messages(tmp_path: Path, loss: str) -> None:
    problem, outcome = federate(tmp_path, loss, tol=1e-3)
    model = ct.load(tmp_path / "model")
    w = np.zeros((12, 2))
    w[model.nodes_.astype(int)] = model.coef_
    assert outcome.status is ct.Status.OPTIMAL
    assert problem.objective(w) == pytest.approx(outcome.objective, rel=1e-9)
    assert outcome.dual_bound <= ct.solve(problem, 1e-6).objective
    own = {name: value for name, value in FAMILIES[loss][1].items() if name != "offset"}
    assert model.get_params().items() >= own.items()
    z = np.array([[1.0, 2.0]]) @ model.coef_[0]
    row = {"x0": [1.0], "x1": [2.0]} | ({"offset": [0.5]} if loss == "poisson" else {})
    predicted = model.predict(pl.DataFrame(row), groups=[model.nodes_[0]])
    assert predicted == pytest.approx(np.exp(z + 0.5) if loss == "poisson" else z)


def test_an_elastic_net_is_one_of_all_rows_in_one_place(tmp_path: Path) -> None:
    problem, _ = federate(tmp_path, "huber", l1=0.3)
    problem = replace(problem, loss=replace(problem.loss, l1=0.3))
    model = ct.load(tmp_path / "model")
    w = np.zeros((12, 2))
    w[model.nodes_.astype(int)] = model.coef_
    assert problem.objective(w) <= ct.solve(problem, 1e-9).objective * (1 + 1e-6)
    assert (model.l1, model.ridge) == (0.3, 0.01)
    assert "l1 0.3" in command("inspect", tmp_path / "model").output


@pytest.mark.parametrize("loss", [*LOSSES, *FAMILIES])
def test_every_loss_knows_an_l1_norm_and_the_lasso_calls_it_alpha(loss: str) -> None:
    config = {**COUNTS, "loss": loss, "alpha": 0.1, "l1": 0.2}
    if loss == "lasso":
        with pytest.raises(BadSiteError, match="calls it alpha"):
            Settings.of(config)
    else:
        assert Settings.of(config).loss.l1 == 0.2  # type: ignore[attr-defined]
        with pytest.raises(BadSiteError, match="l1 must"):
            Settings.of({**config, "l1": -1.0})


def test_a_level_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSiteError, match="q must be below 1"):
        federate(tmp_path, "quantile", quantile=1.5)


COUNTS = {"loss": "poisson", "ridge": 0.01, "penalty": "l1", "lam": 0.1, "node": "node", "label": "y"}


def test_counts_have_the_exposures_of_a_column(tmp_path: Path) -> None:
    """The data that a site is asked about, and what a checkpoint knows of them, have the logarithms."""
    (tmp_path / "data.csv").write_text("node,x,days,y\n1,1.0,2.0,3\n1,2.0,4.0,\n2,1.0,8.0,1\n")
    settings = Settings.of({**COUNTS, "exposure": "days"})
    read = SiteFiles.read(tmp_path, settings, ["x"])
    assert read.columns == ("x", "y")
    assert read.problem.data.offset is not None
    assert read.problem.data.offset.tolist() == np.log([2.0, 4.0, 8.0]).tolist()
    before = data_digest(read.nodes, read.problem)
    (tmp_path / "data.csv").write_text("node,x,days,y\n1,1.0,2.0,3\n1,2.0,4.0,\n2,1.0,9.0,1\n")
    changed = SiteFiles.read(tmp_path, settings, ["x"])
    assert data_digest(changed.nodes, changed.problem) != before
    (tmp_path / "data.csv").write_text("node,x,days,y\n1,1.0,0.0,3\n")
    with pytest.raises(BadSiteError, match="the column 'days' has 0; exposures are numbers > 0"):
        SiteFiles.read(tmp_path, settings, ["x"])
    with pytest.raises(BadSiteError, match="for the loss poisson"):
        Settings.of({**COUNTS, "loss": "squared", "exposure": "days"})
    with pytest.raises(BadSiteError, match="one of the two columns"):
        Settings.of({**COUNTS, "exposure": "days", "offset": "days"})


@pytest.mark.parametrize(
    ("loss", "label", "words"),
    [
        ("poisson", "-2", r"data.csv: column 'y', row 2: -2; counts are numbers ≥ 0"),
        ("logistic", "2", r"data.csv: column 'y', row 2: 2; without names of classes labels are 0 or 1"),
        ("logistic", "low", r"data.csv: column 'y', row 2: 'low' is not a number; .* with coterie fit --loss logistic"),
    ],
)
def test_labels_that_a_loss_cannot_have_are_named(tmp_path: Path, loss: str, label: str, words: str) -> None:
    (tmp_path / "data.csv").write_text(f"node,x,y\n1,1.0,1\n1,2.0,{label}\n2,1.0,\n")
    with pytest.raises(BadSiteError, match=words):
        SiteFiles.read(tmp_path, Settings.of({**COUNTS, "loss": loss}), ["x"])


def test_its_clusters_are_those_of_all_edges(tmp_path: Path) -> None:
    problem, _ = federate(tmp_path)
    model = ct.load(tmp_path / "model")
    order = np.argsort(model.nodes_.astype(int))
    joint, here = Clusters.of(problem.graph, model.coef_[order]).joint, model.clusters_[order]
    assert len(set(joint)) < 12
    assert ((joint[:, None] == joint) == (here[:, None] == here)).all()
    model.save(tmp_path / "copy")
    assert (ct.load(tmp_path / "copy").clusters_ == model.clusters_).all()


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_predict(tmp_path: Path, loss: str) -> None:
    federate(tmp_path, loss)
    data, out = tmp_path / "sites" / "north" / "data.csv", tmp_path / "predictions.csv"
    done = command("predict", tmp_path / "model", data, "--out", out)
    assert done.exit_code == 0, done.output
    model, rows, found = ct.load(tmp_path / "model"), pl.read_csv(data), pl.read_csv(out)
    coef = dict(zip(model.nodes_.tolist(), model.coef_, strict=True))
    z = np.array([coef[str(node)] @ [x0, x1] for node, x0, x1 in rows.select("node", "x0", "x1").rows()])
    assert found["node"].to_list() == rows["node"].to_list()
    if loss == "logistic":
        np.testing.assert_allclose(found["probability"], 1 / (1 + np.exp(-z)), rtol=1e-12)
        assert found["prediction"].to_list() == (z > 0).astype(int).tolist()
    else:
        np.testing.assert_allclose(found["prediction"], z, rtol=1e-12)


def test_inspect(tmp_path: Path) -> None:
    _, outcome = federate(tmp_path)
    done = command("inspect", tmp_path / "model")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "federation of 3 sites (east, north, west)" in said
    assert "only its sites know which rows have labels" in said
    assert "0 labelled rows" not in said
    found = json.loads(command("inspect", tmp_path / "model", "--json").stdout)
    assert found["status"] == "OPTIMAL"
    assert found["gap"] == outcome.gap
    assert found["labelled_rows"] is found["labelled_nodes"] is None
    assert found["notes"]["federation"]["sites"] == list(NAMES)


def test_report(tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="needs the extra coterie[report]")
    federate(tmp_path)
    done = command("report", tmp_path / "model", "--out", tmp_path / "report.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text()
    assert "federation of 3 sites (east, north, west)" in page
    assert "Only the sites of the federation know which nodes have labels." in page
    assert "0 of them with labels" not in page
    assert "labelled rows m" not in page


def test_a_private_model_opens_too(tmp_path: Path) -> None:
    pytest.importorskip("dp_accounting", reason="needs the extra coterie[privacy]")
    pytest.importorskip("plotly", reason="needs the extra coterie[report]")
    federate(tmp_path, share_weights=False, privacy_noise=5.0, privacy_clip=0.3)
    done = command("inspect", tmp_path / "model")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "No certificate: with differential privacy" in said
    assert "Differential privacy of epsilon = " in said
    assert "nan" not in said
    assert command("report", tmp_path / "model", "--out", tmp_path / "report.html").exit_code == 0
    page = (tmp_path / "report.html").read_text()
    assert "No certificate: with differential privacy" in page
    assert "<strong>nan</strong>" not in page
    predicted = command("predict", tmp_path / "model", tmp_path / "sites/north/data.csv", "--out", tmp_path / "p.csv")
    assert predicted.exit_code == 9  # inner nodes of a site are not in the model
    assert "is not a node of the graph" in predicted.output


def test_labels_that_stay_at_the_sites_resolve_nothing_here(tmp_path: Path) -> None:
    federate(tmp_path)
    done = command("resolve", tmp_path / "model")
    assert done.exit_code == 14
    assert "only the sites of a federation know which nodes have labels" in done.output


def test_a_server_that_would_learn_nothing_does_not_start(tmp_path: Path) -> None:
    federate(tmp_path)
    (tmp_path / "graph.csv").write_text("a,b,weight\n")
    config = {**CONFIG, "graph": str(tmp_path / "graph.csv"), "share-weights": False}
    with pytest.raises(ValueError, match="the server would learn nothing"):
        run(InProcessGrid([], config), config, tmp_path / "model")  # type: ignore[arg-type]
