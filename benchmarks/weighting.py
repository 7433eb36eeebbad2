"""Should every row count alike, or every node? Held-out error of both, λ chosen by cross-validation.

    python -m benchmarks.weighting --data FOLDER [--seeds 8]

FOLDER holds sacramento.csv, fmi_daily.csv and fmi_temperature.csv.gz; without it, only what is drawn. A quarter of the
rows, or of the nodes, is held out. Prints, for each table, the error of "rows" relative to that of "nodes", both as a
mean over the rows held out and as a mean over their nodes, with standard errors over the seeds.
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

WAYS = ("nodes", "rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers, lasso, classes = (
        ct.NetworkedLinearRegressionCV,
        partial(ct.NetworkedLassoCV, alpha=0.05),
        ct.NetworkedLogisticRegressionCV,
    )
    cases: dict[str, tuple[Any, Callable[[int], Table]]] = {
        "drawn, squared error": (numbers, lambda seed: drawn(seed, classes=False)[0]),
        "drawn, Lasso": (lasso, lambda seed: drawn(seed, classes=False)[0]),
        "drawn, logistic": (classes, lambda seed: drawn(seed, classes=True)[0]),
    }
    if arguments.data is not None:
        real = {"houses": houses, "days": days, "hours": hours}
        cases |= {f"{name}, squared error": (numbers, partial(read, arguments.data)) for name, read in real.items()}
        cases["houses, Lasso"] = (lasso, partial(houses, arguments.data))
    print("| table | held out | by rows, of the error by nodes: mean over rows | mean over nodes | better in |")
    print("|---|---|---|---|---|")
    for name, (model, table) in cases.items():
        for over in ("rows", "nodes"):
            ratios = np.array([compare(model, table(seed), over, seed) for seed in range(arguments.seeds)])
            mean, spread = np.exp(np.log(ratios).mean(axis=0)), np.log(ratios).std(axis=0, ddof=1)
            spread *= mean / np.sqrt(len(ratios))
            each = " | ".join(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True))
            print(f"| {name} | {over} | {each} | {(ratios[:, 0] < 1).sum()} of {len(ratios)} |", flush=True)


def compare(model: Any, table: Table, over: str, seed: int) -> tuple[float, float]:
    """The error of weight_by="rows" relative to that of "nodes": as a mean over rows, and over nodes."""
    rng = np.random.default_rng(1000 + seed)
    unit = np.arange(len(table.y)) if over == "rows" else table.nodes
    held = np.isin(unit, rng.choice(np.unique(unit), len(np.unique(unit)) // 4, replace=False))
    train, test = table.part(~held), table.part(held)
    errors = []
    for way in WAYS:
        fitted = model(train.graph, weight_by=way, n_lams=15, over=over, random_state=seed)
        fitted.fit(train.X, train.y, train.nodes)
        reached = ~np.isin(test.nodes, fitted.undetermined_nodes_)
        error = row_errors(fitted, test.part(reached))
        m = np.bincount(test.nodes[reached])
        by_node = np.bincount(test.nodes[reached], error)[m > 0] / m[m > 0]
        errors.append((error.mean(), by_node.mean()))
    return errors[1][0] / errors[0][0], errors[1][1] / errors[0][1]


def row_errors(model: Any, table: Table) -> np.ndarray:
    """Squared error, or log-loss, of each row."""
    if not hasattr(model, "predict_log_proba"):
        return (model.predict(table.X, table.nodes) - table.y) ** 2
    return -model.predict_log_proba(table.X, table.nodes)[np.arange(len(table.y)), table.y.astype(int)]


if __name__ == "__main__":
    main()
