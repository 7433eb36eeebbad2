"""What the files that Benchopt reads have in common. Benchopt finds this package by its name, and nothing else."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchopt import BaseDataset, BaseSolver

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.families import FAMILIES
from benchmarks.peers import PEERS

if PEERS["PDLP (dual)"].installed:
    import_module("ortools.pdlp.python.pdlp")  # before CVXPY: both bring HiGHS, and OR-tools accepts its own only

LARGE = 1_000_000  # edges above which only Coterie is run
LOOSEST = 0.1  # Benchopt begins with an infinite tolerance


class FamilyDataset(BaseDataset):
    """A family of benchmarks.families; a subclass has the parameters family, scale and seed."""

    def get_data(self) -> dict[str, Any]:
        return {"problem": FAMILIES[self.family].build(self.scale, self.seed)}


class PeerSolver(BaseSolver):
    """A solver of benchmarks.peers; a subclass has its name there."""

    sampling_strategy = "tolerance"

    def skip(self, problem: Any) -> tuple[bool, str | None]:
        peer = PEERS[self.name]
        reason = peer.refuses(problem) if peer.installed else f"{peer.needs} is not installed"
        if self.name != "Coterie" and problem.graph.n_edges > LARGE:
            reason = "too large"
        return bool(reason), reason or None

    def set_objective(self, problem: Any) -> None:
        self.model = PEERS[self.name].prepare(problem)

    def run(self, stop_val: float) -> None:
        setting = stop_val if self.sampling_strategy == "iteration" else min(stop_val, LOOSEST)
        self.answer = PEERS[self.name].run(self.model, setting)

    def get_result(self) -> dict[str, Any]:
        return {"w": self.answer.w}
