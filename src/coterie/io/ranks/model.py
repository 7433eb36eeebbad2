"""A model that the ranks of an MPI job write together: each its own nodes, and the first one what names the files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from coterie.engines.mpi.crew import Crew
from coterie.io.files import staged
from coterie.io.model import remove_others, write_arrays, write_record
from coterie.io.model_parts import PARTS
from coterie.problem.arrays import Array


def write_together(
    crew: Crew, path: Path, record: Mapping[str, Any], shared: Mapping[str, Array], own: Mapping[str, Array]
) -> None:
    """Write a model to the folder `path`: `own` of every rank, then the rest, which is that of rank 0.

    The folder appears, or changes, when all files are there: where a rank fails, it is as it was.
    """
    first = crew.rank == 0
    with ExitStack() as stack:
        made = crew.do(lambda: stack.enter_context(staged(path)) if first else None, f"write to {path}")
        folder = Path(crew.text(str(made)))
        of = f"{crew.rank}-of-{crew.size}-"
        named = crew.do(lambda: write_arrays(folder, own, of), f"write its part of {path}")
        parts = [
            {"file": crew.text(named["file"], rank), "sha256": crew.text(named["sha256"], rank)}
            for rank in range(crew.size)
        ]

        def index() -> list[str]:
            rest = write_arrays(folder, shared)
            write_record(folder, {**record, "schema": PARTS}, {**rest, "parts": parts})
            return [rest["file"], *(part["file"] for part in parts)]

        files = crew.do(lambda: index() if first else [], f"write to {path}")
        crew.do(stack.close, f"write to {path}")
        if first:
            remove_others(path, files)
