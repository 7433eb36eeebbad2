"""What compared tools are asked: predict rows that were held out. Errors, CPU seconds, and the lines of a table."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

import coterie as ct
from benchmarks.uneven import Table

KINDS = ("rows", "nodes")
PART = 0.25  # of the rows, or of the nodes, is held out


@dataclass(frozen=True, eq=False)
class Question:
    """A table, and which of its rows are held out: single rows, or all rows of some nodes."""

    table: Table
    over: str
    held: np.ndarray
    seed: int
    places: np.ndarray | None = None  # one row per node, where nodes have one

    @property
    def train(self) -> Table:
        """The rows that may be learnt from."""
        return self.table.part(~self.held)

    @property
    def test(self) -> Table:
        """The rows that are to be predicted."""
        return self.table.part(self.held)


Method = Callable[[Question], np.ndarray | None]
"""Predictions of the held-out rows; None if the tool makes none."""


def ask(table: Table, over: str, seed: int, places: np.ndarray | None = None) -> Question:
    """Hold out a quarter of the rows, or of the nodes that have any."""
    unit = np.arange(len(table.y)) if over == "rows" else table.nodes
    units = np.unique(unit)
    held = np.random.default_rng(1000 + seed).choice(units, int(PART * len(units)), replace=False)
    return Question(table, over, np.isin(unit, held), seed, places)


def coterie(penalty: str, *, edges: bool = True, shared: bool = False) -> Method:
    """Coterie, its λ one of ten, chosen by cross-validation over what is asked for."""

    def predict(question: Question) -> np.ndarray:
        train, test = question.train, question.test
        graph = train.graph if edges else ct.EmpiricalGraph.from_edges([], n_nodes=train.graph.n_nodes)
        model = ct.NetworkedLinearRegressionCV(
            graph, penalty=penalty, shared=shared, n_lams=10, over=question.over, random_state=question.seed, tol=1e-4
        )
        return np.asarray(model.fit(train.X, train.y, train.nodes).predict(test.X, test.nodes))

    return predict


def measure(question: Question, method: Method) -> tuple[float, float]:
    """The root mean squared error of a method, nan if it has none; and its CPU seconds."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = method(question)
    seconds = time.process_time() - began
    if found is None:
        return np.nan, seconds
    return float(np.sqrt(np.mean((found - question.test.y) ** 2))), seconds


def compare(name: str, questions: Callable[[str, int], Question], methods: Mapping[str, Method], seeds: int) -> None:
    """Print one line of a table for each method: errors of held-out rows and nodes, and the median of CPU seconds."""
    asked = [[questions(over, seed) for seed in range(seeds)] for over in KINDS]
    errors, seconds = np.zeros((2, len(methods), len(KINDS), seeds))
    for i, method in enumerate(methods.values()):
        for j, k in np.ndindex(len(KINDS), seeds):
            errors[i, j, k], seconds[i, j, k] = measure(asked[j][k], method)
    least = errors == np.nanmin(errors, axis=0)
    for i, label in enumerate(methods):
        cells = [f"{cell(errors[i, j])}, {least[i, j].sum()}" for j in range(len(KINDS))]
        cells = ["–" if np.isnan(errors[i, j]).any() else cells[j] for j in range(len(KINDS))]
        print(f"| {name} | {label} | {' | '.join(cells)} | {np.median(seconds[i]):.2g} |", flush=True)


def head(first: str) -> None:
    """Print the head of such a table; after each error stands in how many draws it is the smallest."""
    print(f"\n| {first} | method | held-out rows, best in | held-out nodes, best in | CPU s of a fit |")
    print("|---|---|---|---|---|")


def cell(errors: np.ndarray) -> str:
    """A mean with its standard error."""
    spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else 0.0
    return f"{errors.mean():.4g} ± {spread:.2g}"
