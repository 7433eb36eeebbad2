"""The paper's network at three real sites on loopback, with TLS and keys, for the three losses; only on this machine.

    python -m benchmarks.sites [--losses squared lasso logistic]
    python -m benchmarks.sites --many 50 [--rounds 10]
    python -m benchmarks.sites --gossip

Prints how far the objective of the model is above that of `ct.solve`, rounds, the medians of their seconds and of the
CPU seconds of all processes, and seconds from the first start of a process to the last end. With --many: so many sites
of five nodes each, for so many rounds at most. With --gossip: the paper's network at five sites, without a server;
rounds are iterations.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import coterie as ct
from benchmarks.many_sites import network
from coterie.datasets import stochastic_block_model
from coterie.federation.gossip_project import LocalGossip
from coterie.federation.local import LocalFederation
from coterie.federation.project import write_app, write_sites

NAMES = ("east", "north", "west")
LAM = 1e-3
LOSSES: dict[str, tuple[ct.Loss, dict[str, Any]]] = {
    "squared": (ct.SquaredError(), {}),
    "lasso": (ct.Lasso(0.01), {"alpha": 0.01}),
    "logistic": (ct.Logistic(ridge=0.01), {"ridge": 0.01}),
}


def papers_problem(loss: ct.Loss) -> ct.Problem:
    """300 nodes, 30 labelled; labels 0 and 1 for the logistic loss."""
    network = stochastic_block_model()
    data = network.data
    if isinstance(loss, ct.Logistic):
        y = np.where(np.isnan(data.y), np.nan, data.y > 0)
        data = ct.LocalDatasets.from_rows(data.X, y, data.nodes, n_nodes=data.n_nodes)
    return ct.Problem(network.graph, data, loss, lam=LAM)


def run(name: str, folder: Path) -> str:
    """Run one loss and return a line of the table."""
    loss, config = LOSSES[name]
    return measure(name, papers_problem(loss), np.arange(300) // 100, {"loss": name, **config}, folder / name)


def measure(name: str, problem: ct.Problem, site_of: np.ndarray, config: dict[str, Any], app: Path) -> str:
    """Run a federation in a new folder and return a line of the table."""
    names = NAMES if site_of.max() + 1 == len(NAMES) else [f"site{k:03d}" for k in range(site_of.max() + 1)]
    out = app / "model"
    write_app(app, app.name)
    write_sites(app, problem, site_of, names)
    config |= {"lam": problem.lam, "sites": len(names), "graph": str(app / "graph.csv"), "out": str(out)}
    ends, work = [0.0], list[float]()

    def see(line: dict[str, Any]) -> None:
        if "number" in line:
            ends.append(line["seconds"])
            work.append(cpu_seconds())

    began = time.monotonic()
    with LocalFederation(app, [app / "sites" / site for site in names], app.with_suffix(".work")) as federation:
        federation.run(config, out, see)
    seconds = time.monotonic() - began
    model = ct.load(out)
    w = weights(out / "weights.csv", problem.graph.n_nodes)
    above = problem.objective(w) / ct.solve(problem, 1e-9).objective - 1
    each, cpu = np.median(np.diff(ends)), np.median(np.diff(work))
    return f"| {name} | {above:.1e} | {model.gap_:.1e} | {model.n_iter_} | {each:.2f} | {cpu:.2f} | {seconds:.0f} |"


def cpu_seconds() -> float:
    """CPU seconds of all processes that this one has started, and theirs, that are still there (Linux)."""
    parent, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parent[int(path.parent.name)], ticks[int(path.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours, more = set[int](), {os.getpid()}
    while more:
        ours |= more
        more = {one for one, of in parent.items() if of in more}
    return sum(ticks[one] for one in ours) / os.sysconf("SC_CLK_TCK")


def gossip(app: Path) -> str:
    """Run the paper's network at five sites without a server, and return a line of the table."""
    problem = papers_problem(ct.SquaredError())
    names = [f"site{k}" for k in range(5)]
    write_app(app, app.name)
    write_sites(app, problem, np.arange(300) // 60, names)
    for path, old, new in (
        (app / "pyproject.toml", "lam = 0.01", f"lam = {LAM}"),
        *((site, '"finish"]', '"finish", "gossip"]') for site in app.glob("sites/*/site.toml")),
    ):
        path.write_text(path.read_text().replace(old, new))
    began = time.monotonic()
    with LocalGossip(app, [app / "sites" / name for name in names], app.with_suffix(".work")) as sites:
        result = sites.result(lambda line: None)
    seconds = time.monotonic() - began
    w = np.nansum([weights(app / "sites" / name / "weights.csv", 300) for name in names], axis=0)
    above = problem.objective(w) / ct.solve(problem, 1e-9).objective - 1
    each = seconds / result["iterations"]
    return f"| no server | {above:.1e} | {result['gap']:.1e} | {result['iterations']} | {each:.2f} | | {seconds:.0f} |"


def weights(path: Path, n_nodes: int) -> np.ndarray:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    w = np.full((n_nodes, len(header) - 1), np.nan)
    for node, *numbers in rows:
        w[int(node)] = [float(x) for x in numbers]
    return w


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--losses", nargs="+", default=list(LOSSES), choices=list(LOSSES))
    parser.add_argument("--many", type=int, metavar="SITES", help="instead, sites of five nodes each")
    parser.add_argument("--rounds", type=int, default=200, help="with --many: the most rounds")
    parser.add_argument("--gossip", action="store_true", help="instead, five sites without a server")
    given = parser.parse_args()
    print("| what | objective above that of `ct.solve`, relative | gap | rounds | s per round | CPU s | s in all |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        if given.many:
            problem, site_of = network(given.many)
            config = {"loss": "squared", "max-rounds": given.rounds}
            print(measure(f"{given.many} sites", problem, site_of, config, Path(folder) / "many"))
            return
        if given.gossip:
            print(gossip(Path(folder) / "gossip"))
            return
        for name in given.losses:
            print(run(name, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
