"""What a federation leaves behind: a folder with the weights and the record of how good they are."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coterie.io.files import staged_file, write_whole
from coterie.io.model import plain
from coterie.problem.arrays import Array


def write_model(out: Path, nodes: Sequence[str], features: Sequence[str], w: Array, record: Mapping[str, Any]) -> None:
    """Write `weights.csv` (one row per node) and `model.json` (the record)."""
    write_weights(out / "weights.csv", nodes, features, w)
    whole = plain({"format": "coterie-federated", "version": 1, **record})
    text = json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(out / "model.json", f"{text}\n".encode())


def write_weights(path: Path, nodes: Sequence[str], features: Sequence[str], w: Array) -> None:
    """Write one row per node, with as many digits as it takes to read the same numbers back."""
    with staged_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["node", *features])
        writer.writerows([node, *(repr(float(x)) for x in row)] for node, row in zip(nodes, w, strict=True))
