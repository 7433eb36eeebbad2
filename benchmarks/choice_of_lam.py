"""How far from the best λ is the one that cross-validation chooses? Classification with 60 uneven labelled nodes.

    python -m benchmarks.choice_of_lam [--seeds 0 16] [--repeats 3] [--over rows nodes]

The excess of a choice is its log-loss on rows that nobody has seen, 29 times as many as were learnt from, less the
smallest on the same path of λ. Prints it, and how it differs from the first line, for one draw of folds as it was until
15 November 2026 (nodes count alike, folds count alike, nodes drawn without regard to rows and classes); for what
changed; and for what no choice by the rows at hand has, as many new rows as were learnt from.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

import coterie as ct
from benchmarks.uneven import Table, drawn
from coterie.estimators.fold import Fold
from coterie.estimators.folds import folds_of
from coterie.estimators.lam_choice import LamChoice
from coterie.estimators.lam_errors import cross_validate_lam

FOLDS, N_LAMS, SMALLEST, LABELLED, SIGNAL, MORE = 5, 12, 1e-3, 60, 0.6, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs=2, default=[0, 16], metavar=("FIRST", "BEYOND"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--over", nargs="+", default=["rows", "nodes"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for over in arguments.over:
        runs = [excesses(seed, over, arguments.repeats) for seed in range(*arguments.seeds)]
        print(f"\nheld out: {over}; thousandths of log-loss, {len(runs)} draws\n")
        print("| | excess | against the first | log-loss |\n|---|---|---|---|")
        first = np.array([next(iter(run.values()))[0] for run in runs])
        for name in runs[0]:
            excess, loss = np.array([run[name] for run in runs]).T
            print(
                f"| {name} | {_in_words(excess)} | {_in_words(excess - first)} | {1e3 * loss.mean():.1f} |", flush=True
            )


def _in_words(values: np.ndarray) -> str:
    return f"{1e3 * values.mean():.2f} ± {1e3 * values.std(ddof=1) / np.sqrt(len(values)):.2f}"


def excesses(seed: int, over: str, repeats: int) -> dict[str, tuple[float, float]]:
    """The excess and the log-loss of each way to choose."""
    train, test = drawn(
        seed, classes=True, n_nodes=LABELLED if over == "rows" else 2 * LABELLED, signal=SIGNAL, more=MORE
    )
    if over == "nodes":
        train, test = train.part(train.nodes < LABELLED), test.part(test.nodes >= LABELLED)
    few = np.arange(len(test.y)) % MORE == 0  # of each node, as many as it has in the other table
    found = {}
    for weight_by in ("nodes", "rows"):
        problem = stated(train, weight_by)
        path = ct.solve_path(problem, n_lams=N_LAMS, smallest=SMALLEST, tol=1e-3)
        design = np.column_stack([test.X, np.ones(len(test.y))])
        losses = np.array([problem.loss.error(design, test.y, s.w[test.nodes]) for s in path.solutions])
        risk = losses[:, ~few].mean(axis=1)

        def of(curve: np.ndarray, risk: np.ndarray = risk) -> tuple[float, float]:
            chosen = risk[curve.argmin()]
            return float(chosen - risk.min()), float(chosen)

        before = choice(problem, path.lams, formerly(problem.data, over, seed), over)
        found[f"{weight_by} count alike, folds as they were"] = of(before.errors.mean(axis=1))
        after = choice(problem, path.lams, folds_of(problem.data, FOLDS, over, np.arange(0), seed, repeats)[0], over)
        for r in sorted({1, repeats}):
            now = np.average(after.errors[:, : r * FOLDS], axis=1, weights=after.weights[: r * FOLDS])
            found[f"{weight_by} count alike, folds as now, draws: {r}"] = of(now)
        found[f"{weight_by} count alike, as many new rows"] = of(losses[:, few].mean(axis=1))
    return found


def stated(table: Table, weight_by: str) -> ct.Problem:
    """The problem that NetworkedLogisticRegression states."""
    model = ct.NetworkedLogisticRegression(table.graph, weight_by=weight_by, standardize=False)
    return model._problem(table.X, table.y, table.nodes, None)[0]


def choice(problem: ct.Problem, lams: tuple[float, ...], folds: list[Fold], over: str) -> LamChoice:
    """The errors of all folds."""
    return cross_validate_lam(replace(problem, lam=0.0), lams, folds, over)


def formerly(data: ct.LocalDatasets, over: str, seed: int) -> list[Fold]:
    """Folds as they were drawn: rows by their classes, nodes without regard to anything."""
    items, member = (data.labelled.M, data.nodes) if over == "nodes" else (np.arange(len(data.y)),) * 2
    splitter = KFold if over == "nodes" else StratifiedKFold
    splits = splitter(FOLDS, shuffle=True, random_state=seed).split(items, None if over == "nodes" else data.y)
    return [Fold(~(test := np.isin(member, items[held])), test) for _, held in splits]


if __name__ == "__main__":
    main()
