"""What paths of λ cost on several families: for a comparison of two versions, one after the other.

    python -m benchmarks.path_families [--families chain grid …]

Prints, for 30 λ over three decades to 1e-4 and to 1e-2, CPU seconds (the better of two, sums over seeds) and
iterations, with kernels loaded before. For another version, give its folder: PYTHONPATH=other/src:.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

import coterie as ct
from benchmarks.families import _draw_rows, _labels_for, blocks, grid_edges, image, paper, spatial
from coterie.datasets import stochastic_block_model

TOLS = (1e-4, 1e-2)


def four_blocks(seed: int, labelled: float, loss: ct.Loss | None = None) -> ct.Problem:
    """A block model of 1,200 nodes with two columns."""
    loss = loss or ct.SquaredError()
    truth = np.random.default_rng(seed).standard_normal((4, 2))
    sizes, count = (300,) * 4, int(1200 * labelled)
    network = stochastic_block_model(
        sizes, truth, p_in=0.06, p_out=0.002, points=5, labelled=count, noise=0.1, seed=seed
    )
    return ct.Problem(network.graph, _labels_for(loss, network.data), loss, lam=0.01)


def thinned(seed: int) -> ct.Problem:
    """Family c with 6,000 nodes, a tenth of them labelled."""
    problem = spatial(0.6, seed)
    data, V = problem.data, problem.graph.n_nodes
    keep = np.isin(data.nodes, np.random.default_rng(seed).choice(V, V // 10, replace=False))
    rows = ct.LocalDatasets.from_rows(data.X[keep], data.y[keep], data.nodes[keep], n_nodes=V)
    return ct.Problem(problem.graph, rows, problem.loss, lam=0.2)


def chain(seed: int) -> ct.Problem:
    """A path of 3,000 nodes in five pieces, half of them labelled."""
    rng, V = np.random.default_rng(seed), 3000
    truth = rng.standard_normal((5, 2))[np.arange(V) * 5 // V]
    labelled = np.sort(rng.choice(V, V // 2, replace=False))
    edges = np.stack([np.arange(V - 1), np.arange(1, V)], axis=1)
    return ct.Problem(
        ct.EmpiricalGraph.from_edges(edges), _draw_rows(rng, truth, labelled, points=3, noise=0.3), lam=0.1
    )


def grid(seed: int, labelled: float) -> ct.Problem:
    """A grid of 60 × 60 in four quarters, with three columns and two rows at a node."""
    rng, V = np.random.default_rng(seed), 3600
    quarter = np.arange(V) // 60 // 30 * 2 + np.arange(V) % 60 // 30
    nodes = np.sort(rng.choice(V, int(V * labelled), replace=False))
    data = _draw_rows(rng, rng.standard_normal((4, 3))[quarter], nodes, points=2, noise=0.3)
    return ct.Problem(ct.EmpiricalGraph.from_edges(grid_edges(60)), data, lam=0.1)


FAMILIES: dict[str, tuple[Callable[[int], ct.Problem], int]] = {  # and how many seeds
    "blocks-10%": (partial(four_blocks, labelled=0.1), 2),
    "blocks-5%": (partial(four_blocks, labelled=0.05), 2),
    "blocks-logistic": (partial(four_blocks, labelled=0.3, loss=ct.Logistic(ridge=0.01)), 1),
    "c-10%": (thinned, 1),
    "chain": (chain, 2),
    "grid": (partial(grid, labelled=1.0), 2),
    "grid-10%": (partial(grid, labelled=0.1), 2),
    "a": (partial(paper, 1.0), 3),
    "b-half": (partial(blocks, 0.5), 2),
    "d-tenth": (partial(image, 0.1), 2),
    "c-tenth": (partial(spatial, 0.1), 2),
    "c-lasso-tenth": (partial(spatial, 0.1, loss=ct.Lasso(alpha=0.02)), 1),
    "c": (partial(spatial, 1.0), 1),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    warnings.simplefilter("ignore")
    for name in parser.parse_args().families:
        build, seeds = FAMILIES[name]
        spent = [np.sum([cost(build(seed), tol) for seed in range(seeds)], axis=0) for tol in TOLS]
        print(
            f"{name:16}" + "".join(f"  {seconds:7.3f} s {iterations:7.0f}" for seconds, iterations in spent), flush=True
        )


def cost(problem: ct.Problem, tol: float) -> tuple[float, int]:
    """CPU seconds and iterations of a path."""
    ct.solve_path(problem, n_lams=3, tol=tol, engine="numba")  # loads kernels
    seconds, iterations = np.inf, 0
    for _ in range(2):
        fresh = replace(problem, data=replace(problem.data))  # nothing that was computed of it before
        began = time.process_time()
        path = ct.solve_path(fresh, tol=tol)
        seconds = min(seconds, time.process_time() - began)
        iterations = sum(solution.n_iter for solution in path.solutions)
        assert all(solution.gap <= tol for solution in path.solutions)
    return seconds, iterations


if __name__ == "__main__":
    main()
