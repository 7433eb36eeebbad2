import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import assert_one_line, run

import coterie
from coterie.cli.codes import CODES, ExitCode
from coterie.cli.screen import show_table
from coterie.io import errors


def test_version():
    assert run("--version").stdout == f"coterie {coterie.__version__}\n"


def test_help_names_the_commands_and_the_exit_codes():
    text = " ".join(run("--help").output.replace("│", " ").split())
    for command in ("fit", "predict", "inspect", "coefficients", "report", "graph", "resolve", "demo", "paper"):
        assert f" {command} " in text
        assert run(command, "--help").exit_code == 0
    for code in ExitCode:
        assert f"{code:d} {code.sentence}" in text


def test_every_exit_code_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for code in ExitCode:
        assert f"| {code:d} | `{code.name}` | {code.sentence} |" in page


def test_every_error_about_data_has_a_code_of_its_own():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert set(CODES) == set(kinds)
    assert len(set(CODES.values())) == len(kinds)


def test_completion_can_be_installed():
    assert "--install-completion" in run("--help").output


def test_help_imports_nothing_heavy():
    heavy = ("numpy", "scipy", "sklearn", "matplotlib", "polars")
    code = f"import sys, coterie.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_demo(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split("  ")[0] == "method"
    assert [line.split("  ")[0] for line in lines[1:4]] == ["certified optimum", "Algorithm 1", "linear regression"]
    assert float(lines[1].split()[4]) <= 1e-6
    assert str(tmp_path / "demo" / "network.png") in lines[-1]
    assert (tmp_path / "demo" / "network.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == ""


@pytest.mark.slow
def test_paper_quick(tmp_path, monkeypatch):
    less = classmethod(lambda plan, seeds: plan(seeds, (1e-3,), (1e-3, 0.4), (1e-3,)))
    monkeypatch.setattr("coterie.experiments.paper.Plan.quick", less)
    result = run("paper", "--quick", "--seeds", 1, "--out", tmp_path / "paper")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 1 + 8 + 2
    assert sum(line.startswith("as printed") for line in lines) == 4
    page = (tmp_path / "paper" / "paper.md").read_text(encoding="utf-8")
    assert "coterie paper --quick --seeds 1" in page
    assert sorted(p.name for p in (tmp_path / "paper" / "figures").iterdir()) == ["iterations.png", "p_out.png"]


@pytest.mark.parametrize("command", ["demo", "paper"])
def test_out_that_is_a_file(command, tmp_path):
    (tmp_path / "taken").write_text("mine")
    assert_one_line(run(command, "--out", tmp_path / "taken"), 2, "is a file; name a folder")
    assert_one_line(run(command, "--out", tmp_path / "taken" / "below"), 2, "is a file; name a folder")
    assert (tmp_path / "taken").read_text() == "mine"


def test_out_that_cannot_be_written_to(tmp_path, monkeypatch):
    def refused(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    assert_one_line(run("demo", "--out", tmp_path / "x"), ExitCode.FAILED, tmp_path, "cannot be written to")


@pytest.mark.parametrize("seeds", [0, -3])
def test_too_few_seeds(seeds, tmp_path):
    assert_one_line(run("paper", "--seeds", seeds, "--out", tmp_path / "x"), 2, "--seeds must be at least 1")
    assert not (tmp_path / "x").exists()


def test_negative_seed(tmp_path):
    assert_one_line(run("demo", "--seed", -1, "--out", tmp_path / "x"), 2, "--seed must be 0 or more")


@pytest.mark.parametrize("command", ["demo", "paper"])
def test_missing_matplotlib(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert_one_line(run(command, "--out", tmp_path / "x"), 1, "coterie[plot]")
    assert not list(tmp_path.iterdir())


def test_interruption_writes_nothing(tmp_path, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("coterie.experiments.methods.algorithm1", interrupt)
    assert_one_line(run("paper", "--out", tmp_path / "x"), 130, "interrupted")
    assert not list(tmp_path.iterdir())


def test_a_warning_is_one_line(tmp_path, monkeypatch):
    from coterie.experiments import methods

    solve = methods.solve
    monkeypatch.setattr(methods, "solve", lambda problem, tol: solve(problem, tol, max_iter=1))
    result = run("demo", "--out", tmp_path / "x")
    assert result.exit_code == 0
    assert result.stderr.startswith("coterie: warning: The iteration limit was reached")
    assert result.stderr.count("\n") == 1


def test_a_table_on_a_terminal_is_drawn(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show_table(("method", "error"), [("ours", "1"), ("theirs", "2")])
    assert "──" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_output_works_in_any_encoding(tmp_path, encoding):
    """In a pipe signs are ASCII, so that tables can be parsed; what an encoding cannot hold is escaped."""
    code = "from coterie.cli.echo import echo; echo('λ = −1 … Åre ☃')"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    expected = {"cp1252": "Åre \\u2603", "ascii": "\\xc5re \\u2603", "utf-8": "Åre ☃"}[encoding]
    assert done.stdout.decode(encoding).rstrip() == f"lambda = -1 ... {expected}"
