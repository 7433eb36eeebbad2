"""A command that several ranks of an MPI job run: one of them speaks and writes, and all end together."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from coterie.cli.errors import BadInputError


@contextmanager
def ranks(engine: str) -> Iterator[bool]:
    """Inside, all ranks do the same; given is whether this process is the one that speaks and writes.

    An error that only some ranks have, such as a file that one host lacks, ends them all.
    """
    if engine != "mpi":
        yield True
        return
    from coterie.engines.mpi.launch import missing

    if (reason := missing()) is not None:
        raise BadInputError(f"--engine mpi: {reason}")
    from coterie.engines.mpi.crew import RankFailed, crew

    all_ranks = crew()
    first = all_ranks.rank == 0
    if not first:  # to the end of the process
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        with all_ranks.ending_together():
            try:
                yield first
            except typer.Exit:  # all is done, and who writes may take longer than the others
                all_ranks.any(False)
                raise
    except RankFailed as error:
        raise BadInputError(str(error)) from None


def profile() -> list[str]:
    """Where the time of the ranks went; every rank must ask."""
    from coterie.engines.mpi.crew import crew

    all_ranks = crew()
    return all_ranks.profile.lines(all_ranks)


@contextmanager
def keeping(folder: Path | None, resume: bool) -> Iterator[Callable[[], bool]]:
    """Inside, solves are kept in a folder, if one is named; given is how to ask whether one went on from there."""
    if folder is None:
        if resume:
            raise BadInputError("--resume goes on from what --checkpoint holds: name that folder")
        yield lambda: False
        return
    from coterie.engines.mpi.checkpoint import keeping as kept

    with kept(folder, resume=resume) as checkpoints:
        yield lambda: checkpoints.resumed > 0
