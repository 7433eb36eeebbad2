"""Ctrl-C in a real process, on a real terminal."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import coterie as ct
from coterie.cli.codes import ExitCode

COTERIE = (sys.executable, "-c", "from coterie.cli import app; app()")


def until(terminal, word, seconds=60):
    """Read what a process writes to its terminal until this word comes up."""
    seen, end = b"", time.monotonic() + seconds
    while word not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 1 << 16)
    assert word in seen, seen[-1000:]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_fit_that_is_ended_writes_the_best_model_so_far(tmp_path, number):
    rng = np.random.default_rng(0)
    V, m = 3000, 4
    chain = np.stack([np.arange(V - 1), np.arange(1, V)], axis=1)
    pairs = np.unique(np.sort(np.concatenate([chain, rng.integers(0, V, (3 * V, 2))]), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    weights = np.exp(2 * rng.standard_normal(len(pairs)))
    pl.DataFrame({"i": pairs[:, 0], "j": pairs[:, 1], "weight": weights}).write_parquet(tmp_path / "edges.parquet")
    X = rng.standard_normal((V * m, 3))
    table = {"node": np.repeat(np.arange(V), m), **{f"x{k}": X[:, k] for k in range(3)}}
    pl.DataFrame(table | {"y": rng.standard_normal(V * m)}).write_parquet(tmp_path / "rows.parquet")
    master, slave = pty.openpty()
    files = (tmp_path / "rows.parquet", "--graph", tmp_path / "edges.parquet", "--out", tmp_path / "model")
    options = ("--engine", "numpy", "--lam", "0.02", "--tol", "1e-15", "--max-iter", "10000000")
    process = subprocess.Popen(
        [*COTERIE, "fit", *map(str, files), "--node", "node", "--target", "y", *options],
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(slave)
    try:
        until(master, b"gap")  # the progress of the solve
        process.send_signal(number)
        until(master, b"interrupted; the best model so far")
        stdout = process.communicate(timeout=60)[0]
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert process.returncode == ExitCode.INTERRUPTED
    assert stdout.startswith("Not converged")
    model = ct.load(tmp_path / "model")
    assert model.solution_.status is ct.Status.INTERRUPTED
    assert 1e-15 < model.gap_ < np.inf
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.parquet", "model", "rows.parquet"]


@pytest.mark.slow
def test_nothing_but_results_in_a_pipe(tmp_path):
    from commands import FIT, write

    data, graph = write(tmp_path)
    arguments = ("fit", str(data), *FIT, "--graph", str(graph), "--lam", "0.1", "--out", str(tmp_path / "model"))
    done = subprocess.run([*COTERIE, *arguments], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("Error on held-out ")
    assert "\x1b" not in done.stdout
