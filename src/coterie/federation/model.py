"""What a federation leaves behind: a folder with the weights and the record of how good they are."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coterie.problem.arrays import Array


def write_model(out: Path, nodes: Sequence[str], features: Sequence[str], w: Array, record: Mapping[str, Any]) -> None:
    """Write `weights.csv` (a node a row) and `model.json` (the record)."""
    out.mkdir(parents=True, exist_ok=True)
    write_weights(out / "weights.csv", nodes, features, w)
    text = json.dumps({"format": "coterie-federated", "version": 1, **record}, indent=2, ensure_ascii=False)
    _write(out / "model.json", text + "\n")


def write_weights(path: Path, nodes: Sequence[str], features: Sequence[str], w: Array) -> None:
    """Write one row a node, with as many digits as it takes to read the same numbers back."""
    staged = path.with_name(f".{path.name}-{os.getpid()}")
    with staged.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["node", *features])
        writer.writerows([node, *(repr(float(x)) for x in row)] for node, row in zip(nodes, w, strict=True))
    os.replace(staged, path)


def _write(path: Path, text: str) -> None:
    staged = path.with_name(f".{path.name}-{os.getpid()}")
    staged.write_text(text, encoding="utf-8")
    os.replace(staged, path)
