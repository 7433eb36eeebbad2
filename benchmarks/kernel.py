"""The edge kernel beside the memory bandwidth of the machine. `make bench-kernel` runs this.

The triad a ← b + s·c moves 24 bytes an element. An edge pass must read and write the duals u once, 16 bytes for each
edge and coordinate; end points, strengths and node data come on top and are not counted, so the ratio is what a
pass over u alone would reach. Both are measured in turns, several times, and the best of each counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

import coterie as ct
from benchmarks.families import grid_edges
from benchmarks.report import text_table
from coterie.engines.base import Mode
from coterie.engines.numba import NumbaEngine
from coterie.solver.balance import Steps

SIDE, N, ROUNDS, ITERATIONS = 1000, 4, 7, 20
TRIAD_BYTES, EDGE_BYTES = 24, 16
PROMISED, SPEED_UP = 0.65, 1.6
HEAD = ("what", "threads", "ns per edge and coordinate", "GB/s", "of the triad")


@numba.njit(fastmath=True, nogil=True)
def triad(a, b, c, s):
    """a ← b + s·c."""
    for k in range(len(a)):
        a[k] = b[k] + s * c[k]


def grid_problem(side: int = SIDE, n: int = N) -> ct.Problem:
    """A grid with n coordinates, all nodes labelled."""
    rng = np.random.default_rng(0)
    V = side * side
    data = ct.LocalDatasets.from_rows(rng.standard_normal((V, n)), rng.standard_normal(V), np.arange(V))
    return ct.Problem(ct.EmpiricalGraph.from_edges(grid_edges(side)), data, lam=0.1)


def engine_for(problem: ct.Problem, threads: int) -> NumbaEngine:
    """An engine that has iterated a little."""
    engine, steps, n = NumbaEngine(threads=threads), Steps.of(problem.bound), problem.n_features
    engine.setup(problem.bound, np.zeros((problem.graph.n_nodes, n)), np.zeros((problem.graph.n_edges, n)))
    engine.set_steps(steps.tau, steps.sigma)
    engine.advance(ITERATIONS, Mode.RELAXED)
    return engine


def edge_pass(engine: NumbaEngine) -> None:
    """The dual half of an iteration on all edges."""
    engine._edge_pass(engine._factors(Mode.RELAXED), Mode.RELAXED)


def advance_seconds(problem: ct.Problem, threads: int, rounds: int = 5) -> float:
    """Seconds of one iteration, at best."""
    engine = engine_for(problem, threads)
    return best_of(lambda: engine.advance(ITERATIONS, Mode.RELAXED), rounds) / ITERATIONS


def best_of(work: Callable[[], object], rounds: int) -> float:
    """The least wall-clock seconds of several."""
    return min(seconds(work) for _ in range(rounds))


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(side: int, rounds: int) -> tuple[list[float], dict[tuple[str, int], float]]:
    """Bytes per second of the triad, on one thread and on two; seconds of each piece of work, by name and threads."""
    problem = grid_problem(side)
    a, b, c = (np.full(max(20_000_000 * side // SIDE, 1000), float(k)) for k in range(3))
    middle, helper = len(a) // 2, ThreadPoolExecutor(1)

    def halves() -> None:
        other = helper.submit(triad, a[:middle], b[:middle], c[:middle], 3.0)
        triad(a[middle:], b[middle:], c[middle:], 3.0)
        other.result()

    works: dict[tuple[str, int], Callable[[], object]] = {
        ("triad", 1): lambda: triad(a, b, c, 3.0),
        ("triad", 2): halves,
    }
    for threads in (1, 2):
        engine = engine_for(problem, threads)
        works["edge pass", threads] = lambda engine=engine: edge_pass(engine)
        works["iteration", threads] = lambda engine=engine: engine.advance(ITERATIONS, Mode.RELAXED)
    best = dict.fromkeys(works, np.inf)
    for _ in range(rounds + 1):
        for name, work in works.items():
            best[name] = min(best[name], seconds(work))
    bandwidths = [TRIAD_BYTES * len(a) / best.pop(("triad", threads)) for threads in (1, 2)]
    return bandwidths, {name: s / (ITERATIONS if name[0] == "iteration" else 1) for name, s in best.items()}


def report(bandwidths: list[float], best: dict[tuple[str, int], float], size: int) -> str:
    """The table, and whether the promises are kept; `size` counts edge coordinates."""
    bandwidth = bandwidths[0]
    rates = {name: EDGE_BYTES * size / s for name, s in best.items()}
    rows = [
        (what, str(t), f"{1e9 * best[what, t] / size:.2f}", f"{rate / 1e9:.1f}", f"{rate / bandwidth:.0%}")
        for (what, t), rate in rates.items()
    ]
    ratio = rates["edge pass", 1] / bandwidth
    faster = {what: best[what, 1] / best[what, 2] for what in ("edge pass", "iteration")}
    return "\n".join(
        [
            f"triad: {bandwidth / 1e9:.1f} GB/s on one thread, {bandwidths[1] / bandwidth:.2f} × that on two",
            text_table(HEAD, rows),
            f"edge pass, one thread: {ratio:.0%} of the triad; promised {PROMISED:.0%}: {_word(ratio >= PROMISED)}",
            f"two threads: edge pass {faster['edge pass']:.2f} ×, iteration {faster['iteration']:.2f} × one thread; "
            f"promised {SPEED_UP:g} ×: {_word(faster['edge pass'] >= SPEED_UP)}",
        ]
    )


def _word(kept: bool) -> str:
    return "kept" if kept else "not kept"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel", description=__doc__)
    parser.add_argument("--side", type=int, default=SIDE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    print(report(*measure(given.side, given.rounds), 2 * given.side * (given.side - 1) * N))
