"""Small fitted models for the tests of the pictures and the page."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import coterie as ct
from coterie.datasets import stochastic_block_model

NASTY = "</script><b>\"'&%{x}"


@cache
def rows(V: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two halves with models of their own, four rows per node, every third node without labels."""
    rng = np.random.default_rng(0)
    nodes = np.repeat(np.arange(V), 4)
    X = rng.standard_normal((len(nodes), 2))
    y = np.where(nodes < V // 2, X @ [2, 2], X @ [-2, 2]) + 0.1 * rng.standard_normal(len(nodes))
    y[nodes % 3 == 2] = np.nan
    return X, y, nodes


def ring(V: int = 12, ids: list | None = None, apart: int = 0) -> ct.EmpiricalGraph:
    """Two rings joined by an edge, and `apart` more nodes that no label reaches."""
    half = V // 2
    edges = [(k, (k + 1) % half) for k in range(half)] + [(half + k, half + (k + 1) % half) for k in range(half)]
    return ct.EmpiricalGraph.from_edges([*edges, (0, half)], n_nodes=V + apart, ids=ids)


def fitted(estimator: type = ct.NetworkedLinearRegression, ids: list | None = None, apart: int = 0, **options):
    """A model on the two rings, with names that try to break out of the page if wanted."""
    X, y, nodes = rows()
    graph = ring(ids=ids, apart=apart)
    labels = np.where(np.isnan(y), np.nan, y > 0) if "Logistic" in estimator.__name__ else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator(graph, **options).fit(X, labels, nodes if ids is None else [ids[k] for k in nodes])


def with_everything():
    """A model with λ by cross-validation, odd names, nodes that no label reaches, and all notes."""
    ids = [NASTY, "<i>b</i>", *(f"node {k}" for k in range(2, 14))]
    model = fitted(ct.NetworkedLinearRegressionCV, ids=ids, apart=2, n_lams=6, cv=3, random_state=0)
    model.feature_names_in_ = np.array([NASTY, "speed & <u>"], dtype=object)
    model.target_name_ = NASTY
    angle = np.linspace(0, 6, 14)
    model.notes_ = {
        "data": {"files": [NASTY, "b.csv"], "rows": 48, "sha256": "ab" * 32},
        "coordinates": {"names": ["lat", "lon"], "values": np.c_[60 + np.sin(angle), 25 + np.cos(angle)].tolist()},
        "baselines": {"methods": ["local only", NASTY], "errors": [[1.0, 2.0, 1.5], [0.5, 0.7, 0.4]], "over": "nodes"},
        "resolvability": {
            "cluster": [0, 1],
            "n_nodes": [6, 6],
            "n_labelled": [4, 4],
            "boundary": [1.0, 1.0],
            "flow": [2.0, 1.0],
            "ratio": [2.0, 1.0],
            "margin": [2.0, 1.0],
            "resolved": [True, False],
            "next_label": [None, NASTY],
            "gain": [0.0, 1.0],
        },
        "seed": 7,
        "command": f"coterie fit {NASTY}",
    }
    return model


def large(V: int = 2000):
    """A model with more nodes than are drawn as vectors."""
    network = stochastic_block_model((V // 2, V // 2), p_in=8 / V, p_out=0.2 / V, labelled=V // 2, noise=0.3)
    data = network.data
    return ct.NetworkedLinearRegression(network.graph, lam=0.05, tol=1e-3).fit(data.X, data.y, data.nodes)
