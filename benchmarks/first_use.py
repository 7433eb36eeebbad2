"""First use: fresh processes that find no kernels on disk, imports included.

    python -m benchmarks.first_use [--repeat 3]                                 # what a new user runs first
    python -m benchmarks.first_use --solves [--n 1 2 20] [--losses lasso] [--penalties l1 squared]
    python -m benchmarks.first_use --solves --tree ../older/src                 # the same, of another version

Solves are of 40 nodes in two blocks with 198 edges, every other node with n + 5 rows, to a gap of 1e-6. Seconds are
wall clock and CPU, with all processes that were started; a program that compiled leaves kernels, which are counted.
Python has compiled its own modules by then: there is a run before that is not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FEATURES = (*range(1, 13), 20, 50)
LOSSES = {"squared": "ct.SquaredError()", "lasso": "ct.Lasso(0.1)", "logistic": "ct.Logistic(ridge=1e-3)"}
PENALTIES = {"l1": "ct.TotalVariation()", "l2": "ct.GroupTotalVariation()", "squared": "ct.SquaredVariation()"}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CHANGES = ("NUMBA_", "COVERAGE_", "PYTHONDONTWRITEBYTECODE")  # settings of a shell that change what is measured
FIT = "fit rows.csv --node station --target rain --features humidity,wind --knn lat,lon:5 --out model"
SOLVE = """
import numpy as np
import coterie as ct

n, rng = {n}, np.random.default_rng(0)
block = np.arange(40) % 2
pairs = [(i, j) for i in range(40) for j in range(i) if block[i] == block[j]]
pairs = [pairs[k] for k in rng.choice(len(pairs), 190, replace=False)] + [(i, i + 1) for i in range(0, 16, 2)]
nodes = np.repeat(np.arange(0, 40, 2) + np.arange(20) % 2, n + 5)
X = rng.standard_normal((len(nodes), n))
y = np.where(block[nodes] == 0, 1, -1) * X.sum(axis=1) / np.sqrt(n) + 0.1 * rng.standard_normal(len(nodes))
y = (y > 0).astype(float) if {loss!r} == "logistic" else y
graph = ct.EmpiricalGraph.from_edges(pairs, n_nodes=40)
data = ct.LocalDatasets.from_rows(X, y, nodes, n_nodes=40)
solution = ct.solve(ct.Problem(graph, data, loss={make}, penalty={penalty}, lam=0.02))
assert solution.gap <= 1e-6, solution
"""


class Spent(NamedTuple):
    """What a process took, and how many compiled functions it left."""

    wall: float
    cpu: float
    kernels: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--solves", action="store_true")
    parser.add_argument("--n", type=int, nargs="+", default=FEATURES)
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--penalties", nargs="+", choices=PENALTIES, default=list(PENALTIES))
    parser.add_argument("--tree", type=Path, default=ROOT / "src", help="the folder that holds the package")
    arguments = parser.parse_args()
    if arguments.solves:
        solves(arguments)
    else:
        programs(arguments.tree, arguments.repeat)


def solves(arguments: argparse.Namespace) -> None:
    """One solve for each n, loss and penalty: CPU seconds."""
    n_s, losses, penalties, tree = arguments.n, arguments.losses, arguments.penalties, arguments.tree
    _solved(n_s[0], losses[0], penalties[0], tree)
    print(f"| loss | penalty | {' | '.join(f'n = {n}' for n in n_s)} |\n|{' --- |' * (len(n_s) + 2)}")
    for loss in losses:
        for penalty in penalties:
            print(f"| {loss} | {penalty} |", end="", flush=True)
            for n in n_s:
                print(f" {_solved(n, loss, penalty, tree).cpu:.2f} |", end="", flush=True)
            print()


def _solved(n: int, loss: str, penalty: str, tree: Path) -> Spent:
    code = SOLVE.format(n=n, loss=loss, make=LOSSES[loss], penalty=PENALTIES[penalty])
    with TemporaryDirectory() as folder:
        return spent(["-c", code], tree, Path(folder))


def programs(tree: Path, repeat: int) -> None:
    """What a new user runs first: wall-clock and CPU seconds, and the bar."""
    example = BLOCK.search(_text("docs/cli.md"))
    assert example is not None
    ten_lines, first_fit = (BLOCK.findall(_text(page)) for page in ("README.md", "docs/start/first-fit.md"))
    demo, local = ["-m", "coterie", "demo"], ["-m", "coterie", "federate", "run", "--local", "ours/sites"]
    fit = ["-m", "coterie", *FIT.split()]
    wanted = {
        "`import coterie`": (["-c", "import coterie"], 0.03),
        "the README's ten lines": (["-c", ten_lines[0]], 1.5),
        "a first fit: a table, λ by cross-validation": (["-c", "\n".join(first_fit[:3])], 5.0),
        "`coterie demo`": (demo, 5.0),
        "`coterie fit` of docs/cli.md, --no-baselines": ([*fit, "--no-baselines"], 6.0),
        "`coterie fit` of docs/cli.md": (fit, None),
        "`coterie federate run --local` of its example": (local, None),
    }
    print("| | wall s | CPU s | bar (wall) | kernels compiled |\n| --- | --- | --- | --- | --- |")
    for name, (command, bar) in wanted.items():
        _, *all_spent = [_alone(command, example.group(1), tree) for _ in range(repeat + 1)]
        wall, cpu = (", ".join(f"{one[k]:.2f}" for one in all_spent) for k in (0, 1))
        print(f"| {name} | {wall} | {cpu} | {bar or ''} | {max(one.kernels for one in all_spent)} |", flush=True)


def _alone(command: list[str], example: str, tree: Path) -> Spent:
    """One run in a folder that holds the table of docs/cli.md, and the federation of `init`."""
    with TemporaryDirectory() as folder:
        if "fit" in command:
            spent(["-c", example], tree, Path(folder))
        if "federate" in command:
            spent(["-m", "coterie", "federate", "init", "ours"], tree, Path(folder))
        return spent(command, tree, Path(folder))


def spent(command: list[str], tree: Path, folder: Path) -> Spent:
    """Run Python in a folder, with an empty folder for kernels."""
    with TemporaryDirectory() as kernels:
        keep = {name: value for name, value in os.environ.items() if not name.startswith(CHANGES)}
        environment = keep | {"PYTHONPATH": str(tree.absolute()), "NUMBA_CACHE_DIR": kernels}
        began, before = time.perf_counter(), _cpu()
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{command}: {done.stderr[-2000:]}")
        return Spent(time.perf_counter() - began, _cpu() - before, len(list(Path(kernels).rglob("*.nbc"))))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
