"""Family f: a million nodes on two cores, and how the time of an iteration grows with the graph."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.families import FAMILIES
from benchmarks.results import ONE_THREAD, ROOT

THREADS, TOL = 2, 1e-4
SCALES = (0.01, 0.1, 1.0)  # 10⁵, 10⁶ and 10⁷ edges
MINUTES, GIGABYTES, GROWTH = 15, 6, 1.2  # what was promised
TIME_LIMIT = 3600.0


def solve(scale: float, seed: int) -> dict[str, Any]:
    """Solve f with two threads; wall-clock seconds, since two cores are what it is given."""
    from benchmarks.peers import coterie, ingredients
    from benchmarks.worker import TINY, peak_mb

    family = FAMILIES["f"]
    coterie(ingredients(family.build(min(TINY, scale) / 20, seed)), TOL, THREADS)
    parts = ingredients(family.build(scale, seed))
    began = time.perf_counter()
    answer = coterie(parts, TOL, THREADS, TIME_LIMIT)
    seconds = time.perf_counter() - began
    edges = parts["graph"].n_edges
    return {"edges": edges, "seconds": seconds, "n_iter": answer.n_iter, "gap": answer.gap, "peak_mb": peak_mb()}


def iteration(scale: float, seed: int) -> dict[str, Any]:
    """Nanoseconds of an iteration per edge and coordinate."""
    from benchmarks.kernel import advance_seconds

    problem = FAMILIES["f"].build(scale, seed)
    E, n = problem.graph.n_edges, problem.n_features
    return {"edges": E, "ns": 1e9 * advance_seconds(problem, THREADS) / (E * n)}


def section(scale: float, seed: int) -> str:
    """Run everything; return a part of the page."""
    done = _elsewhere("solve", scale, seed)
    times = [_elsewhere("iteration", scale * part, seed) for part in SCALES]
    growth = max(t["ns"] for t in times) / min(t["ns"] for t in times)
    kept = done["gap"] <= TOL and done["seconds"] <= 60 * MINUTES and done["peak_mb"] <= 1e3 * GIGABYTES
    lines = [
        "## Family f\n",
        f"{FAMILIES['f'].what}; {THREADS} threads, wall-clock time.\n",
        f"{done['edges']:,} edges: certified gap {done['gap']:.1e} after {done['n_iter']} iterations and "
        f"{done['seconds']:.0f} s, peak {done['peak_mb'] / 1e3:.1f} GB. Promised: {TOL:g} within {MINUTES} minutes "
        f"and {GIGABYTES} GB. Kept: {'yes' if kept else 'no'}.\n",
        "Time of an iteration: "
        + ", ".join(f"{t['ns']:.2f} ns per edge and coordinate at {t['edges']:,} edges" for t in times)
        + f"; largest over smallest: {growth:.2f}. Promised: at most {GROWTH:g}. "
        + f"Kept: {'yes' if growth <= GROWTH else 'no'}.\n",
    ]
    return "\n".join(lines)


def _elsewhere(what: str, scale: float, seed: int) -> dict[str, Any]:
    """Do it in a process of its own, so that its memory is its own."""
    command = [sys.executable, "-m", "benchmarks.large", what, "--scale", repr(scale), "--seed", str(seed)]
    done = subprocess.run(command, env=os.environ | ONE_THREAD, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["solve", "iteration"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps({"solve": solve, "iteration": iteration}[given.what](given.scale, given.seed)))
