"""The engine on MPI: jobs of one to four ranks, each of which checks many cases (`mpi_ranks.py`)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import coterie as ct
from coterie.engines.mpi import launch
from coterie.problem import LocalDatasets
from problems import EVERY_LOSS, instance

MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
RANKS = Path(__file__).parent / "mpi_ranks.py"
if find_spec("mpi4py") is not None:
    from coterie.engines.mpi.assignment import best, cut_part, in_ranges, work

needs_mpi = pytest.mark.skipif(
    find_spec("mpi4py") is None or MPIEXEC is None, reason="mpi4py or mpiexec is not installed (coterie[mpi])"
)


def begin(ranks: int, name: str, **environment: str) -> subprocess.Popen[str]:
    """A job in which every rank does what `name` says."""
    assert MPIEXEC is not None
    return subprocess.Popen(
        [MPIEXEC, "-n", str(ranks), sys.executable, str(RANKS), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )


def told(job: subprocess.Popen[str]) -> tuple[int, str]:
    """How a job ends, and all that it says."""
    out, err = job.communicate(timeout=500)
    return job.returncode, out + err


def all_is_fine(job: subprocess.Popen[str]) -> None:
    code, said = told(job)
    assert code == 0, said
    assert "fine\n" in said


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_same_answers_with_any_number_of_ranks(ranks: int) -> None:
    all_is_fine(begin(ranks, "numpy"))


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_same_answers_where_nobody_holds_the_whole(ranks: int) -> None:
    all_is_fine(begin(ranks, "parts"))


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranks", "name"), [(3, "reading"), (2, "refusals"), (3, "fits"), (3, "choices"), (2, "full_disk")]
)
def test_files_that_ranks_read_together(ranks: int, name: str, tmp_path: Path) -> None:
    all_is_fine(begin(ranks, name, FILES=str(tmp_path)))


@needs_mpi
@pytest.mark.slow
def test_the_same_answers_from_compiled_kernels() -> None:
    all_is_fine(begin(2, "compiled"))


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("name", ["limits", "differences"])
def test_all_ranks_end_alike(name: str) -> None:
    all_is_fine(begin(3, name))


@pytest.mark.slow
@needs_mpi
def test_a_rank_that_fails_alone_ends_the_job() -> None:
    code, said = told(begin(2, "failure"))
    assert code != 0
    assert "coterie: rank 1 of 2 ends the job: MemoryError: there is no more" in said


@pytest.mark.slow
@needs_mpi
def test_nobody_waits_for_a_silent_peer_for_ever() -> None:
    code, said = told(begin(2, "silence", COTERIE_MPI_PATIENCE="2"))
    assert code != 0
    assert "coterie: rank 0 of 2 ends the job: a peer has been silent for 2 seconds" in said


def pids_of(job: subprocess.Popen[str], folder: Path) -> list[int]:
    """The processes of a job of two ranks, which say who they are."""
    files = [folder / f"{rank}.pid" for rank in range(2)]
    while not all(file.exists() for file in files):
        assert job.poll() is None, told(job)
        time.sleep(0.05)
    return [int(file.read_text()) for file in files]


@needs_mpi
@pytest.mark.slow
def test_a_killed_job_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    job = begin(2, "keeps", KEPT=str(tmp_path), PIDS=str(tmp_path))
    pids = pids_of(job, tmp_path)
    while not (tmp_path / "index.json").exists() or '"n_iter": 0' in (tmp_path / "index.json").read_text():
        time.sleep(0.05)
        assert job.poll() is None, told(job)
    os.kill(pids[1], signal.SIGKILL)
    assert told(job)[0] != 0
    all_is_fine(begin(3, "resumes", KEPT=str(tmp_path)))


@needs_mpi
@pytest.mark.slow
def test_parts_go_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    for ranks in (2, 3):
        all_is_fine(begin(ranks, "keeps_parts", KEPT=str(tmp_path / "kept"), FILES=str(tmp_path)))


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it is more than a number that nobody has asked for yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.slow
@needs_mpi
def test_a_killed_rank_ends_the_job(tmp_path: Path) -> None:
    job = begin(2, "forever", PIDS=str(tmp_path))
    pids = pids_of(job, tmp_path)
    os.kill(pids[1], signal.SIGKILL)
    code, _ = told(job)
    assert code != 0
    while is_running(pids[0]):  # mpiexec has been told to end it, and may be faster
        time.sleep(0.05)


def test_alone_it_says_how_to_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in launch.RANK_MARKS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(launch, "find_spec", lambda name: "there")
    with pytest.raises(launch.NotLaunched, match=r"mpiexec -n 4 python script\.py"):
        ct.solve(instance(), engine="mpi")
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    with pytest.raises(launch.NotLaunched, match=r"needs mpi4py, which is not installed: .*coterie\[mpi\]"):
        ct.solve(instance(), engine="mpi")
    with pytest.raises(ValueError, match="launch more ranks instead of threads=2"):
        ct.solve(instance(), engine="mpi", threads=2)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_losses_of_some_nodes_are_those_losses(loss: ct.Loss) -> None:
    problem = instance("few points", loss)
    which, rng = np.array([7, 2, 3]), np.random.default_rng(0)
    some, w = problem.f.of_nodes(which), rng.standard_normal((len(problem.M), 3))
    np.testing.assert_allclose(some.value(w[which]), problem.f.value(w)[which])
    np.testing.assert_allclose(some.exact(w[which]), problem.f.exact(w)[which])
    tau = rng.uniform(0.1, 1.0, len(w))
    prox = some.prox(w[which], tau[which], w[which])
    np.testing.assert_allclose(prox, problem.f.prox(w, tau, w)[which], rtol=1e-6, atol=1e-8)
    none = problem.f.of_nodes(np.empty(0, dtype=np.int64))
    assert none.exact(w[:0]).shape == (0,)
    assert none.prox(w[:0], tau[:0], w[:0]).shape == (0, 3)


def test_rows_with_offsets_are_shared_out() -> None:
    data = LocalDatasets.from_rows(np.eye(3), [1.0, 2.0, 3.0], [0, 1, 1], offset=[0.1, 0.2, 0.3])
    some = data.labelled.of_nodes(np.array([1, 0]))
    assert some.y.tolist() == [2.0, 3.0, 1.0]
    assert some.offset is not None
    assert some.offset.tolist() == [0.2, 0.3, 0.1]
    assert some.starts.tolist() == [0, 2, 3]


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed (coterie[mpi])")
def test_nodes_are_shared_out_by_their_work() -> None:
    cost = np.array([5.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert in_ranges(cost, 2).tolist() == [0, 1, 1, 1, 1, 1]
    assert in_ranges(np.ones(3), 5).max() <= 4
    problem = instance("few labelled").bound
    assert (work(problem) > 0).all()
    assert work(problem)[problem.M].min() > work(problem)[1]


@pytest.mark.skipif(find_spec("mpi4py") is None or find_spec("pymetis") is None, reason="pymetis is not installed")
def test_metis_finds_what_no_range_does() -> None:
    ring = np.arange(40)
    even, odd = (np.stack([half, np.roll(half, 1)], axis=1) for half in (ring[::2], ring[1::2]))
    graph = ct.EmpiricalGraph.from_edges(np.concatenate([even, odd, [[0, 1]]]))
    of = best(graph, np.ones(40), 2)
    assert cut_part(graph, of) == pytest.approx(1 / graph.n_edges)
    assert np.bincount(of).tolist() == [20, 20]
