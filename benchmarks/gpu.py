"""The GPU engine beside the memory bandwidth of the same card, plain torch and MPAX, and end to end: one table each.

    python -m benchmarks.gpu [--quick] [--huge] [--only PART …] [--out FILE]

The *floor* of an iteration is what it must move: duals in and out once, ids of neighbours at both ends, strengths,
packed tables of primal updates, and weights, all in single precision, at the bandwidth of a large copy in this run.
Every time of an iteration is a median with device events, on random data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import coterie as ct
from benchmarks.families import FAMILIES
from benchmarks.quadratic_programs import dual, mpax
from coterie.engines.base import Mode
from coterie.engines.gpu.engine import GpuEngine
from coterie.engines.gpu.fused import FusedIteration
from coterie.engines.gpu.layout import Layout
from coterie.engines.gpu.order import clustered
from coterie.engines.gpu.prover import lanes
from coterie.engines.gpu.recording import repeatable

GPU = "cuda"
BLOCK = 20  # iterations that are timed together
REPEATS = 15

Edges = tuple[Any, Any]


def copy_bandwidth() -> float:
    """Bytes per second of a large copy, read and written."""
    x = torch.empty(1 << 29, dtype=torch.float32, device=GPU).normal_()
    y = torch.empty_like(x)
    return 8 * x.numel() / (median_ms(lambda: y.copy_(x)) * 1e-3)


def median_ms(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The median of many, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return float(np.median(times))


def block_model(V: int, E: int, clusters: int = 20, inside: float = 0.98) -> Edges:
    """Random edges, most of them inside clusters of consecutive nodes."""
    a = torch.randint(0, V, (E,), device=GPU)
    size = V // clusters
    near = a // size * size + torch.randint(0, size, (E,), device=GPU)
    b = torch.where(torch.rand(E, device=GPU) < inside, near.clamp(max=V - 1), torch.randint(0, V, (E,), device=GPU))
    return unique(a, b, V)


def grid(side: int) -> Edges:
    node = torch.arange(side * side, device=GPU).view(side, side)
    a = torch.cat([node[:, :-1].reshape(-1), node[:-1].reshape(-1)])
    b = torch.cat([node[:, 1:].reshape(-1), node[1:].reshape(-1)])
    return unique(a, b, side * side)


def neighbours(V: int, k: int = 6) -> Edges:
    """The k nearest of random points in the plane, numbered along a space-filling curve."""
    from scipy.spatial import cKDTree

    places = np.random.default_rng().random((V, 2))
    cell, code = (places * 1024).astype(np.int64), np.zeros(V, dtype=np.int64)
    for bit in range(10):
        code |= ((cell[:, 0] >> bit) & 1) << (2 * bit) | ((cell[:, 1] >> bit) & 1) << (2 * bit + 1)
    places = places[np.argsort(code, kind="stable")]
    near = cKDTree(places).query(places, k=k + 1, workers=-1)[1][:, 1:]
    own = torch.arange(V, device=GPU).repeat_interleave(k)
    return unique(own, torch.as_tensor(near.ravel(), device=GPU), V)


def star(leaves: int) -> Edges:
    other = torch.arange(1, leaves + 1, device=GPU)
    return torch.zeros_like(other).int(), other.int()


def unique(a: Any, b: Any, V: int) -> Edges:
    key = torch.unique((torch.minimum(a, b) * V + torch.maximum(a, b))[a != b])
    return (key // V).int(), (key % V).int()


def shuffled(edges: Edges, V: int) -> Edges:
    """The same graph, its nodes numbered at random."""
    number = torch.randperm(V, device=GPU)
    i, j = (number[end.long()] for end in edges)
    return unique(i, j, V)


def iteration(
    edges: Edges, V: int, n: int, labelled: float, weighted: bool, dtype: Any, order: Any = None
) -> FusedIteration:
    """The kernels' state on random numbers, with random tables of primal updates."""
    (i, j), E = edges, len(edges[0])
    known = torch.rand(V, device=GPU) < labelled
    c = 0.05 * (0.5 + torch.rand(E, device=GPU)) if weighted else torch.full((E,), 0.05, device=GPU)
    problem: Any = SimpleNamespace(
        M=torch.nonzero(known)[:, 0].cpu().numpy(),
        f=SimpleNamespace(quadratic=True),
        penalty=SimpleNamespace(kernel=ct.TotalVariation.kernel),
    )
    flows: Any = SimpleNamespace(
        c=c.double()[:, None], divergence=lambda u: torch.zeros((V, n), dtype=torch.float64, device=GPU)
    )
    layout = Layout(i, j, known, n, *lanes(n, 2 * E / V), order=order)
    u = 0.05 * (torch.rand((E, n), device=GPU) - 0.5)
    w = torch.randn((V, n), device=GPU)
    made = FusedIteration(problem, flows, layout, None, w, u, dtype)  # type: ignore[arg-type]
    made._set_updates = lambda dual: None  # type: ignore[method-assign]
    half = torch.full((max(V, E),), 0.5, dtype=torch.float64, device=GPU)
    made.set_steps(0.1 * half[:V], half[:E])
    made.tables.P.normal_().mul_(0.01)
    made.tables.q.normal_()
    return made


def pass_ms(made: FusedIteration) -> float:
    """Milliseconds for an iteration, of BLOCK in a row, recorded where the engine does so."""
    made._make_factors(BLOCK + 1, Mode.RELAXED)
    made._primal_half(0, made.x[0], Mode.RELAXED)

    def block() -> None:
        for k in range(BLOCK):
            made._pass(k, Mode.RELAXED)

    block()
    return median_ms(repeatable(block, made.u.numel(), made.layout.device) or block) / BLOCK


def plain_ms(edges: Edges, V: int, n: int) -> float:
    """The same iteration in plain torch, single precision: gathers, scatters, and a batched product at no node."""
    i, j = (end.long() for end in edges)
    state = [torch.randn((V, n), device=GPU), 0.05 * (torch.rand((len(i), n), device=GPU) - 0.5)]

    def step() -> None:
        w, u = state
        flow = torch.zeros_like(w).index_add_(0, i, u).index_add_(0, j, u, alpha=-1)
        h = w - 0.05 * flow
        x = 2 * h - w
        u_hat = (u + 0.5 * (x[i] - x[j])).clamp(-0.05, 0.05)
        state[:] = w + 1.9 * (h - w), u + 1.9 * (u_hat - u)

    return median_ms(step, 7)


def floor_bytes(V: int, E: int, n: int, labelled: int, weighted: bool) -> int:
    return 4 * (2 * E * n + 2 * E + weighted * E + labelled * (n * (n + 1) // 2 + n) + 4 * V * n)


def shapes(quick: bool) -> list[tuple[str, Callable[[], Edges], int, tuple[int, ...], float, bool]]:
    """Name, edges, nodes, features, labelled part, whether edges have weights."""
    part = 20 if quick else 1
    V, E, side = 10**6 // part, 10**7 // part, 750 if quick else 3000
    return [
        ("block model, 10⁷ edges", lambda: block_model(V, E), V, (1, 2, 4, 10, 32), 0.1, True),
        ("the same, clusters of 1,000", lambda: block_model(V, E, V // 1000), V, (1, 2, 4, 10), 0.1, True),
        ("block model, 5·10⁷ edges", lambda: block_model(5 * V, 5 * E, 100), 5 * V, (4,), 0.1, True),
        ("the same, 10⁷ nodes", lambda: block_model(10 * V, 5 * E, 200), 10 * V, (4,), 0.1, True),
        ("grid 3000²", lambda: grid(side), side**2, (1,), 1.0, False),
        ("6 nearest of 10⁶ points", lambda: neighbours(V), V, (5,), 1.0, True),
        ("star with 10⁶ leaves", lambda: star(V), V + 1, (4,), 0.1, True),
    ]


def iterations(quick: bool, say: Callable[[str], None]) -> None:
    bandwidth = copy_bandwidth()
    say(f"{torch.cuda.get_device_name()}, {time.strftime('%d %B %Y')}, torch {torch.__version__}; ")
    say(f"a copy moves {bandwidth / 1e12:.2f} TB/s\n")
    say("| graph | n | ms per iteration | × floor | in double precision, ms | plain torch, ms |")
    say("| --- | --- | --- | --- | --- | --- |")
    for name, build, V, features, labelled, weighted in shapes(quick):
        edges = build()
        for n in features:
            made = iteration(edges, V, n, labelled, weighted, torch.float32)
            ms, K = pass_ms(made), len(made.M)
            del made
            double = pass_ms(iteration(edges, V, n, labelled, weighted, torch.float64))
            floor = floor_bytes(V, len(edges[0]), n, K, weighted) / bandwidth * 1e3
            say(f"| {name} | {n} | {ms:.3f} | {ms / floor:.2f} | {double:.3f} | {plain_ms(edges, V, n):.2f} |")
            torch.cuda.empty_cache()


def orders(quick: bool, say: Callable[[str], None]) -> None:
    """What an order of nested clusters makes of a graph whose nodes are numbered at random."""
    say("\n| graph | n | in the order it was made, ms | shuffled, ms | put in order again, ms | which takes, ms |")
    say("| --- | --- | --- | --- | --- | --- |")
    for name, build, V, features, labelled, weighted in shapes(quick):
        if name.startswith("star"):
            continue
        edges = build()
        mixed = shuffled(edges, V)
        made = clustered(*mixed, V)
        takes = median_ms(lambda: clustered(*mixed, V), 5)  # noqa: B023  it is called here
        for n in features:
            each = ((edges, None), (mixed, None), (mixed, made))
            ms = [pass_ms(iteration(graph, V, n, labelled, weighted, torch.float32, order)) for graph, order in each]
            say(f"| {name} | {n} | {ms[0]:.3f} | {ms[1]:.3f} | {ms[2]:.3f} | {takes:.0f} |")
            torch.cuda.empty_cache()


def precision(quick: bool, say: Callable[[str], None]) -> None:
    """The gap that each precision of the iterations reaches in so many of them, and in what time."""
    problem = FAMILIES["f"].build(0.01 if quick else 0.1, 0)
    say("\n| iterations in | gap asked for | gap | iterations | seconds |")
    say("| --- | --- | --- | --- | --- |")
    ways = {"single": torch.float32, "double": torch.float64, "single, then double": None}
    for name, dtype in ways.items():
        for tol in (1e-4, 1e-6, 1e-9):
            for _ in range(2):
                solution, seconds = timed(problem, tol, GpuEngine(dtype=dtype))
            say(f"| {name} | {tol:g} | {solution.gap:.1e} | {solution.n_iter} | {seconds:.2f} |")


def end_to_end(quick: bool, say: Callable[[str], None]) -> None:
    say("\n| problem | gap asked for | gap | status | iterations | seconds |")
    say("| --- | --- | --- | --- | --- | --- |")
    for family, tol in (("b", 1e-6), ("c", 1e-6), ("f", 1e-4), ("f", 1e-6)):
        problem = FAMILIES[family].build(0.05 if quick else 1.0, 0)
        _ = problem.bound
        for _ in range(2):  # the first one compiles
            solution, seconds = timed(problem, tol, GpuEngine())
        row = f"{solution.gap:.1e} | {solution.status.name} | {solution.n_iter} | {seconds:.2f}"
        say(f"| family {family} | {tol:g} | {row} |")


def beside_mpax(quick: bool, say: Callable[[str], None]) -> None:
    """MPAX on the same card; of its two forms (`quadratic_programs`) the dual, whose tables are smaller."""
    if find_spec("mpax") is None:
        say("\nMPAX is not installed, and was not run beside.")
        return
    say("\n| problem | asked for | MPAX: iterations, seconds, above our bound | ours: gap, seconds |")
    say("| --- | --- | --- | --- |")
    for family, scale, tol in (("b", 1.0, 1e-4), ("b", 1.0, 1e-6), ("f", 0.1, 1e-4)):
        problem = FAMILIES[family].build(0.05 * scale if quick else scale, 0)
        _ = problem.bound
        for _ in range(2):  # the first one compiles
            solution, seconds = timed(problem, tol, GpuEngine())
        began = time.perf_counter()
        answer = mpax(dual(problem), tol)
        theirs = time.perf_counter() - began
        above = (problem.objective(answer.w) - solution.dual_bound) / abs(solution.dual_bound)
        name = f"family {family}" if scale == 1 else f"family {family}, {scale:g} of its size"
        say(f"| {name} | {tol:g} | {answer.n_iter}, {theirs:.1f}, {above:.0e} | {solution.gap:.0e}, {seconds:.2f} |")


def timed(problem: Any, tol: float, engine: GpuEngine) -> tuple[ct.Solution, float]:
    """Solve, with set-up and transfers, after a bound problem is there."""
    import warnings

    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.NotConverged)
        solution = ct.solve(problem, tol, engine=engine, max_iter=3000)
    return solution, time.perf_counter() - began


def huge(V: int, E: int, n: int = 4) -> ct.Problem:
    """Clusters with few labels, drawn on the GPU."""
    i, j = block_model(V, E, clusters=100)
    ends = torch.stack([i, j], 1).long().cpu().numpy()
    ends.flags.writeable = False
    ones = np.ones(len(ends))
    ones.flags.writeable = False
    rng, labelled = np.random.default_rng(0), np.arange(0, V, 10)
    truth = rng.standard_normal((100, n))
    nodes = np.repeat(labelled, 3)
    X = rng.standard_normal((len(nodes), n))
    y = np.einsum("rk,rk->r", X, truth[np.minimum(nodes // (V // 100), 99)]) + 0.1 * rng.standard_normal(len(nodes))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V)
    return ct.Problem(ct.EmpiricalGraph(V, ends, ones), data, lam=5e-3)


PARTS = {part.__name__: part for part in (iterations, orders, end_to_end, precision, beside_mpax)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of every size")
    parser.add_argument("--huge", action="store_true", help="also 10⁷ nodes and 10⁸ edges")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="some of the tables")
    parser.add_argument("--out", help="also write the tables here")
    given = parser.parse_args()
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    for name in given.only:
        PARTS[name](given.quick, say)
        torch.cuda.empty_cache()
    if given.huge:
        problem = huge(10**7, 10**8)
        _ = problem.bound
        torch.cuda.empty_cache()
        solution, seconds = timed(problem, 1e-4, GpuEngine())
        say(f"\n10⁷ nodes, {problem.graph.n_edges:,} edges, n = 4: gap {solution.gap:.1e} in {solution.n_iter} "
            f"iterations and {seconds:.1f} s, {torch.cuda.max_memory_allocated():,} bytes at most")  # fmt: skip
    if given.out:
        with open(given.out, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
