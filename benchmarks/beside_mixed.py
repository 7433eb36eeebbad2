"""Mixed models (statsmodels' MixedLM) beside Coterie: uneven groups without a graph, with one, and of public tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import coterie as ct
from benchmarks.held_out import Method, Question, ask, compare, coterie, head
from benchmarks.uneven import FEATURES, Table, days, drawn, hours, houses

SIZES = (60, 200)


def scattered(n_groups: int, seed: int) -> Table:
    """Groups whose intercept and slopes scatter around a common mean: what a mixed model assumes. No edge."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(FEATURES + 1) + 0.5 * rng.standard_normal((n_groups, FEATURES + 1))
    m = np.clip(np.round(np.exp(1.5 + 1.5 * rng.standard_normal(n_groups))), 1, 300).astype(int)
    nodes = np.repeat(np.arange(n_groups), m)
    X = rng.standard_normal((len(nodes), FEATURES))
    y = (X * truth[nodes, :FEATURES]).sum(axis=1) + truth[nodes, FEATURES] + rng.standard_normal(len(nodes))
    return Table(ct.EmpiricalGraph.from_edges([], n_nodes=n_groups), X, y, nodes)


def mixed(slopes: bool) -> Method:
    """MixedLM by REML on standardised columns: random intercepts, or random intercepts and slopes."""

    def predict(question: Question) -> np.ndarray:
        from statsmodels.regression.mixed_linear_model import MixedLM

        train, test = question.train, question.test
        centre, scale = train.X.mean(axis=0), train.X.std(axis=0)
        X, new = (np.column_stack([np.ones(len(t.X)), (t.X - centre) / scale]) for t in (train, test))
        level, unit = train.y.mean(), train.y.std()
        random = X if slopes else X[:, :1]
        fitted = MixedLM((train.y - level) / unit, X, train.nodes, exog_re=random).fit()
        beta = np.tile(fitted.fe_params, (train.graph.n_nodes, 1))
        for node, effect in fitted.random_effects.items():
            beta[node, : random.shape[1]] += np.asarray(effect)
        return np.asarray(level + unit * (new * beta[test.nodes]).sum(axis=1))

    return predict


WITHOUT_GRAPH: dict[str, Method] = {
    "MixedLM, intercepts": mixed(slopes=False),
    "MixedLM, intercepts and slopes": mixed(slopes=True),
    "Coterie, shared, no graph, squared": coterie("squared", edges=False, shared=True),
}
WITH_GRAPH: dict[str, Method] = WITHOUT_GRAPH | {
    "Coterie, squared": coterie("squared"),
    "Coterie, l1": coterie("l1"),
    "Coterie, shared, squared": coterie("squared", shared=True),
}


def run(seeds: int, data: Path | None) -> None:
    """Print the table."""
    cases: dict[str, tuple[Callable[[int], Table], dict[str, Method]]] = {}
    for size in SIZES:
        cases[f"scattered, {size} groups"] = partial(scattered, size), WITHOUT_GRAPH
    for size in SIZES:
        cases[f"blocks, {size} groups"] = (
            (lambda seed, size=size: drawn(seed, classes=False, n_nodes=size)[0]),
            WITH_GRAPH,
        )
    if data is not None:
        cases |= {read.__name__: (partial(read, data), WITH_GRAPH) for read in (houses, days, hours)}
    print("\nGroups of very different sizes, of 1 to 300 rows; noise of what is drawn has a standard deviation of 1.")
    head("table")
    for name, (table, methods) in cases.items():
        compare(name, lambda over, seed, table=table: ask(table(seed), over, seed), methods, seeds)
