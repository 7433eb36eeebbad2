"""Every loss on families b and c, and on few nodes with many rows, h: CPU time beside that of the logistic loss, and
beside CVXPY + Clarabel.

    python -m benchmarks.losses [--families b c h] [--losses huber poisson] [--scale .2] [--draws 6] [--clarabel]

Coterie is timed as in the other benchmarks: one thread, from the arrays of the problem to a certified 1e-6, after a
tiny problem of the same kind; short runs are repeated. With --draws, so many problems are drawn of each family: times
and ratios are medians, with the largest ratio beside them. Clarabel, with --clarabel, is given the first one and a
tolerance of 1e-6, in a process of its own that ends after --limit CPU seconds. Labels are those of the family, their
signs, thirds of them, or counts around e^{.3y}.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import partial
from statistics import median
from typing import Any

import coterie as ct
from benchmarks.families import blocks, hospitals, spatial
from benchmarks.peers import PEERS, Answer
from benchmarks.worker import TINY, timed_run

TOL = 1e-6
FAMILIES = {"b": blocks, "c": spatial, "h": hospitals}
LOSSES: dict[str, ct.Loss] = {
    "logistic": ct.Logistic(ridge=0.01),
    "logistic, no ridge": ct.Logistic(),
    "squared hinge": ct.SquaredHinge(ridge=0.01),
    "squared hinge, no ridge": ct.SquaredHinge(),
    "poisson": ct.Poisson(),
    "poisson, ridge": ct.Poisson(ridge=0.01),
    "huber": ct.Huber(),
    "huber, ridge": ct.Huber(ridge=0.01),
    "quantile": ct.Quantile(),
    "quantile, ridge": ct.Quantile(ridge=0.01),
    "multinomial": ct.Multinomial(n_classes=3, ridge=0.01),
    "logistic, elastic net": ct.Logistic(ridge=0.01, l1=0.02),
    "logistic, positive": ct.Logistic(ridge=0.01, positive=True),
    "squared error, positive": ct.SquaredError(positive=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--clarabel", action="store_true")
    parser.add_argument("--limit", type=float, default=300.0, help="CPU seconds for each run")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)  # one run of Clarabel, as JSON
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(run("CVXPY + Clarabel", arguments.families[0], arguments.losses[0], arguments)))
        return
    heads = "family, loss, CPU s, × logistic, largest, iterations, certified, Clarabel CPU s, ×, excess over the bound"
    print(f"| {heads.replace(', ', ' | ')} |\n|{' --- |' * (heads.count(',') + 1)}")
    for family in arguments.families:
        logistic = [one["seconds"] for one in runs(family, "logistic", arguments)]
        for loss in arguments.losses:
            print(row(family, loss, logistic, arguments), flush=True)


def row(family: str, loss: str, logistic: list[float], arguments: argparse.Namespace) -> str:
    """One line of the table."""
    drawn = runs(family, loss, arguments)
    here, ratios = drawn[0], [one["seconds"] / other for one, other in zip(drawn, logistic, strict=True)]
    cells = [
        family,
        loss,
        f"{median(one['seconds'] for one in drawn):.3g}",
        f"{median(ratios):.2g}",
        f"{max(ratios):.2g}",
        f"{median(one['n_iter'] for one in drawn):g}",
        f"{max(one['gap'] for one in drawn):.1e}",
    ]
    there = clarabel_alone(family, loss, arguments) if arguments.clarabel else None
    if there is None or "trouble" in there:
        cells += ["" if there is None else there["trouble"], "", ""]
    else:
        bound = here["objective"] * (1 - here["gap"])
        above = (there["objective"] - bound) / bound
        cells += [f"{there['seconds']:.3g}", f"{there['seconds'] / here['seconds']:.3g}", f"{above:.1e}"]
    return f"| {' | '.join(cells)} |"


def runs(family: str, loss: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Coterie on all draws."""
    return [run("Coterie", family, loss, arguments, draw) for draw in range(arguments.draws)]


def run(peer: str, family: str, loss: str, arguments: argparse.Namespace, draw: int = 0) -> dict[str, Any]:
    """One solver on one problem."""
    build = partial(FAMILIES[family], loss=LOSSES[loss])
    PEERS[peer](build(TINY))
    problem = build(arguments.scale, draw)
    answer, seconds = timed_run(PEERS[peer], problem, TOL, arguments.limit)
    return {"seconds": seconds, "objective": problem.objective(answer.w)} | said(answer)


def said(answer: Answer) -> dict[str, Any]:
    return {"n_iter": answer.n_iter, "gap": answer.gap}


def clarabel_alone(family: str, loss: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same of Clarabel, in a process of its own; or its "trouble"."""
    asked = ["--families", family, "--losses", loss, "--scale", str(arguments.scale), "--limit", str(arguments.limit)]
    command = [sys.executable, "-m", "benchmarks.losses", "--alone", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"trouble": f"> {arguments.limit:g}" if done.returncode < 0 else "no solution"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
