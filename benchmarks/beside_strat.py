"""Laplacian regularised stratified models (strat_models) beside squared variation: the same objective, solved by both.

strat_models is not on PyPI: put a clone of github.com/cvxgrp/strat_models on PYTHONPATH, and install torch.
"""

from __future__ import annotations

import importlib.util
import time
import warnings

import numpy as np

import coterie as ct
from benchmarks.families import grid_edges

SIDES = (20, 50, 100)
FEATURES, POINTS, LABELLED, NOISE, STRENGTH = 5, 4, 0.3, 0.5, 2.0
TOLERANCES = {"as it comes": {}, "tolerances 1e-6": {"abs_tol": 1e-6, "rel_tol": 1e-6, "maxiter": 5000}}


def grid(side: int, seed: int) -> ct.Problem:
    """A grid of models that vary smoothly, of which 30 % have rows."""
    rng = np.random.default_rng(seed)
    v, u = np.divmod(np.arange(side * side), side)
    waves = rng.uniform(0.5, 2, (2, FEATURES)) * np.pi / side
    truth = np.sin(u[:, None] * waves[0] + v[:, None] * waves[1])
    nodes = np.repeat(np.flatnonzero(rng.random(side * side) < LABELLED), POINTS)
    X = rng.standard_normal((len(nodes), FEATURES))
    y = (X * truth[nodes]).sum(axis=1) + NOISE * rng.standard_normal(len(nodes))
    graph = ct.EmpiricalGraph.from_edges(grid_edges(side))
    data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=side * side)
    loss = ct.SquaredError(reduction="sum")
    return ct.Problem(graph, data, loss=loss, penalty=ct.SquaredVariation(), lam=STRENGTH / 2)


def stratified(problem: ct.Problem, **how: float) -> tuple[np.ndarray, int]:
    """The same by strat_models, whose Laplacian counts half of λ‖w_i − w_j‖²: weights, and iterations of its ADMM."""
    import networkx as nx
    from strat_models.losses import sum_squares_loss
    from strat_models.models import BaseModel, StratifiedModel
    from strat_models.regularizers import zero_reg

    graph = nx.Graph()
    graph.add_nodes_from(range(problem.graph.n_nodes))
    graph.add_edges_from(problem.graph.edges.tolist(), weight=2 * problem.lam)
    model = StratifiedModel(BaseModel(loss=sum_squares_loss(), reg=zero_reg()), graph=graph)
    data = problem.data
    done = model.fit({"X": data.X, "Y": data.y[:, None], "Z": data.nodes.tolist()}, **how)
    copies = [np.stack([graph.nodes[i][name].ravel() for i in graph]) for name in ("theta", "theta_tilde", "theta_hat")]
    return min(copies, key=problem.objective), int(done["iterations"])


def run(seeds: int) -> None:
    """Print the table."""
    print(f"\nGrids with {FEATURES} features, {POINTS} rows at {LABELLED:.0%} of the nodes; the same objective.")
    found = importlib.util.find_spec("strat_models") is not None
    if found:
        stratified(grid(3, 0))  # imports are not counted
    else:
        print("strat_models is not installed, and left out: it is not on PyPI, see benchmarks/beside_strat.py.")
    print("\n| grid | method | objective above the optimum, relative | iterations | CPU s |\n|---|---|---|---|---|")
    for side in SIDES:
        problems = [grid(side, seed) for seed in range(seeds)]
        optima = [ct.solve(problem, tol=1e-10).dual_bound for problem in problems]
        for tol in (1e-3, 1e-6):
            _line(f"{side} × {side}", f"Coterie, certified to {tol:g}", problems, optima, tol)
        for name, how in TOLERANCES.items() if found else ():
            _line(f"{side} × {side}", f"strat_models, {name}", problems, optima, how)


def _line(
    grid_name: str, method: str, problems: list[ct.Problem], optima: list[float], how: float | dict[str, float]
) -> None:
    above, seconds, iterations = [], [], []
    for problem, optimum in zip(problems, optima, strict=True):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if isinstance(how, dict):
                w, n_iter = stratified(problem, **how)
            else:
                solution = ct.solve(problem, tol=how)
                w, n_iter = solution.w, solution.n_iter
        seconds.append(time.process_time() - began)
        iterations.append(n_iter)
        above.append(max(problem.objective(w) / optimum - 1, 0.0))
    middle = f"{np.median(above):.1e} | {np.median(iterations):.0f} | {np.median(seconds):.2g}"
    print(f"| {grid_name} | {method} | {middle} |", flush=True)
