"""Whether this process is a rank of an MPI job, and how to make it one. mpi4py is loaded when asked for."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

PATIENCE = 600.0  # seconds that a peer may be silent; COTERIE_MPI_PATIENCE sets another number
INSTALL = "install mpi4py and an MPI (mpich), the extra coterie[mpi]"
RANK_MARKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_RANK")
SIZE_MARKS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE")


class NotLaunched(RuntimeError):  # noqa: N818  it says what to do
    """This process is no rank of an MPI job; the message says how to launch one."""


def missing() -> str | None:
    """What the engine lacks here, and what to do about it, in a sentence; None where nothing is missing."""
    if find_spec("mpi4py") is None:
        return f'engine="mpi" needs mpi4py, which is not installed: {INSTALL}'
    if not any(name in os.environ for name in RANK_MARKS):
        return (
            'engine="mpi" runs in several processes, and this one was started alone: put mpiexec -n 4 (on Slurm: srun) '
            "in front of the command, as in mpiexec -n 4 python script.py, or leave engine out"
        )
    return None


def patience() -> float:
    """How many seconds a peer may be silent."""
    return float(os.environ.get("COTERIE_MPI_PATIENCE") or PATIENCE)


@contextmanager
def all_ranks_must_start() -> Iterator[None]:
    """Inside, MPI itself waits for all ranks. Where one never comes, this process says where it stood, and ends.

    A thread of faulthandler watches, which needs no Python to run meanwhile.
    """
    faulthandler.dump_traceback_later(patience(), exit=True, file=sys.__stderr__ or 2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def world() -> Any:
    """The communicator of all ranks; `NotLaunched` where there are none, or where they do not see each other."""
    if (reason := missing()) is not None:
        raise NotLaunched(reason)
    with all_ranks_must_start():
        from mpi4py import MPI

    launched = max((int(os.environ[name]) for name in SIZE_MARKS if name in os.environ), default=1)
    if MPI.COMM_WORLD.size < launched:
        library = MPI.Get_library_version().splitlines()[0]
        raise NotLaunched(
            f"the launcher has started {launched} processes, but mpi4py sees {MPI.COMM_WORLD.size}: it works with "
            f"{library}, so use the mpiexec of that (python -c 'import sys; print(sys.prefix)' says where it may be)"
        )
    return MPI.COMM_WORLD
