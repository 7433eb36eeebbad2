"""Six towns in two triangles and a bridge, in every form that a model takes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
from scipy.sparse import csr_array

import coterie as ct

TOWNS = ["a1", "a2", "a3", "b1", "b2", "b3"]
EDGES = [(0, 1, 1.0), (0, 2, 2.0), (1, 2, 1.0), (2, 3, 0.5), (3, 4, 1.0), (3, 5, 2.0), (4, 5, 1.0)]
TRUTH = np.array([[2.0, 1.0, 0.5]] * 3 + [[-2.0, 1.0, -0.5]] * 3)  # two features and the intercept

PLAIN = (ct.NetworkedLinearRegression, ct.NetworkedLasso, ct.NetworkedLogisticRegression)
CHOOSING = (ct.NetworkedLinearRegressionCV, ct.NetworkedLassoCV, ct.NetworkedLogisticRegressionCV)


def empirical() -> ct.EmpiricalGraph:
    pairs, weights = [e[:2] for e in EDGES], [e[2] for e in EDGES]
    return ct.EmpiricalGraph.from_edges(pairs, weights, ids=TOWNS)


def networkx_graph() -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(TOWNS)
    graph.add_weighted_edges_from((TOWNS[i], TOWNS[j], a) for i, j, a in EDGES)
    return graph


def edge_columns() -> dict[str, list]:
    return {
        "from": [TOWNS[i] for i, _, _ in EDGES],
        "to": [TOWNS[j] for _, j, _ in EDGES],
        "weight": [a for _, _, a in EDGES],
    }


def pandas_edges() -> pd.DataFrame:
    return pd.DataFrame(edge_columns())


def polars_edges() -> pl.DataFrame:
    return pl.DataFrame(edge_columns())


def sparse_graph() -> csr_array:
    """Its nodes are numbers."""
    i, j, a = np.array(EDGES).T
    upper = csr_array((a, (i.astype(int), j.astype(int))), shape=(6, 6))
    return upper + upper.T


NAMED_GRAPHS = (empirical, networkx_graph, pandas_edges, polars_edges)


def rows(m: int = 5, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (6m, 2), y and the numbers of the towns, shuffled."""
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(np.repeat(np.arange(6), m))
    X = rng.standard_normal((6 * m, 2))
    y = np.einsum("rk,rk->r", X, TRUTH[nodes, :2]) + TRUTH[nodes, 2] + noise * rng.standard_normal(6 * m)
    return X, y, nodes


def names(nodes: np.ndarray) -> list[str]:
    return [TOWNS[i] for i in nodes]


def labels_for(model: Any, y: np.ndarray) -> np.ndarray:
    """Labels that this model learns from; the classes are not separable."""
    if not issubclass(model, ct.NetworkedLogisticRegression):
        return y
    flipped = np.random.default_rng(5).random(len(y)) < 0.2
    return np.where((y > 0) != flipped, "wet", "dry")


def quick(model: Any, graph: Any, **parameters: Any) -> Any:
    """A model that is fitted in no time, whichever it is."""
    few = {"n_lams": 4, "cv": 2, "random_state": 0} if model in CHOOSING else {"lam": 0.1}
    return model(graph, **few | parameters)


def problem_of(model: Any, X: np.ndarray, y: np.ndarray, nodes: np.ndarray, **parts: Any) -> ct.Problem:
    """The problem that a model with an intercept states, for `coterie.solve`."""
    losses = {
        ct.NetworkedLinearRegression: ct.SquaredError(unpenalised=(2,)),
        ct.NetworkedLasso: ct.Lasso(0.1, unpenalised=(2,)),
        ct.NetworkedLogisticRegression: ct.Logistic(1e-3, unpenalised=(2,)),
    }
    numbers = (y == "wet").astype(float) if y.dtype.kind == "U" else y
    data = ct.LocalDatasets.from_rows(np.column_stack([X, np.ones(len(X))]), numbers, nodes, n_nodes=6)
    return ct.Problem(empirical(), data, **{"loss": losses[model], "lam": 0.1} | parts)
