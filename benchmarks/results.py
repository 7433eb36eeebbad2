"""What came out: runs of one solver on one family, and how long it took to a target."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON", "BLIS", "VECLIB_MAXIMUM")
}


@dataclass(frozen=True)
class Run:
    """One run: the setting, its CPU seconds, and the objective that came out."""

    setting: float
    seconds: float
    objective: float
    n_iter: int | None
    gap: float | None
    peak_mb: float


@dataclass(frozen=True)
class Result:
    """All runs of a solver on a family; `trouble` says why there are no more."""

    family: str
    peer: str
    runs: tuple[Run, ...]
    trouble: str = ""
    limit: float = 0.0

    def run_to(self, target: float, optimum: float) -> Run | None:
        """The first run that came as close as `target`: certified for Coterie, by the objective for the others."""
        for run in self.runs:
            certified = run.gap is not None and run.gap <= target and run.setting <= target
            close = run.objective <= optimum + target * abs(optimum)
            if certified if self.peer == "Coterie" else close:
                return run
        return None

    def seconds_to(self, target: float, optimum: float) -> float | None:
        """CPU seconds of that run."""
        run = self.run_to(target, optimum)
        return None if run is None else run.seconds

    def at_least(self, target: float, optimum: float) -> float | None:
        """The seconds to a target; where the solver ran out of time before, the limit; None if it never gets there."""
        seconds = self.seconds_to(target, optimum)
        if seconds is not None:
            return seconds
        return self.limit if self.out_of_time else None

    @property
    def out_of_time(self) -> bool:
        return self.trouble.startswith("over")

    @property
    def applies(self) -> bool:
        return bool(self.runs) or self.out_of_time


@dataclass
class Findings:
    """Everything that was measured: results by family and solver; each family's best objective; its certified gap."""

    results: dict[tuple[str, str], Result] = field(default_factory=dict)
    optima: dict[str, float] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)

    def add(self, family: str, reference: Run, found: list[Result]) -> None:
        """Note the results of all solvers on a family."""
        self.results |= {(family, result.peer): result for result in found}
        self.optima[family] = min([reference.objective, *(run.objective for result in found for run in result.runs)])
        self.gaps[family] = float("inf") if reference.gap is None else reference.gap


def measure(family: str, peer: str, python: str = sys.executable, **options: float) -> Result:
    """Run the worker; options are scale, seed, limit and optimum."""
    arguments = [text for name, value in options.items() for text in (f"--{name}", repr(value))]
    limit = options.get("limit", 180.0)
    try:
        done = subprocess.run(
            [python, "-m", "benchmarks.worker", family, peer, *arguments],
            env=os.environ | ONE_THREAD,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=20 * limit + 600,
        )
    except subprocess.TimeoutExpired:
        return Result(family, peer, (), "did not end", limit)
    return read(done.stdout, done.returncode, done.stderr, Result(family, peer, (), limit=limit))


def read(output: str, code: int, errors: str, empty: Result) -> Result:
    """Make a result of what the worker printed and how it ended."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    runs = tuple(Run(**line) for line in lines if "trouble" not in line)
    trouble = next((line["trouble"] for line in lines if "trouble" in line), "")
    if code == -signal.SIGXCPU:
        trouble = f"over {empty.limit:g} s"
    elif code == -signal.SIGKILL:
        trouble = "killed (out of memory?)"
    elif code != 0:
        trouble = "failed: " + (errors.strip().splitlines() or ["?"])[-1][:80]
    return replace(empty, runs=runs, trouble=trouble)
