"""coterie fit as an MPI job: one rank speaks and writes, and what it writes is what one process would."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

import coterie as ct
from coterie.cli.codes import ExitCode
from coterie.cli.errors import BadInputError
from coterie.cli.ranks import _as_of_one_process, refuse_partition, why_whole
from coterie.io import errors
from coterie.io.formats import Table

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
    for said in ("reading", "assigning nodes", "taking a part", "iterating", "writing", "bytes to neighbours"):
        assert f"  {said} " in done.stderr
    assert run("data.csv", *network, "--engine", "numpy", "--out", "alone").returncode == 0
    one, other = ct.load("ranks"), ct.load("alone")
    assert one.gap_ <= 1e-6
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-3)


@needs_mpi
@pytest.mark.slow
def test_ranks_read_parquet_and_go_by_a_partition(network: list[str]) -> None:
    rows = pl.read_csv("data.csv").with_columns(
        pl.when(pl.col("y") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("y")
    )
    rows.write_parquet("data.parquet", row_group_size=7)
    Path("parts.csv").write_text("node,part\n" + "".join(f"p{i},{2 * (i % 2)}\n" for i in range(20)))
    logistic = ["data.parquet", *network, "--loss", "logistic", "--scale"]
    done = run(*logistic, "--engine", "mpi", "--partition", "parts.csv", "--json", "--out", "ranks", ranks=3)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["labelled_rows"] == 80
    assert run(*logistic, "--engine", "numpy", "--out", "alone").returncode == 0
    one, other = ct.load("ranks"), ct.load("alone")
    assert one.classes_.tolist() == ["no", "yes"]
    assert one.nodes_.tolist() == other.nodes_.tolist()
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-2)
    np.testing.assert_allclose(one.node_errors_, other.node_errors_, atol=1e-3)
    assert sorted(len(part) for part in (load_file(path)["w"] for path in Path("ranks").glob("*-of-3-*"))) == [
        0,
        10,
        10,
    ]


@needs_mpi
@pytest.mark.slow
def test_errors_are_said_once(network: list[str]) -> None:
    done = run("nothing.csv", *network, "--engine", "mpi", "--out", "model", ranks=2)
    assert done.returncode != 0
    assert done.stderr.count("nothing.csv: there is no such file") == 1
    assert not Path("model").exists()


@needs_mpi
@pytest.mark.slow
def test_any_option_that_differs_is_named(network: list[str]) -> None:
    given = ["data.csv", *network, "--engine", "mpi", "--out", "model"]
    other = [":", "-n", "1", sys.executable, "-m", "coterie", "fit", *given]
    done = run(*given, "--checkpoint", "kept", *other, ranks=1)
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.count("rank 1 has another --checkpoint than rank 0") == 1
    assert not Path("model").exists()


@needs_mpi
@pytest.mark.slow
def test_data_that_a_rank_cannot_use_have_the_code_of_one_process(network: list[str]) -> None:
    Path("data.csv").write_text(Path("data.csv").read_text() + "\nnowhere,1,2")
    codes = [
        run("data.csv", *network, "--engine", name, "--out", "model", ranks=n) for name, n in (("mpi", 2), ("numpy", 0))
    ]
    assert [done.returncode for done in codes] == [ExitCode.UNKNOWN_NODE, ExitCode.UNKNOWN_NODE]
    assert (
        "rank 1 of 2 cannot use its share of data.csv: data.csv: column 'place', row 81: 'nowhere'" in codes[0].stderr
    )
    assert not Path("model").exists()


def test_errors_of_ranks_are_those_of_one_process() -> None:
    assert type(_as_of_one_process("rank 1 cannot: PermissionError: no", "PermissionError")) is PermissionError
    assert str(_as_of_one_process("rank 1 cannot: BadValueError: no", "BadValueError")) == "rank 1 cannot: no"
    assert type(_as_of_one_process("rank 1 cannot: ValueError: no", "ValueError")) is errors.DataError
    for kind in ("MemoryError", "annotations", ""):
        assert type(_as_of_one_process("rank 1 cannot", kind)) is BadInputError


@pytest.mark.slow
def test_alone_it_says_how_to_launch(network: list[str]) -> None:
    done = run("data.csv", *network, "--engine", "mpi", "--out", "model")
    assert done.returncode != 0
    assert "--engine mpi: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("model").exists()
    done = run("data.csv", *network, "--profile", "--out", "model")
    assert "--profile, --checkpoint and --partition belong to --engine mpi" in done.stderr
    done = run("data.csv", *network, "--resume", "--out", "model")
    assert "--resume goes on from what --checkpoint holds: name that folder" in done.stderr


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed (coterie[mpi])")
def test_what_needs_the_whole_problem_says_so(network: list[str]) -> None:
    rows, edges = Table("data.csv"), Table("edges.csv")
    linear = ct.NetworkedLinearRegression(lam=0.1)
    assert why_whole(linear, rows, edges, knn=None, baselines=False) is None
    assert why_whole(linear, rows, edges, shared=True) == "--shared asks for it"
    assert why_whole(ct.NetworkedLassoCV(), rows, edges) is None
    assert why_whole(ct.NetworkedLassoCV(criterion="bic"), rows, edges) == "--lam bic asks for it"
    assert why_whole(ct.NetworkedLassoCV(refine_strength=True), rows, edges) == "--refine-strength asks for it"
    assert why_whole(ct.NetworkedLasso(lam=0.0), rows, edges) == "--lam is 0"
    assert why_whole(ct.NetworkedPoissonRegression(lam=0.1), rows, edges) is None
    with gzip.open("data.csv.gz", "wb") as packed:
        packed.write(Path("data.csv").read_bytes())
    assert "cannot be read in shares" in str(why_whole(linear, Table("data.csv.gz"), edges))
    with pytest.raises(BadInputError, match=r"--partition p\.csv: every rank holds the whole problem here, as it must"):
        refuse_partition(Path("p.csv"), "it must")
    refuse_partition(None, "it must")
