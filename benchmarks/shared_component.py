"""Does a component that all nodes share help? Beside the graph, and instead of it.

    python -m benchmarks.shared_component --data FOLDER [--draws 3]

Prints the root mean squared error of rows held out (5 folds over rows; λ of each fold is that of the others), relative
to squared variation on the graph, for what compare_baselines knows, and for shared=True with the graph and without any
edge; means over so many tables that differ by their seed, with standard errors. FOLDER as for benchmarks.weighting.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import coterie as ct
from benchmarks.uneven import Table, days, drawn, hours, houses
from coterie.estimators.comparison import NETWORK


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cases: dict[str, Callable[[int], Table]] = {"drawn": lambda seed: drawn(seed, classes=False)[0]}
    if arguments.data is not None:
        cases |= {read.__name__: partial(read, arguments.data) for read in (houses, days, hours)}
    found = {name: [errors_of(table(seed), seed) for seed in range(arguments.draws)] for name, table in cases.items()}
    print(f"| | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for method in found["drawn"][0]:
        cells = []
        for runs in found.values():
            ratios = np.log([run[method] / run["squared variation"] for run in runs])
            cells.append(f"{np.exp(ratios.mean()):.4f} ± {ratios.std(ddof=1) / np.sqrt(len(ratios)):.4f}")
        print(f"| {method} | {' | '.join(cells)} |")


def errors_of(table: Table, seed: int) -> dict[str, float]:
    """The error of every method, in the same folds."""
    apart = ct.EmpiricalGraph.from_edges([], n_nodes=table.graph.n_nodes)
    rows = table.X, table.y, table.nodes
    how: dict[str, Any] = {"over": "rows", "random_state": seed}
    base = ct.compare_baselines(ct.NetworkedLinearRegressionCV(table.graph, n_lams=20), *rows, **how)
    named = zip(base.methods, base.mean.tolist(), strict=True)
    found = {("total variation" if name == NETWORK else name): error for name, error in named}
    for penalty, name in (("squared", "squared variation"), ("l1", "total variation")):
        for graph, with_what in ((table.graph, "shared"), (apart, "shared and no graph")):
            model = ct.NetworkedLinearRegressionCV(graph, n_lams=20, penalty=penalty, shared=True, **how).fit(*rows)
            found[f"{name}, {with_what}"] = model.held_out_.error
    return found


if __name__ == "__main__":
    main()
