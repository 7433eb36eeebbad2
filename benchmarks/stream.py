"""One pass over rows that do not fit in memory, beside a bare scan. `make bench-stream` runs this.

Writes 50 million rows (10 features and a label, 10,000 nodes in random order) as Parquet into a temporary folder, then
reads them in turns: once to add up every column, which is the least that any reading costs, and once for the moments
of every node. Each reading is a process of its own with the same threads. A tiny table comes first, so that imports and
compilation do not count, and one reading of all files, so that both find them in the system's cache.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe, peak_mb
from benchmarks.report import text_table

ROWS, NODES, FEATURES, PART, ROUNDS = 50_000_000, 10_000, 10, 2_500_000, 3
GIGABYTES, TIMES = 1.5, 3.0  # what was promised
ROOT = Path(__file__).parents[1]
HEAD = ("what", "wall s", "CPU s", "peak MB", "before the pass, MB")


def write(folder: Path, rows: int) -> None:
    """Write random rows, a file at a time."""
    import polars as pl

    rng = np.random.default_rng(0)
    w = rng.standard_normal((FEATURES, NODES))
    for start in range(0, rows, PART):
        size = min(PART, rows - start)
        node, X = rng.integers(0, NODES, size), rng.standard_normal((FEATURES, size))
        y = rng.standard_normal(size)
        for k in range(FEATURES):
            y += w[k, node] * X[k]
        table = pl.DataFrame({"node": node, **{f"x{k}": X[k] for k in range(FEATURES)}, "y": y})
        table.write_parquet(folder / f"part-{start // PART:04}.parquet")


def bare(folder: Path) -> int:
    """Add up every column in one query; return the number of rows."""
    import polars as pl

    query = pl.scan_parquet(folder).select(pl.all().sum(), rows=pl.len())
    return query.collect(engine="streaming")["rows"].item()


def moments(folder: Path) -> int:
    """Compute the moments of every node; return the number of rows."""
    from coterie.io.rows import Columns
    from coterie.io.stream import stream_moments

    return int(stream_moments(folder, Columns.of(folder, "node", "y")).m.sum())


WORKS = {"bare": bare, "moments": moments}


def worker(what: str, folder: Path) -> dict[str, Any]:
    """One reading of all rows in this process."""
    with tempfile.TemporaryDirectory() as tiny:
        write(Path(tiny), 1000)
        WORKS[what](Path(tiny))
    before, wall, cpu = peak_mb(), time.perf_counter(), time.process_time()
    rows = WORKS[what](folder)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"rows": rows, "wall": wall, "cpu": cpu, "peak": peak_mb(), "before": before}


def statistics_mb() -> float:
    """What the moments of all nodes take while they are computed: m, origin, mean, comoments' triangle."""
    q = FEATURES + 1
    return 8 * NODES * (1 + 2 * q + q * (q + 1) // 2) / 1e6


def measure(folder: Path, rows: int, rounds: int) -> dict[str, dict[str, float]]:
    """Read in turns; the least times and the largest peak of each."""
    _elsewhere("bare", folder)
    runs: dict[str, list[dict[str, float]]] = {what: [] for what in WORKS}
    for what in [*WORKS] * rounds:
        runs[what].append(_elsewhere(what, folder))
        if runs[what][-1]["rows"] != rows:
            raise RuntimeError(f"{what} read {runs[what][-1]['rows']} of {rows} rows")
    best = {"wall": min, "cpu": min, "peak": max, "before": min}
    return {what: {key: of(run[key] for run in done) for key, of in best.items()} for what, done in runs.items()}


def report(found: dict[str, dict[str, float]], rows: int) -> str:
    """The table, and whether the promises are kept."""
    lines = [
        (what, f"{run['wall']:.1f}", f"{run['cpu']:.1f}", f"{run['peak']:.0f}", f"{run['before']:.0f}")
        for what, run in found.items()
    ]
    ratio = {key: found["moments"][key] / found["bare"][key] for key in ("wall", "cpu")}
    beyond = (found["moments"]["peak"] - statistics_mb()) / 1e3
    return "\n".join(
        [
            f"{rows:,} rows × {FEATURES} features, {NODES:,} nodes; {date.today():%d %B %Y}; " + "; ".join(describe()),
            text_table(HEAD, lines),
            f"time: {ratio['wall']:.2f} × a bare scan (CPU time {ratio['cpu']:.2f} ×); "
            f"promised {TIMES:g} ×: {_word(ratio['wall'] <= TIMES)}",
            f"memory: {beyond:.2f} GB of the whole process beyond the statistics ({statistics_mb():.0f} MB); "
            f"promised {GIGABYTES:g} GB: {_word(beyond <= GIGABYTES)}",
        ]
    )


def _word(kept: bool) -> str:
    return "kept" if kept else "not kept"


def _elsewhere(what: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.stream", "--worker", what, "--folder", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what} failed: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main(folder: Path, rows: int, rounds: int) -> str:
    """Write, unless the folder holds files already, and measure."""
    if not any(folder.glob("*.parquet")):
        write(folder, rows)
    return report(measure(folder, rows, rounds), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where the rows are, or are written and kept; needs 4 GB")
    parser.add_argument("--worker", choices=WORKS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(worker(given.worker, given.folder)))
    elif given.folder:
        given.folder.mkdir(parents=True, exist_ok=True)
        print(main(given.folder, given.rows, given.rounds))
    else:
        with tempfile.TemporaryDirectory() as made:
            print(main(Path(made), given.rows, given.rounds))
