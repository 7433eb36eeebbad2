"""Every solver on every family, one table. `make bench` runs this."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from pathlib import Path

from benchmarks import bars, large, machine, report
from benchmarks.families import FAMILIES
from benchmarks.peers import PEERS
from benchmarks.results import Findings, Result, Run, measure

USUAL = [name for name in FAMILIES if name != "f"]


def run_family(family: str, peers: list[str], cut_python: str | None, **options: float) -> tuple[Run, list[Result]]:
    """The reference for one family, and all solvers on it."""
    say(f"{family}, seed {options['seed']:g}: {FAMILIES[family].what}")
    best = measure(family, "reference", **options)
    if not best.runs:
        raise SystemExit(f"Coterie could not solve {family}: {best.trouble}")
    optimum = best.runs[0].objective
    say(f"  the optimum is {optimum:.9g}, certified to {best.runs[0].gap:.1e}")
    found = []
    for peer in peers:
        python = cut_python if peer == "pycut_pursuit" and cut_python else sys.executable
        found.append(measure(family, peer, python, optimum=optimum, **options))
        runs = ", ".join(f"{run.seconds:.3g} s: {run.objective / optimum - 1:.1e}" for run in found[-1].runs)
        say(f"  {peer}: {'; '.join(filter(None, [runs, found[-1].trouble]))}")
    return best.runs[0], found


def say(line: str) -> None:
    """Progress goes to stderr, the table to stdout."""
    print(line, file=sys.stderr, flush=True)


def show(draws: list[Findings], verdicts: list[bars.Verdict]) -> None:
    """Print the table, what was left out, and the promises."""
    print(report.text_table(report.HEAD, report.rows(draws)))
    for line in report.left_out(draws):
        print(f"Left out: {line}")
    print()
    print(report.text_table(report.PROMISES, report.verdict_rows(verdicts)))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=USUAL, help="by default all but f")
    parser.add_argument("--solvers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--large", action="store_true", help="f as well: it takes minutes")
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual number of nodes")
    parser.add_argument("--seed", type=int, default=0, help="of the first draw")
    parser.add_argument("--draws", type=int, default=5, help="of each family; the middle and the worst are reported")
    parser.add_argument("--limit", type=float, default=180.0, help="CPU seconds of one run")
    parser.add_argument("--cut-python", help="the Python of an environment with pycut_pursuit, which needs NumPy < 2")
    parser.add_argument("--out", type=Path, help="write the page of the documentation there")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    families = [name for name in given.families if name != "f"]
    options = {"scale": given.scale, "limit": given.limit}
    peers = [name for name in PEERS if name in {*given.solvers, "Coterie"}]
    about = [f"{datetime.date.today():%-d %B %Y}; {machine.describe(given.cut_python)[0]}"]
    about += machine.describe(given.cut_python)[1:]
    draws = [Findings() for _ in range(given.draws)]
    for family in families:
        for seed, findings in enumerate(draws, given.seed):
            findings.add(family, *run_family(family, peers, given.cut_python, seed=seed, **options))
    verdicts = bars.judge(draws)
    print(*about, sep="\n", end="\n\n")
    if families:
        show(draws, verdicts)
    f = large.section(given.scale, given.seed) if given.large or "f" in given.families else ""
    if f:
        print(f)
    if given.out:
        _write(given.out, report.page(draws, verdicts, about, f))


def _write(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


if __name__ == "__main__":
    main()
