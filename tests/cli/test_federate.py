from __future__ import annotations

import tomllib
from pathlib import Path

from typer.testing import CliRunner

from coterie.cli import app

run = CliRunner().invoke


def test_init_writes_an_app_with_sites_and_the_graph_between_them(tmp_path: Path) -> None:
    folder = tmp_path / "my-federation"
    done = run(app, ["federate", "init", str(folder)])
    assert done.exit_code == 0
    assert "coterie federate run --local" in done.output
    config = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert config["config"]["lam"] == 0.01
    for name in ("client_app.py", "server_app.py"):
        compile((folder / "federation" / name).read_text(), name, "exec")
    assert sorted(path.name for path in (folder / "sites").iterdir()) == ["east", "north", "west"]
    own = [set(_column(folder / "sites" / name / "data.csv")) for name in ("east", "north", "west")]
    assert not own[0] & own[1]
    assert set(_column(folder / "graph.csv")) <= own[0] | own[1] | own[2]


def _column(path: Path) -> list[str]:
    return [line.split(",")[0] for line in path.read_text().splitlines()[1:]]


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "fed" / "sites" / "a").mkdir(parents=True)
    cases = [
        (["init", str(tmp_path / "there")], "there exists; name a new folder"),
        (["init", str(tmp_path / "under_score")], "letters, digits and hyphens"),
        (["run", "--local", str(tmp_path / "there")], "there is no folder with a site in it"),
        (["run", "--local", str(tmp_path / "nowhere")], "there is no folder with a site in it"),
        (["run", "--local", str(tmp_path / "fed" / "sites")], "has no pyproject.toml"),
    ]
    for arguments, message in cases:
        done = run(app, ["federate", *arguments])
        assert done.exit_code == 2, done.output
        assert message in done.output.replace("\n", "")


def test_a_site_without_data_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "fed"
    run(app, ["federate", "init", str(folder)])
    (folder / "sites" / "north" / "data.csv").unlink()
    done = run(app, ["federate", "run", "--local", str(folder / "sites")])
    assert done.exit_code == 2
    assert "north has neither data.parquet nor data.csv" in done.output
