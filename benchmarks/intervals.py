"""How many new labels do prediction intervals cover? New rows of known nodes, and rows of nodes without labels.

    python -m benchmarks.intervals --data FOLDER [--draws 40] [--splits 10] [--coverage 0.9]

A third of the rows (or nodes) is kept for testing; split-conformal keeps another third for calibration, which
cross-conformal learns from too. λ is the choice of AICc. Prints the share of labels covered, with its standard error
over the draws, the smallest share of a draw, and the mean width relative to that of an interval that knows nothing but
the labels. For nodes, a label is that of a random row of a random node: shares are means over nodes. FOLDER as for
benchmarks.weighting.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import coterie as ct
from benchmarks.uneven import Table, days, drawn, hours, houses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--coverage", type=float, default=0.9)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cases: dict[str, tuple[int, Callable[[int], Table]]] = {
        "drawn": (arguments.draws, lambda seed: drawn(seed, classes=False, n_nodes=90)[0])
    }
    if arguments.data is not None:
        real = {"houses": houses, "days": days, "hours": hours}
        cases |= {name: (arguments.splits, partial(read, arguments.data)) for name, read in real.items()}
    print("| table | by | conformal | draws | covered | least | width |\n|---|---|---|---|---|---|---|")
    for name, (count, table) in cases.items():
        for by in ("rows", "nodes"):
            runs = [covered(table(seed), by, seed, arguments.coverage) for seed in range(count)]
            for how in ("split", "cross"):
                found = np.array([run[how] for run in runs])
                mean, spread = found.mean(axis=0), found[:, 0].std(ddof=1) / np.sqrt(count)
                share = f"{mean[0]:.3f} ± {spread:.3f} | {found[:, 0].min():.3f}"
                print(f"| {name} | {by} | {how} | {count} | {share} | {mean[1]:.2f} |", flush=True)


def covered(table: Table, by: str, seed: int, coverage: float) -> dict[str, tuple[float, float]]:
    """The share covered, and the relative width, by how intervals were calibrated."""
    rng = np.random.default_rng(1000 + seed)
    unit = np.arange(len(table.y)) if by == "rows" else table.nodes
    part = rng.permutation(np.arange(unit.max() + 1) % 3)[unit]
    test, kept = table.part(part == 0), table.part(part == 1)
    found = {}
    for how in ("split", "cross"):
        train = table.part(part == 2) if how == "split" else table.part(part != 0)
        model = ct.NetworkedLinearRegressionCV(train.graph, n_lams=8, criterion="aicc")
        model.fit(train.X, train.y, train.nodes)
        rows = (kept.X, kept.y, kept.nodes) if how == "split" else ()
        model.calibrate(*rows, by=by, random_state=seed)
        use = np.isfinite(ends := model.predict_interval(test.X, test.nodes, coverage)).all(axis=1)
        inside = (ends[:, 0] <= test.y) & (test.y <= ends[:, 1])
        of = np.arange(len(test.y)) if by == "rows" else test.nodes
        share = np.mean([inside[of == i].mean() for i in np.unique(of)]) if by == "nodes" else inside.mean()
        plain = np.diff(np.quantile(train.y, [(1 - coverage) / 2, (1 + coverage) / 2]))[0]
        found[how] = float(share), float(np.diff(ends[use]).mean() / plain) if use.any() else np.inf
    return found


if __name__ == "__main__":
    main()
