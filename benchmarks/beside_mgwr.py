"""Geographically weighted regression (mgwr) beside Coterie: smooth surfaces, and regions with sharp borders."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

import coterie as ct
from benchmarks.held_out import KINDS, Method, Question, ask, compare, coterie, head
from benchmarks.uneven import Table

SIZES, MULTISCALE = (100, 400), 100  # places; up to how many of them multiscale GWR is tried
POINTS, NEIGHBOURS, REGIONS, NOISE = 3, 5, 5, 0.5


def field(n_places: int, borders: bool, seed: int) -> tuple[Table, np.ndarray]:
    """Random places in a square, three rows each: an intercept and two slopes, each smooth, or one set per region."""
    rng = np.random.default_rng(seed)
    places = rng.random((n_places, 2))
    if borders:
        region = np.linalg.norm(places[:, None] - rng.random((REGIONS, 2)), axis=2).argmin(axis=1)
        beta = 1.5 * rng.standard_normal((REGIONS, 3))[region]
    else:
        u, v = places.T
        beta = 1.5 * np.column_stack([np.cos(np.pi * u), u + v - 1, np.sin(np.pi * u) * np.sin(np.pi * v)])
    nodes = np.repeat(np.arange(n_places), POINTS)
    X = rng.standard_normal((len(nodes), 2))
    y = beta[nodes, 0] + (X * beta[nodes, 1:]).sum(axis=1) + NOISE * rng.standard_normal(len(nodes))
    return Table(ct.knn_graph(places, NEIGHBOURS, metric="euclidean"), X, y, nodes), places


def gwr(question: Question) -> np.ndarray:
    """GWR with its defaults: an adaptive bisquare kernel, the bandwidth chosen by AICc."""
    from mgwr.gwr import GWR
    from mgwr.sel_bw import Sel_BW

    places, train, test = question.places, question.train, question.test
    assert places is not None
    at, y = places[train.nodes], train.y[:, None]
    bandwidth = Sel_BW(at, y, train.X, n_jobs=1).search()
    model = GWR(at, y, train.X, bandwidth, n_jobs=1)
    return np.asarray(model.predict(places[test.nodes], test.X).predictions).ravel()


def multiscale(question: Question) -> np.ndarray | None:
    """MGWR with its defaults on standardised columns; it has coefficients at its own rows and predicts nowhere else."""
    from mgwr.gwr import MGWR
    from mgwr.sel_bw import Sel_BW

    places, train, test = question.places, question.train, question.test
    assert places is not None
    if question.over == "nodes":
        return None
    centre, scale = train.X.mean(axis=0), train.X.std(axis=0)
    at, X, y = places[train.nodes], (train.X - centre) / scale, (train.y[:, None] - train.y.mean()) / train.y.std()
    selector = Sel_BW(at, y, X, multi=True, n_jobs=1)
    selector.search(verbose=False)
    params = MGWR(at, y, X, selector, n_jobs=1).fit().params
    nearest = np.linalg.norm(places[test.nodes][:, None] - at, axis=2).argmin(axis=1)  # mostly the same place
    local = params[nearest]
    found = local[:, 0] + (local[:, 1:] * (test.X - centre) / scale).sum(axis=1)
    return np.asarray(train.y.mean() + train.y.std() * found)


def run(seeds: int) -> None:
    """Print the table."""
    print(f"\nPlaces in a square, {POINTS} rows each; noise has a standard deviation of {NOISE}.")
    head("surface, places")
    for penalty, over, size in product(("squared", "l1"), KINDS, SIZES):  # compiles what later fits share
        coterie(penalty)(asked(over, 0, True, size))
    for borders in (False, True):
        for size in SIZES:
            methods: dict[str, Method] = {"mgwr GWR": gwr}
            if size <= MULTISCALE:
                methods["mgwr MGWR"] = multiscale
            methods |= {f"Coterie, {penalty}": coterie(penalty) for penalty in ("squared", "l1")}
            questions = partial(asked, borders=borders, size=size)
            compare(f"{'regions' if borders else 'smooth'}, {size}", questions, methods, seeds)


def asked(over: str, seed: int, borders: bool, size: int) -> Question:
    """Draw a surface, and hold out a part of it."""
    table, places = field(size, borders, seed)
    return ask(table, over, seed, places)
