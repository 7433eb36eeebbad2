from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coterie.federation import local
from coterie.federation.fork_server import ForkServer
from coterie.federation.local import LocalError, LocalFederation


def test_a_run_that_ends_while_it_is_asked_for_its_state_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = tmp_path / "progress.jsonl"

    class Slow(LocalFederation):
        def flwr(self, *arguments: str) -> str:
            progress.write_text(json.dumps({"done": "OPTIMAL"}) + "\n")
            return "finished:completed"

    monkeypatch.setattr(local, "LOOK", 0.0)
    server: Any = SimpleNamespace(poll=lambda: None)
    federation = Slow(tmp_path, [], tmp_path, processes={"server": server})
    assert list(federation._lines(progress, "1")) == [{"done": "OPTIMAL"}]


def test_a_site_that_cannot_take_part_is_named_with_its_last_words(tmp_path: Path) -> None:
    ended: Any = SimpleNamespace(poll=lambda: 1)
    (tmp_path / "north.log").write_text("coterie: there is no site.toml\n")
    federation = LocalFederation(tmp_path, [tmp_path / "north"], tmp_path, processes={"north": ended})
    with pytest.raises(LocalError, match=r"'north' cannot take part: there is no site\.toml \(its log is .*north\.log"):
        federation._tend()


@pytest.mark.skipif(shutil.which("bash") is None, reason="starts bash")
def test_programs_end_with_a_code_and_all_that_run_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    programs = ForkServer(os.environ, log)
    done = programs.start(log, "bash", "-c", "echo done; exit 3")
    endless = programs.start(log, "bash", "-c", "exec sleep 1000")
    assert done.wait() == done.poll() == 3
    assert log.read_text() == "done\n"
    assert endless.poll() is None
    programs.close()
    with pytest.raises(ProcessLookupError):
        os.kill(endless.pid, 0)
    with pytest.raises(RuntimeError, match="has died"):
        programs.start(log, "bash")
