"""Simulated federations of many sites: 5 nodes each, 4 edges to other sites per site on average.

python -m benchmarks.many_sites 1000 10000
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import coterie as ct
from coterie.federation.partition import partition
from coterie.federation.simulate import simulate

NODES, POINTS, N, KINDS, LAM = 5, 5, 2, 3, 0.05


def network(sites: int, seed: int = 0) -> tuple[ct.Problem, np.ndarray]:
    """Sites are circulant graphs, joined by random edges; each has one of three true weight vectors."""
    rng = np.random.default_rng(seed)
    V, site = sites * NODES, np.repeat(np.arange(sites), NODES)
    a = np.arange(NODES)
    inside = np.concatenate([np.stack([a, (a + d) % NODES], axis=1) for d in (1, 2)])
    edges = (np.arange(sites)[:, None, None] * NODES + inside).reshape(-1, 2)
    across = rng.integers(0, V, (4 * sites, 2))
    across = across[site[across[:, 0]] != site[across[:, 1]]]
    pairs = np.unique(np.sort(np.concatenate([edges, across]), axis=1), axis=0)
    truth = 2 * rng.standard_normal((KINDS, N))[rng.integers(0, KINDS, sites)][site]
    nodes = np.repeat(np.arange(V), POINTS)
    X = rng.standard_normal((len(nodes), N))
    y = np.einsum("rk,rk->r", X, truth[nodes]) + 0.5 * rng.standard_normal(len(nodes))
    y[rng.random(V)[nodes] >= 0.5] = np.nan
    graph = ct.EmpiricalGraph.from_edges(pairs, n_nodes=V)
    return ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=V), lam=LAM), site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sites", type=int, nargs="+")
    print("| sites | nodes | cut into parts, s | rounds | certified gap | s in all | CPU s | peak memory, GB |")
    print("|---|---|---|---|---|---|---|---|")
    for sites in parser.parse_args().sites:
        problem, site = network(sites)
        began = time.perf_counter()
        partition(problem.graph, site)
        cut = time.perf_counter() - began
        began, used = time.perf_counter(), time.process_time()
        outcome = simulate(problem, site).outcome
        spent = f"{time.perf_counter() - began:.1f} | {time.process_time() - used:.1f}"
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"| {sites} | {sites * NODES} | {cut:.2f} | {outcome.rounds} | {outcome.gap:.1e} | {spent} | {memory:.2f} |"
        )


if __name__ == "__main__":
    main()
