"""What differential privacy costs: error against ε, of single rows (noisy moments) and of whole sites (noisy weights).

    python -m benchmarks.privacy [--data fmi_daily.csv] [--draws 3]

Synthetic: 10 sites of 20 nodes, 200 rows of 2 features at every node, three clusters. With --data: 194 weather stations
as the nodes of 10 sites, the highs and lows of the last three days as features, 20 days to learn from and the rest to
be foretold. The error is the mean squared one on rows that nobody has learnt from; of synthetic rows, what the weights
add to the 0.25 of their noise. Noisy problems get a λ and a ridge
that grow with the noise, by a rule of the noise alone; a certificate is that of the noisy problem.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import coterie as ct
from benchmarks.federation import alone
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.dp_moments import SENSITIVITY, RowPrivacy, numpy_noisy
from coterie.federation.simulate import simulate

EPSILONS, DELTA, ROUNDS, CLIPS = (0.5, 1.0, 3.0, 10.0), 1e-5, 10, (0.1, 0.3, 1.0)
SITES, RIDGE = 10, 1e-3


class Case(NamedTuple):
    """A problem to learn, the sites of its nodes, sizes of rows that are known beforehand, the error of weights."""

    problem: ct.Problem
    site: np.ndarray
    x_clip: float
    y_clip: float
    error: Callable[[np.ndarray], float]


def synthetic(seed: int, nodes: int = 20, points: int = 200, n: int = 2, lam: float = 0.05) -> Case:
    """Sites have one of three true weight vectors; nodes of a site are a circle, like sites are joined at random."""
    rng = np.random.default_rng(seed)
    V, site = SITES * nodes, np.repeat(np.arange(SITES), nodes)
    circle = np.stack([np.arange(V), site * nodes + (np.arange(V) + 1) % nodes], axis=1)
    kind = rng.permutation(np.arange(SITES) % 3)[site]
    pairs = rng.integers(0, V, (40 * V, 2))
    across = pairs[(kind[pairs[:, 0]] == kind[pairs[:, 1]]) & (site[pairs[:, 0]] != site[pairs[:, 1]])][: 2 * V]
    graph = ct.EmpiricalGraph.from_edges(
        np.unique(np.sort(np.concatenate([circle, across]), axis=1), axis=0), n_nodes=V
    )
    truth = rng.uniform(-1, 1, (3, n))[kind]
    of = np.repeat(np.arange(V), points)
    X = rng.standard_normal((len(of), n))
    y = np.einsum("rk,rk->r", X, truth[of]) + 0.5 * rng.standard_normal(len(of))
    problem = ct.Problem(graph, ct.LocalDatasets.from_rows(X, y, of), ct.SquaredError(ridge=RIDGE), lam=lam)
    return Case(problem, site, 2.0, 2.0, lambda w: float(((w - truth) ** 2).sum(axis=1).mean()))


def weather(path: Path, lam: float = 0.02, scale: float = 10.0) -> Case:
    """Tomorrow's high at every station, in °C²; stations of one site are neighbours by longitude."""
    import pandas as pd
    from scipy.spatial import cKDTree

    table = pd.read_csv(path, parse_dates=["day"])
    high, low = (table.pivot(index="day", columns="station", values=what).sort_index() for what in ("tmax", "tmin"))
    places = table.groupby("station")[["lat", "lon"]].first().loc[high.columns].to_numpy() * [1.0, 0.45]
    pairs = np.stack([np.repeat(np.arange(len(places)), 4), cKDTree(places).query(places, 5)[1][:, 1:].ravel()], axis=1)
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    graph = ct.EmpiricalGraph.from_edges(pairs, n_nodes=len(places))
    frames = [frame.shift(lag).to_numpy().T / scale for lag in (1, 2, 3) for frame in (high, low)]
    X, y = np.stack(frames, axis=2), high.to_numpy().T / scale
    ok = np.isfinite(X).all(axis=2) & np.isfinite(y)
    early = ok & (np.arange(len(high)) < 23)
    data = ct.LocalDatasets.from_rows(X[early], y[early], np.nonzero(early)[0], n_nodes=len(places))
    later = ok & ~early
    site = np.empty(len(places), dtype=np.int64)
    site[np.argsort(places[:, 1])] = np.arange(len(places)) * SITES // len(places)

    def error(w: np.ndarray) -> float:
        return float(((np.einsum("sdk,sk->sd", X, w) - y)[later] ** 2).mean()) * scale**2

    return Case(ct.Problem(graph, data, ct.SquaredError(ridge=RIDGE), lam=lam), site, 5.0, 2.5, error)


def with_private_rows(case: Case, epsilon: float, rng: np.random.Generator) -> tuple[float, float]:
    """The error of the optimum of the noisy problem, and the gap that it is certified to."""
    problem = case.problem
    privacy = RowPrivacy(epsilon, DELTA, case.x_clip, case.y_clip)
    noise = SENSITIVITY * privacy.noise / float(problem.data.labelled.m.mean())  # of a mean, in units of the clips
    degree = 2 * problem.graph.n_edges / problem.graph.n_nodes
    loss = ct.SquaredError(ridge=RIDGE + noise * case.x_clip**2 / np.sqrt(problem.graph.n_nodes))
    lam = problem.lam + noise * case.x_clip * case.y_clip * 15 / degree
    noisy = ct.Problem(problem.graph, privacy.release(problem.data, numpy_noisy(rng)), loss, lam=lam)
    solution = ct.solve(noisy, 1e-6)
    return case.error(solution.w), solution.gap


def with_private_sites(case: Case, epsilon: float, seed: int) -> float:
    """The error with noisy boundary weights; of several clips the best, which nobody could choose without looking."""
    z = RowPrivacy(epsilon, DELTA).noise * np.sqrt(ROUNDS)  # Gaussian mechanisms compose so
    runs = (simulate(case.problem, case.site, privacy=Privacy(z, clip, ROUNDS, DELTA), seed=seed) for clip in CLIPS)
    return min(case.error(run.w) for run in runs)


def table(cases: list[Case], draws: int) -> None:
    """Print the median error over cases and draws."""
    best = np.median([case.error(ct.solve(case.problem, 1e-8).w) for case in cases])
    single = np.median([case.error(alone(case.problem, case.site)) for case in cases])
    zero = np.median([case.error(np.zeros((case.problem.graph.n_nodes, case.problem.n_features))) for case in cases])
    print(f"no privacy {best:.3g}; no exchange between sites {single:.3g}; zero weights {zero:.3g}\n")
    print("| ε | single rows | certified gap of the noisy problem | whole sites, best clip |\n|---|---|---|---|")
    for epsilon in EPSILONS:
        rows = [with_private_rows(c, epsilon, np.random.default_rng(k)) for c in cases for k in range(draws)]
        sites = [with_private_sites(c, epsilon, k) for c in cases for k in range(draws)]
        error, gap = np.median([one for one, _ in rows]), max(gap for _, gap in rows)
        print(f"| {epsilon:g} | {error:.3g} | {gap:.0e} | {np.median(sites):.3g} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="fmi_daily.csv")
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.data is None:
        table([synthetic(seed) for seed in range(arguments.draws)], 1)
    else:
        table([weather(arguments.data)], arguments.draws)


if __name__ == "__main__":
    main()
