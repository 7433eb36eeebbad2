"""Run commands, and files to run them on: twelve stations in two valleys."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
from typer.testing import CliRunner

from coterie.cli import app

STATIONS = [f"{valley}{k}" for valley in "ns" for k in range(6)]
FIT = ("--node", "station", "--target", "rain", "--features", "humidity,wind")


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def assert_one_line(result, code, *words):
    assert result.exit_code == code, result.stderr or result.exception
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("coterie: ")
    for word in words:
        assert str(word) in result.stderr, result.stderr
    assert result.stdout == ""


def parsed(result):
    """The one JSON object on standard output."""
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def rows(m=8, seed=0) -> pl.DataFrame:
    """Rows with coordinates; s5 has no labels."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(12), m))
    north = of < 6
    humidity, wind, noise = rng.standard_normal((3, len(of)))
    rain = np.where(north, 2.0, -2.0) * humidity + wind + 0.5 + 0.3 * noise
    return pl.DataFrame(
        {
            "station": [STATIONS[k] for k in of],
            "lat": np.where(north, 61.0, 59.0) + 0.1 * (of % 6),
            "lon": 20 + 0.1 * (of % 3),
            "humidity": humidity,
            "wind": wind,
            "rain": [None if k == 11 else value for k, value in zip(of, rain, strict=True)],
            "wet": (rain + rng.standard_normal(len(of)) > 0.5).astype(int),
        }
    )


def edges() -> pl.DataFrame:
    """Rings of six, and a bridge."""
    ring = [(6 * v + k, 6 * v + (k + 1) % 6, 1.0) for v in (0, 1) for k in range(6)]
    table = [(STATIONS[i], STATIONS[j], a) for i, j, a in [*ring, (0, 6, 0.25)]]
    return pl.DataFrame(table, schema=["from", "to", "weight"], orient="row")


def write(folder: Path, **changed: pl.DataFrame) -> tuple[Path, Path]:
    """Write rows.csv and edges.csv, and return their names."""
    folder.mkdir(exist_ok=True)
    for name, table in {"rows": rows(), "edges": edges()}.items():
        changed.get(name, table).write_csv(folder / f"{name}.csv")
    return folder / "rows.csv", folder / "edges.csv"


def with_value(table: pl.DataFrame, column: str, row: int, value) -> pl.DataFrame:
    """The table with another value in this row, counted from 1."""
    values = table[column].to_list()
    values[row - 1] = value
    return table.with_columns(pl.Series(column, values, strict=False))
