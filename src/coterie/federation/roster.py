"""Who is who: the names of the keys that a SuperLink knows, by the ids that it has given them.

`coterie federate serve` writes the file and names it in the environment of all that it starts, also of ServerApps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from coterie.io.files import write_whole

ROSTER = "COTERIE_ROSTER"  # in the environment: the path of the file


def read_roster() -> dict[int, str]:
    """The name of each SuperNode, by its id; empty where the SuperLink knows no keys."""
    path = os.environ.get(ROSTER)
    if path is None:
        return {}
    return {int(node): str(name) for name, node in json.loads(Path(path).read_text(encoding="utf-8")).items()}


def write_roster(path: Path, ids: Mapping[str, int]) -> None:
    """Write the id of each name."""
    write_whole(path, (json.dumps(dict(ids), indent=2) + "\n").encode())
