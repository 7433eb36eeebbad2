"""coterie fit as an MPI job: one rank speaks and writes, and what it writes is what one process would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import coterie as ct

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or MPIEXEC is None, reason="mpi4py or mpiexec is not installed (coterie[mpi])"
)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options of a fit of twenty places in two clusters."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(80)
    y = np.where(np.arange(80) < 40, x, -x) + 0.1 * rng.standard_normal(80)
    rows = [f"p{r // 4},{x[r]:.4f},{y[r]:.4f}" for r in range(80)]
    pairs = [(i, i + step) for step in (1, 3) for i in range(20 - step)]
    (tmp_path / "data.csv").write_text("\n".join(["place,x,y", *rows]))
    (tmp_path / "edges.csv").write_text("\n".join(["a,b", *(f"p{i},p{j}" for i, j in pairs)]))
    monkeypatch.chdir(tmp_path)
    return ["--node", "place", "--target", "y", "--graph", "edges.csv", "--lam", "0.1", "--no-baselines"]


def run(*command: str, ranks: int = 0) -> subprocess.CompletedProcess[str]:
    launch = [str(MPIEXEC), "-n", str(ranks)] if ranks else []
    # PMI_… of a job in which the tests themselves may run would make a rank of this
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI"))}
    return subprocess.run(
        [*launch, sys.executable, "-m", "coterie", "fit", *command],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment | {"OMP_NUM_THREADS": "1"},
    )


@needs_mpi
@pytest.mark.slow
def test_ranks_fit_what_one_process_fits(network: list[str]) -> None:
    done = run(
        "data.csv",
        *network,
        "--engine",
        "mpi",
        "--profile",
        "--out",
        "ranks",
        "--checkpoint",
        "kept",
        "--resume",
        ranks=2,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Model written to ranks") == 1
    assert done.stderr.count("kept holds no checkpoint of this fit, which began anew") == 1
    assert "2 ranks, " in done.stderr
    assert "bytes to neighbours" in done.stderr
    assert run("data.csv", *network, "--engine", "numpy", "--out", "alone").returncode == 0
    one, other = ct.load("ranks"), ct.load("alone")
    assert one.gap_ <= 1e-6
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)


@needs_mpi
@pytest.mark.slow
def test_errors_are_said_once(network: list[str]) -> None:
    done = run("nothing.csv", *network, "--engine", "mpi", "--out", "model", ranks=2)
    assert done.returncode != 0
    assert done.stderr.count("nothing.csv: there is no such file") == 1
    assert not Path("model").exists()


@pytest.mark.slow
def test_alone_it_says_how_to_launch(network: list[str]) -> None:
    done = run("data.csv", *network, "--engine", "mpi", "--out", "model")
    assert done.returncode != 0
    assert "--engine mpi: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("model").exists()
    done = run("data.csv", *network, "--profile", "--out", "model")
    assert "--profile and --checkpoint belong to --engine mpi" in done.stderr
    done = run("data.csv", *network, "--resume", "--out", "model")
    assert "--resume goes on from what --checkpoint holds: name that folder" in done.stderr
