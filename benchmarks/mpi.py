"""Ranks beside threads: strong and weak scaling of the MPI engine, and a model of time against ranks.

    python -m benchmarks.mpi [--scale 0.1] [--tol 1e-4] [--weak]
    python -m benchmarks.mpi --files [--scale 0.1] [--tol 1e-4]

Every line is a job of its own on family f (the block model of a million nodes and ten million edges, n = 10, times the
scale): threads in one process, or ranks under mpiexec. Times of iterations are medians over blocks of 20, in turns with
nobody; peak memory is what the kernel says of the largest process. A ping-pong between two ranks gives latency and
bandwidth of this machine, and with the time of one rank the model; its assumptions are printed with it.

With --files, rows and edges are in Parquet files, and a job is all that `coterie fit` does: one process reads them and
solves with two threads, or two ranks read a share each and keep their own nodes; both write the model.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

BLOCK, BLOCKS = 20, 7
MESSAGE = 1 << 20  # bytes of the ping-pong that gives the bandwidth
PINGS = 200
NODE_BYTES = 80  # of x of one node, n = 10


def worker(kind: str, count: int, scale: float, tol: float) -> dict[str, Any]:
    """Iterations and a certified solve; at rank 0, what came out."""
    import coterie as ct
    from benchmarks.families import large_blocks
    from coterie.engines.base import Engine, Mode
    from coterie.engines.numba import NumbaEngine
    from coterie.kernels.choice import using
    from coterie.kernels.forms import Form
    from coterie.solver.balance import Steps

    def engine() -> Engine:
        if kind == "threads":
            return NumbaEngine(count)
        from coterie.engines.mpi.engine import MpiEngine

        return MpiEngine(Form.THIS_N)

    problem = large_blocks(scale).bound
    ct.solve(large_blocks(0.001), tol, engine=engine())  # compiles
    shape = (problem.graph.n_nodes, 10), (problem.graph.n_edges, 10)
    with using(Form.THIS_N):
        steps, run = Steps.of(problem), engine()
        run.setup(problem, *map(np.zeros, shape))
        run.set_steps(steps.tau, steps.sigma)
        times = []
        for _ in range(BLOCKS):
            began = time.perf_counter()
            run.advance(BLOCK, Mode.RELAXED)
            times.append((time.perf_counter() - began) / BLOCK)
    found: dict[str, Any] = {"kind": kind, "count": count, "nodes": shape[0][0], "edges": shape[1][0]}
    found |= {"iteration": float(np.median(times)), "fastest": min(times)}
    if kind == "ranks":
        profile = run.crew.profile  # type: ignore[attr-defined]
        found["halo_nodes"] = len(run.part.halo.receive)  # type: ignore[attr-defined]
        found["waiting"] = profile.seconds["waiting while iterating"] / max(profile.seconds["iterating"], 1e-9)
    del run
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        solution = ct.solve(problem, tol, engine=engine())
    found |= {"solve": time.perf_counter() - began, "n_iter": solution.n_iter, "gap": solution.gap}
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def write_files(folder: Path, scale: float) -> None:
    """The rows and edges of family f as tables."""
    import polars as pl

    from benchmarks.families import large_blocks

    problem = large_blocks(scale)
    names = pl.Series(np.arange(problem.graph.n_nodes)).cast(pl.String)
    i, j = problem.graph.edges.T
    pl.DataFrame({"from": names.gather(i), "to": names.gather(j)}).write_parquet(folder / "edges.parquet")
    data = problem.data
    columns = {f"x{k}": column for k, column in enumerate(data.X.T)}
    table = pl.DataFrame({"node": names.gather(data.nodes), **columns, "y": data.y})
    table.write_parquet(folder / "rows.parquet", row_group_size=50_000)


def timed(kind: str) -> list[float]:
    """The seconds of an iteration in every block from now on; the median leaves out what compiles."""
    if kind == "ranks":
        from coterie.engines.mpi.engine import MpiEngine as Iterating
    else:
        from coterie.engines.numba import NumbaEngine as Iterating  # type: ignore[assignment]
    advance, blocks = Iterating.advance, []

    def taking_the_time(self: Any, n_iter: int, mode: Any) -> float:
        began = time.perf_counter()
        residual = advance(self, n_iter, mode)
        blocks.append((time.perf_counter() - began) / n_iter)
        return residual

    Iterating.advance = taking_the_time  # type: ignore[method-assign]
    return blocks


def fit(kind: str, count: int, folder: Path, tol: float) -> dict[str, Any]:
    """Read, solve and write; at rank 0, what came out."""
    import coterie as ct
    from coterie.io.edges import read_graph
    from coterie.io.formats import Table
    from coterie.io.rows import Columns
    from coterie.problem.convert import Measure

    rows, edges, began = Table(folder / "rows.parquet"), Table(folder / "edges.parquet"), time.perf_counter()
    how: dict[str, Any] = {"weight_by": "nodes", "standardize": False, "fit_intercept": False, "tol": tol}
    engine = "mpi" if kind == "ranks" else "numba"
    model, blocks = ct.NetworkedLinearRegression(lam=5e-3, engine=engine, **how), timed(kind)
    found: dict[str, Any] = {"kind": kind, "count": count}
    if kind == "ranks":
        from coterie.estimators.by_ranks import RankFit

        RankFit(model, rows, edges, Columns.of(rows, "node", "y"), Measure(), None, lambda line: None).fit()
    else:
        model.set_params(graph=read_graph(edges), threads=count)
        ct.fit_files(model, rows, node="node", target="y")
    found["iteration"] = float(np.median(blocks))
    model.save(folder / f"{kind}-{count}")
    solution = model.solution_
    found |= {"nodes": solution.graph.n_nodes, "edges": solution.graph.n_edges, "n_iter": solution.n_iter}
    found |= {"solve": solution.seconds, "all": time.perf_counter() - began, "gap": solution.gap}
    return found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def fits(scale: float, tol: float) -> None:
    """One process beside ranks that hold their own nodes."""
    print("| | nodes | edges | ms an iteration | iterations | gap | solve s | all s | peak MB, the largest |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        launched(0, "--write", folder, str(scale))
        for kind, count in (("threads", 2), ("ranks", 2)):
            job = launched(count if kind == "ranks" else 0, "--fit", kind, str(count), folder, str(tol))
            pace = f"{1e3 * job['iteration']:.1f} | {job['n_iter']} | {job['gap']:.1e}"
            sizes = f"{job['nodes']:,} | {job['edges']:,} | {pace}"
            print(
                f"| {count} {kind} | {sizes} | {job['solve']:.1f} | {job['all']:.1f} | {job['peak']:.0f} |", flush=True
            )


def ping() -> dict[str, float]:
    """Latency and bandwidth between two ranks, as the engine sends."""
    from coterie.engines.mpi.crew import crew

    ranks, out = crew(), {}
    for name, size in (("latency", 8), ("bandwidth", MESSAGE)):
        here, there = np.zeros(size, dtype=np.uint8), np.empty(size, dtype=np.uint8)
        times = []
        for _ in range(PINGS):
            began = time.perf_counter()
            ranks.wait(ranks.comm.Irecv(there, 1 - ranks.rank), ranks.comm.Isend(here, 1 - ranks.rank))
            times.append(time.perf_counter() - began)
        out[name] = float(np.median(times)) if name == "latency" else size / float(np.median(times))
    return out


def launched(ranks: int, *arguments: str) -> dict[str, Any]:
    """What a job of so many ranks, or one process, says."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    launch = [str(shutil.which("mpiexec", path=beside)), "-n", str(ranks)] if ranks else []
    command = [*launch, sys.executable, "-m", "benchmarks.mpi", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def scaling(scale: float, tol: float, weak: bool) -> list[dict[str, Any]]:
    """Threads and ranks on one problem; with `weak`, on one that grows with the ranks."""
    jobs = [("threads", 1), ("threads", 2)] * (not weak) + [("ranks", count) for count in (1, 2, 4)]
    found = []
    for kind, count in jobs:
        size = scale * count / 4 if weak else scale
        found.append(launched(count if kind == "ranks" else 0, "--job", kind, str(count), str(size), str(tol)))
        print(line(found[-1]), flush=True)
    return found


def line(job: dict[str, Any]) -> str:
    """One row of the table."""
    ranks = f"{job['halo_nodes']:,} | {job['waiting']:.0%}" if job["kind"] == "ranks" else " | "
    times = f"{1e3 * job['iteration']:.1f} | {1e3 * job['fastest']:.1f}"
    solve = f"{job['solve']:.1f} | {job['n_iter']} | {job['gap']:.1e} | {job['peak']:.0f}"
    return f"| {job['count']} {job['kind']} | {job['nodes']:,} | {job['edges']:,} | {times} | {ranks} | {solve} |"


def model(job: dict[str, Any], network: dict[str, float]) -> list[str]:
    """Seconds for an iteration against ranks: t = E·t_edge/P + halo bytes/bandwidth + neighbours × latency.

    Assumed: one rank a core, each at the pace of the one measured; clusters are not cut, and the 2 % of the edges that
    lead to other clusters lead to other ranks: a rank hears of a node for each of them, from 64 peers at most.
    """
    edge = job["iteration"] / job["edges"]
    pace = f"{1e6 * network['latency']:.0f} µs, {network['bandwidth'] / 1e9:.2f} GB/s"
    rows = [f"t_edge {1e9 * edge:.2f} ns, latency and bandwidth {pace}"]
    rows.append("| edges | ranks | compute ms | halo MB a rank | exchange ms | efficiency |\n|---|---|---|---|---|---|")
    for edges in (1e7, 1e8, 1e9, 1e10):
        for ranks in (2, 16, 128, 1024):
            halo = min(0.02 * edges / ranks * 2 * (1 - 1 / ranks), edges / 10)
            compute, peers = edges * edge / ranks, min(ranks - 1, 64)
            exchange = halo * NODE_BYTES / network["bandwidth"] + peers * network["latency"]
            rows.append(
                f"| {edges:.0e} | {ranks} | {1e3 * compute:.3g} | {halo * NODE_BYTES / 1e6:.3g} | {1e3 * exchange:.3g} "
                f"| {compute / (compute + exchange):.0%} |"
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--weak", action="store_true")
    parser.add_argument("--job", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--ping", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--fit", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        kind, count, scale, tol = given.job
        found = worker(kind, int(count), float(scale), float(tol))
        print(json.dumps(found) if kind == "threads" or _first() else "")
        return
    if given.write:
        write_files(Path(given.write[0]), float(given.write[1]))
        print("{}")
        return
    if given.fit:
        kind, count, folder, tol = given.fit
        found = largest(fit(kind, int(count), Path(folder), float(tol)), kind)
        print(json.dumps(found) if kind == "threads" or _first() else "")
        return
    if given.files:
        fits(given.scale, given.tol)
        return
    if given.ping:
        found = ping()
        print(json.dumps(found) if _first() else "")
        return
    print(
        "| | nodes | edges | ms an iteration | fastest | halo nodes | waiting | solve s | iterations | gap | peak MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    jobs = scaling(given.scale, given.tol, given.weak)
    alone = next(job for job in jobs if job["kind"] == "ranks" and job["count"] == 1)
    print("\n".join(model(alone, launched(2, "--ping"))))


def largest(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """What a rank says, with the largest peak of all."""
    if kind == "threads":
        return found
    from coterie.engines.mpi.crew import crew

    return found | {"peak": crew().most(found["peak"])}


def _first() -> bool:
    from coterie.engines.mpi.crew import crew

    return crew().rank == 0


if __name__ == "__main__":
    main()
