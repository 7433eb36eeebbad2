"""Space × time: a million nodes on two cores, and small fields beside geographically-temporally weighted regression.

    python -m benchmarks.space_time                     # 1,000 places × 1,000 times, certified to 1e-4
    python -m benchmarks.space_time --places 100 --times 100 --threads 1
    python -m benchmarks.space_time --beside 12         # 12 × 12 places × 12 times; needs the package mgtwr

The large field has random places in a square, joined to their six nearest, 30 % of the nodes labelled, five rows
each, with five features. The square has six regions, and time three eras; each pair has weights of its own. The
small fields have one row per place and time: one of smooth coefficients, which is the example in the documentation of
mgtwr, and one of regions and eras. Errors are root mean squared errors of the coefficients at the rows, all of which
the methods have seen; strengths and bandwidths are chosen by the methods themselves. Seconds are CPU seconds where it
says so.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

TOL, LABELLED, POINTS, FEATURES, NEIGHBOURS = 1e-4, 0.3, 5, 5, 6
MINUTES, GIGABYTES = 10, 6  # what is promised of 1,000 × 1,000 on two threads
REGIONS, ERAS, NOISE = 6, 3, 0.3


def weights_of(places: np.ndarray, times: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Weights (places × times, n) of regions, those nearest to one of six points, in three eras."""
    centres = rng.random((REGIONS, 2)) * np.ptp(places, axis=0) + places.min(axis=0)
    region = np.linalg.norm(places[:, None] - centres, axis=2).argmin(axis=1)
    era = np.minimum(ERAS * np.arange(len(times)) // len(times), ERAS - 1)
    table = rng.standard_normal((ERAS, REGIONS, n)) * 2
    return table[era[:, None], region].reshape(-1, n)


def large(n_places: int, n_times: int, lam: float, threads: int, seed: int) -> None:
    """Solve the large field; print iterations, CPU, wall-clock seconds and memory."""
    import coterie as ct

    rng = np.random.default_rng(seed)
    places = rng.random((n_places, 2))
    space = ct.knn_graph(places, NEIGHBOURS, metric="euclidean", weight=np.ones_like)
    graph = ct.product_graph(space, ct.time_graph(range(n_times)))
    truth = weights_of(places, np.arange(n_times), FEATURES, rng)
    nodes = np.repeat(np.flatnonzero(rng.random(graph.n_nodes) < LABELLED), POINTS)
    X = rng.standard_normal((len(nodes), FEATURES))
    y = np.einsum("rk,rk->r", X, truth[nodes]) + NOISE * rng.standard_normal(len(nodes))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=graph.n_nodes)
    began, cpu = time.perf_counter(), time.process_time()
    solution = ct.solve(ct.Problem(graph, data, lam=lam), tol=TOL, threads=threads, max_iter=100_000)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    error = float(np.sqrt(((solution.w - truth) ** 2).mean()))
    kept = solution.gap <= TOL and wall <= 60 * MINUTES and peak <= GIGABYTES
    print(
        f"{graph!r}, λ = {lam:g}: {solution.status.name}, gap {solution.gap:.1e} after {solution.n_iter} iterations, "
        f"{cpu:.0f} CPU s, {wall:.0f} s on {threads} threads, peak {peak:.1f} GB; weights off by {error:.3f}. "
        f"{TOL:g} within {MINUTES} minutes and {GIGABYTES} GB: {'yes' if kept else 'no'}"
    )


def small(side: int, blocks: bool, seed: int) -> tuple[np.ndarray, ...]:
    """One row at each of side³ places and times: place, time, features, labels and true coefficients."""
    rng = np.random.default_rng(seed)
    t, v, u = (part.ravel().astype(float) for part in np.meshgrid(*[np.arange(side)] * 3, indexing="ij"))
    X = rng.random((side**3, 2))
    if blocks:
        beta = weights_of(np.column_stack([u, v])[: side**2], np.arange(side), 3, rng)
    else:  # mgtwr's own example, which has twelve places a side
        u, v, t = (part * 12 / side for part in (u, v, t))
        bump = (36 - (6 - u) ** 2) * (36 - (6 - v) ** 2) * (36 - (6 - t) ** 2) / 128
        beta = np.column_stack([np.full(len(u), 5.0), 3 + (u + v + t) / 6, 3 + bump])
    y = beta[:, 0] + (X * beta[:, 1:]).sum(axis=1) + rng.standard_normal(len(u)) * (NOISE if blocks else 1.0)
    return np.column_stack([u, v]), t, X, y, beta


def gtwr(coords: np.ndarray, t: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Geographically and temporally weighted regression, its bandwidth and its scale of time chosen by AICc."""
    from mgtwr.model import GTWR
    from mgtwr.sel import SearchGTWRParameter

    data: tuple[Any, ...] = (coords, t[:, None], X, y[:, None])
    bw, tau = SearchGTWRParameter(*data, kernel="gaussian", fixed=True).search(tau_max=20)
    return np.asarray(GTWR(*data, bw, tau, kernel="gaussian", fixed=True).fit().betas)


def networked(penalty: str) -> Callable[..., np.ndarray]:
    """The networked model of every place at every time, its two strengths chosen by cross-validation."""

    def fit(coords: np.ndarray, t: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        import coterie as ct

        places, of = np.unique(coords, axis=0, return_inverse=True)
        graph = (ct.knn_graph(places, 4, metric="euclidean"), ct.time_graph(t))
        model = ct.NetworkedLinearRegressionCV(graph, n_lams=15, penalty=penalty, random_state=0, tol=TOL)
        pairs = list(zip(of.tolist(), t.tolist(), strict=True))
        model.fit(X, y, groups=pairs)
        at = model.graph_.numbers(pairs)
        return np.column_stack([model.intercept_, model.coef_])[at]

    return fit


def beside(side: int, seeds: int) -> None:
    """Print the error and the CPU seconds of each method on both fields."""
    methods = {"mgtwr GTWR": gtwr, "networked, l1": networked("l1"), "networked, squared": networked("squared")}
    for blocks in (False, True):
        for name, method in methods.items():
            errors, seconds = [], []
            for seed in range(seeds):
                *data, beta = small(side, blocks, seed)
                began = time.process_time()
                found = method(*data)
                seconds.append(time.process_time() - began)
                errors.append(np.sqrt(((found - beta) ** 2).mean()))
            field = "regions and eras" if blocks else "smooth"
            print(
                f"{side**3} rows, {field}: {name} {np.mean(errors):.3f} (of {seeds}: {np.min(errors):.3f} to "
                f"{np.max(errors):.3f}), {np.mean(seconds):.1f} CPU s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, default=1000)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--lam", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--beside", type=int, metavar="SIDE", help="small fields of SIDE × SIDE × SIDE instead")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.beside is not None:
        beside(arguments.beside, arguments.seeds)
    else:
        large(arguments.places, arguments.times, arguments.lam, arguments.threads, seed=0)


if __name__ == "__main__":
    main()
