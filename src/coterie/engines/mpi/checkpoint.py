"""Checkpoints: every rank keeps the weights and duals of its part, and any number of ranks can go on from there.

A folder holds one file per rank, in numbers of the whole network, and `index.json`, which names them. Files are written
under new names, the index takes the place of the old one when all ranks are done, and only then are old files removed:
whenever a job is killed, the folder holds one whole checkpoint, or none.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from coterie.engines.mpi.crew import RankFailed
from coterie.engines.mpi.part import Part, find
from coterie.kernels.interruption import seconds_worked
from coterie.problem.arrays import Array

INDEX, VERSION = "index.json", 1


class Checkpoints:
    """A folder in which a solve is kept.

    Attributes
    ----------
    folder : Path
    every : float
        Seconds between two checkpoints.
    resume : bool
        Whether to go on from what is there.
    resumed : int
        The iterations that had been done where a solve went on; 0: none did.
    """

    def __init__(self, folder: Path, every: float, resume: bool) -> None:
        self.folder, self.every, self.resume, self.resumed = folder, every, resume, 0
        self.last, self.problem, self.done, self.run = 0.0, "", 0, 0

    def begin(self, problem: str, part: Part, w: Array, u: Array) -> None:
        """Take up a solve; where a checkpoint of the problem of this name is there, w and u become what it holds."""
        self.problem, self.last, self.done = problem, seconds_worked(), 0
        self.run = int(part.crew.of_first(np.array([time.time_ns()]))[0])  # no two solves use the same names
        if self.resume:
            found = part.crew.do(self._index, f"read {self.folder / INDEX}")
            if found is not None and found["problem"] == self.problem:
                part.crew.do(lambda: self._fill(found, part, w, u), f"read the checkpoint in {self.folder}")
                self.resumed = self.done = int(found["n_iter"])

    def is_due(self) -> bool:
        return seconds_worked() - self.last >= self.every

    def write(self, part: Part, w: Array, u: Array) -> None:
        """Keep the weights and duals of all parts."""
        ranks = part.crew.size
        names = [f"{self.run:x}-{self.done}-{rank}-of-{ranks}.safetensors" for rank in range(ranks)]
        own, counted = slice(part.own), slice(part.counted)
        arrays = {"nodes": part.nodes[own], "w": w[own], "edges": part.edges[counted], "u": (u * part.sign)[counted]}
        path = self.folder / names[part.crew.rank]
        try:
            part.crew.do(lambda: _replace(path, lambda to: _save(arrays, to)), f"write {path}")
        except RankFailed:
            path.unlink(missing_ok=True)  # what is there is the checkpoint before
            raise
        part.crew.do(lambda: None if part.crew.rank else self._point_to(names), f"write {self.folder / INDEX}")
        self.last = seconds_worked()

    def _point_to(self, names: list[str]) -> None:
        """Let the index name these files, and remove those of before."""
        index = {"version": VERSION, "problem": self.problem, "n_iter": self.done, "files": names}
        _replace(self.folder / INDEX, lambda to: to.write_text(json.dumps(index)))
        for old in self.folder.glob("*-of-*.safetensors*"):
            if old.name not in names:
                old.unlink(missing_ok=True)

    def _index(self) -> dict[str, Any] | None:
        path = self.folder / INDEX
        if not path.exists():
            return None
        found = json.loads(path.read_text())
        if found.get("version") != VERSION:
            raise ValueError(f"it is of version {found.get('version')}, and version {VERSION} is known")
        return found

    def _fill(self, index: dict[str, Any], part: Part, w: Array, u: Array) -> None:
        """Put what all files hold of this part into w and u."""
        for kind, called, out, name in (("nodes", part.nodes, w, "w"), ("edges", part.edges, u, "u")):
            order = np.argsort(called)
            for path in index["files"]:
                with safe_open(self.folder / path, framework="numpy") as file:
                    at, rows = find(called[order], file.get_tensor(kind)), file.get_tensor(name)
                    out[order[at[at >= 0]]] = rows[at >= 0]
        u *= part.sign


_kept: ContextVar[Checkpoints | None] = ContextVar("where solves are kept", default=None)


@contextmanager
def keeping(folder: str | Path, every: float = 60.0, resume: bool = False) -> Iterator[Checkpoints]:
    """Inside, solves of the MPI engine keep checkpoints in a folder; with `resume`, they go on from the last one."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    token = _kept.set(Checkpoints(path, every, resume))
    try:
        kept = _kept.get()
        assert kept is not None
        yield kept
    finally:
        _kept.reset(token)


@contextmanager
def not_keeping() -> Iterator[None]:
    """Inside, solves are not kept: those of folds are many and short, and would take the place of what is kept."""
    token = _kept.set(None)
    try:
        yield
    finally:
        _kept.reset(token)


def checkpoints() -> Checkpoints | None:
    """Where solves are kept here, if anywhere."""
    return _kept.get()


def _save(arrays: dict[str, Array], to: Path) -> None:
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, to)


def _replace(path: Path, write: Any) -> None:
    """Write a file whole, or not at all."""
    rough = path.with_name(path.name + ".part")
    try:
        write(rough)
        os.replace(rough, path)
    except BaseException:
        rough.unlink(missing_ok=True)
        raise
