"""The commands of docs/cli.md run, one after the other, on the files that its Python blocks write."""

import re
import shlex
from pathlib import Path

import pytest
from commands import run

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^\$ coterie (.*?)(?:  # exit code (\d+))?$(?:\n(coterie: .*))?", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_the_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec("".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)), {})
    commands = COMMAND.findall(PAGE)
    assert len(commands) == 17
    for words, code, message in commands:
        result = run(*shlex.split(words))
        assert result.exit_code == int(code or 0), (words, result.output)
        assert message in result.stderr
    assert {"model", "coefficients.csv", "predictions.parquet", "report.html", "edges.csv"} <= {
        path.name for path in tmp_path.iterdir()
    }
