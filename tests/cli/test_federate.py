from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coterie.cli import app
from coterie.federation.policy import Policy

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


def test_a_site_without_a_policy_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "fed"
    run(app, ["federate", "init", str(folder)])
    (folder / "sites" / "north" / "site.toml").unlink()
    done = run(app, ["federate", "run", "--local", str(folder / "sites")])
    assert done.exit_code == 2
    assert "north has no site.toml; `coterie federate init --site" in done.output.replace("\n", "")


def test_the_policy_of_a_site_is_written_for_its_owner_to_read(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("station,height,rain\na,1.0,2.0\n")
    command = ["federate", "init", "--site", str(tmp_path), "--node", "station", "--label", "rain"]
    assert run(app, command).exit_code == 0
    policy = Policy.read(tmp_path)
    assert (policy.node, policy.label, policy.features) == ("station", "rain", ("height",))
    assert (policy.nodes, policy.share_weights) == (frozenset(), False)
    assert "site.toml exists" in run(app, command).output
    assert run(app, ["federate", "init"]).exit_code == run(app, ["federate", "init", "x", "--site", "y"]).exit_code == 2
    assert run(app, ["federate", "init", "--site", str(tmp_path / "nowhere")]).exit_code == 2


def test_nothing_is_joined_or_served_without_what_makes_it_safe(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="needs the extra coterie[flower]")
    (tmp_path / "site").mkdir()
    join = ["federate", "join", "--folder", str(tmp_path / "site")]
    done = run(app, [*join, "server.example.org:8000"])
    assert done.exit_code == 2
    assert "without it nothing is encrypted" in done.output
    done = run(app, [*join, "127.0.0.1:1"])
    assert done.exit_code == 1
    assert "there is no site.toml" in done.output
    serve = ["federate", "serve", "--keys", str(tmp_path), "--state", str(tmp_path / "state")]
    for option in ("--ca", "--certificate", "--private-key"):
        serve += [option, str(tmp_path / "nothing")]
    done = run(app, serve)
    assert done.exit_code == 2
    assert "there is no such file" in done.output.replace("\n", "")


def test_a_site_from_which_nothing_has_left_has_no_log(tmp_path: Path) -> None:
    done = run(app, ["federate", "audit", str(tmp_path)])
    assert done.exit_code == 2
    assert "nothing has left it" in done.output
