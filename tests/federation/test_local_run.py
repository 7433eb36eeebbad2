from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coterie.federation import local
from coterie.federation.local import LocalFederation


def test_a_run_that_ends_while_it_is_asked_for_its_state_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = tmp_path / "progress.jsonl"

    class Slow(LocalFederation):
        def flwr(self, *arguments: str) -> str:
            progress.write_text(json.dumps({"done": "OPTIMAL"}) + "\n")
            return "finished:completed"

    monkeypatch.setattr(local, "LOOK", 0.0)
    superlink: Any = SimpleNamespace(poll=lambda: None)
    federation = Slow(tmp_path, [], tmp_path, processes={"superlink": superlink})
    assert list(federation._lines(progress)) == [{"done": "OPTIMAL"}]
