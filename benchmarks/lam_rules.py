"""What should choose λ? The smallest cross-validated error, the one-SE rule, AICc or BIC, with and without a refit.

    python -m benchmarks.lam_rules --data FOLDER [--seeds 6] [--penalty l1]

A quarter of the rows is held out, and λ chosen among 15 values on the rest: by 5 folds over rows, or without folds.
Prints, for each table, the root mean squared error of the rows held out relative to that of "best", with its standard
error over the seeds; the effective parameters; and the CPU seconds of the choice and the fit. FOLDER as for
benchmarks.weighting; without it, only what is drawn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import coterie as ct
from benchmarks.uneven import Table, days, drawn, hours, houses

WAYS: dict[str, dict[str, Any]] = {
    "best": {},
    "one_se": {"rule": "one_se"},
    "aicc": {"criterion": "aicc"},
    "bic": {"criterion": "bic"},
    "best, refit": {"refit": "clusters"},
    "aicc, refit": {"criterion": "aicc", "refit": "clusters"},
    "bic, refit": {"criterion": "bic", "refit": "clusters"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--penalty", default="l1")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cases: dict[str, Callable[[int], Table]] = {"drawn": lambda seed: drawn(seed, classes=False)[0]}
    if arguments.data is not None:
        cases |= {read.__name__: partial(read, arguments.data) for read in (houses, days, hours)}
    ways = {name: how for name, how in WAYS.items() if arguments.penalty != "squared" or "refit" not in how}
    errors_of(drawn(0, classes=False)[0], 0, arguments.penalty, ways)  # compiles
    print("| table | λ by | error | parameters | CPU s |\n|---|---|---|---|---|")
    for name, table in cases.items():
        found = np.array([errors_of(table(seed), seed, arguments.penalty, ways) for seed in range(arguments.seeds)])
        ratios = np.log(found[:, :, 0] / found[:, :1, 0])
        for k, way in enumerate(ways):
            mean, spread = np.exp(ratios[:, k].mean()), ratios[:, k].std(ddof=1) / np.sqrt(len(ratios))
            error = f"{found[:, k, 0].mean():.4g}" if k == 0 else f"× {mean:.4f} ± {spread:.4f}"
            print(
                f"| {name} | {way} | {error} | {found[:, k, 1].mean():.0f} | {found[:, k, 2].mean():.1f} |", flush=True
            )


def errors_of(table: Table, seed: int, penalty: str, ways: dict[str, dict[str, Any]]) -> list[tuple[float, ...]]:
    """The error of rows held out, the effective parameters and the CPU seconds, for each way to choose λ."""
    held = np.isin(np.arange(len(table.y)), np.random.default_rng(1000 + seed).permutation(len(table.y))[::4])
    train, test = table.part(~held), table.part(held)
    found = []
    for how in ways.values():
        start = time.process_time()
        model = ct.NetworkedLinearRegressionCV(
            train.graph, n_lams=15, over="rows", random_state=seed, penalty=penalty, **how
        ).fit(train.X, train.y, train.nodes)
        seconds = time.process_time() - start
        reached = test.part(~np.isin(test.nodes, model.undetermined_nodes_))
        error = np.sqrt(((model.predict(reached.X, reached.nodes) - reached.y) ** 2).mean())
        found.append((float(error), model.effective_parameters_, seconds))
    return found


if __name__ == "__main__":
    main()
