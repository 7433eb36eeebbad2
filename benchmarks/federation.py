"""Rounds of a federation: 10 sites of 20 nodes, 40 cut edges, the paper's Algorithm 1 beside it.

    python -m benchmarks.federation [--seeds 5] [--privacy]

A round is one exchange between all sites and the server. Algorithm 1 as printed exchanges weights and duals of every
node with its neighbours in each iteration, so its rounds are its iterations. With --privacy: what differential privacy
costs instead, where one node in twenty is labelled, so that sites need each other.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence

import numpy as np

import coterie as ct
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.loop import Rules
from coterie.federation.partition import partition
from coterie.federation.simulate import simulate

TARGETS = (1e-3, 1e-4, 1e-6)
SETTINGS = {  # strength, part of the nodes that is labelled, noise
    "λ = 0.01": (0.01, 1.0, 0.5),
    "λ = 0.05": (0.05, 1.0, 0.5),
    "λ = 0.2": (0.2, 1.0, 0.5),
    "λ = 0.05, 30 % labelled": (0.05, 0.3, 0.5),
    "λ = 0.01, 30 % labelled, less noise": (0.01, 0.3, 0.1),
}
PRIVATE, EPSILONS, CLIPS, ROUNDS, DELTA = (0.05, 0.05, 0.5), (1, 3, 10, 30, np.inf), (0.1, 0.3, 1.0, 3.0), 10, 1e-5
SITES, NODES, CUT, POINTS, N, KINDS = 10, 20, 40, 5, 2, 3


def network(lam: float, labelled: float, noise: float, seed: int) -> tuple[ct.Problem, np.ndarray]:
    """Sites of 20 nodes, joined by 40 random edges; sites share one of three true weight vectors."""
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(SITES), NODES)
    i, j = np.triu_indices(NODES, 1)
    edges = []
    for s in range(SITES):
        keep = rng.random(len(i)) < 0.3
        edges.append(NODES * s + np.stack([i[keep], j[keep]], axis=1))
    across: set[tuple[int, int]] = set()
    while len(across) < CUT:
        a, b = sorted(int(k) for k in rng.integers(0, SITES * NODES, 2))
        if site[a] != site[b]:
            across.add((a, b))
    graph = ct.EmpiricalGraph.from_edges(np.concatenate([*edges, sorted(across)]), n_nodes=SITES * NODES)
    truth = 2 * rng.standard_normal((KINDS, N))[rng.integers(0, KINDS, SITES)][site]
    nodes = np.repeat(np.arange(SITES * NODES), POINTS)
    X = rng.standard_normal((len(nodes), N))
    y = np.einsum("rk,rk->r", X, truth[nodes]) + noise * rng.standard_normal(len(nodes))
    y[rng.random(SITES * NODES)[nodes] >= labelled] = np.nan
    return ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=SITES * NODES), lam=lam), site


def first(values: Sequence[float], target: float) -> float:
    """The number, from 1, of the first value that is at most the target."""
    return next((float(k) for k, value in enumerate(values, start=1) if value <= target), np.inf)


def rounds_of_algorithm1(problem: ct.Problem, optimum: float, most: int = 20_000) -> list[float]:
    errors: list[float] = []

    def note(k: int, w: np.ndarray, u: np.ndarray) -> None:
        errors.append(problem.objective(w) / optimum - 1)
        if errors[-1] <= TARGETS[-1]:
            raise StopIteration

    with contextlib.suppress(StopIteration):
        ct.algorithm1(problem, most, callback=note)
    return [first(errors, target) for target in TARGETS]


def count(setting: tuple[float, float, float], seed: int) -> dict[str, list[float]]:
    """Rounds to each target: of the objective, of the certified gap, and of Algorithm 1."""
    problem, site = network(*setting, seed)
    optimum = ct.solve(problem, 1e-10).objective
    run = simulate(problem, site, Rules(tol=TARGETS[-1]))
    history = run.outcome.history
    return {
        "error": [first([r.objective / optimum - 1 for r in history], target) for target in TARGETS],
        "certified": [first([r.gap for r in history], target) for target in TARGETS],
        "Algorithm 1": rounds_of_algorithm1(problem, optimum),
        "kB": [(run.to_server + run.to_sites) / 1e3],
    }


def noise_for(epsilon: float) -> float:
    """The noise multiplier with which ROUNDS releases are (ε, δ)-private: bisection in the accountant."""
    low, high = 0.1, 1e3
    while high / low > 1.01:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if Privacy(middle, rounds=ROUNDS, delta=DELTA).epsilon <= epsilon else (middle, high)
    return high


def alone(problem: ct.Problem, site: np.ndarray) -> np.ndarray:
    """The weights that sites find without any exchange; zero at sites without labels."""
    w = np.zeros((problem.graph.n_nodes, problem.n_features))
    for part in partition(problem.graph, site)[0]:
        own = part.problem(problem)
        if len(own.M):
            w[part.own] = ct.solve(own, 1e-8).w
    return w


def cost_of_privacy(seeds: range) -> None:
    """Print the relative excess of the objective, and the RMS error of the weights, for every ε and clip."""
    problems = [network(*PRIVATE, seed) for seed in seeds]
    best = [ct.solve(problem, 1e-10) for problem, _ in problems]

    def cell(weights: Sequence[np.ndarray]) -> str:
        pairs = zip(problems, best, weights, strict=True)
        errors = [(p.objective(w) / b.objective - 1, np.sqrt(((w - b.w) ** 2).mean())) for (p, _), b, w in pairs]
        excess, error = np.median(errors, axis=0)
        return f"{excess:.2g} ({error:.2g})"

    size = np.median([np.sqrt((b.w**2).mean()) for b in best])
    print(f"Sites alone: {cell([alone(*one) for one in problems])}. RMS of the optimal weights: {size:.2g}.\n")
    print("| ε | noise z |" + "".join(f" clip {clip:g} |" for clip in CLIPS))
    print("|---" * (2 + len(CLIPS)) + "|")
    for epsilon in EPSILONS:
        z = noise_for(epsilon) if np.isfinite(epsilon) else 1e-12
        cells = [
            cell([simulate(*one, privacy=Privacy(z, clip, ROUNDS, DELTA), seed=k).w for k, one in enumerate(problems)])
            for clip in CLIPS
        ]
        print(f"| {epsilon:g} | {z:.2g} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--privacy", action="store_true")
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    if arguments.privacy:
        cost_of_privacy(seeds)
        return
    print("| instance | error 1e-3 / 1e-4 / 1e-6 | certified gap | Algorithm 1 as printed | kB in all |")
    print("|---|---|---|---|---|")
    worst = {"error": [0.0] * 3, "certified": [0.0] * 3}
    for name, setting in SETTINGS.items():
        counts = [count(setting, seed) for seed in seeds]
        cells = [_cell([c[key] for c in counts], np.median) for key in ("error", "certified", "Algorithm 1", "kB")]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        for key, so_far in worst.items():
            worst[key] = np.max([so_far, *(c[key] for c in counts)], axis=0).tolist()
    print(f"\nMedians of {len(seeds)} draws. Worst of all: error {_cell([worst['error']], np.max)}, ", end="")
    print(f"certified {_cell([worst['certified']], np.max)}.")


def _cell(rows: Sequence[Sequence[float]], how: Callable[..., np.ndarray]) -> str:
    return " / ".join(f"{value:.0f}" if np.isfinite(value) else "–" for value in how(np.array(rows), axis=0))


if __name__ == "__main__":
    main()
