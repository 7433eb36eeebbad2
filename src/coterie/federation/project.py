"""A Flower app in a folder, ready to run: configuration, apps, an example of sites, and the graph between them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from coterie.datasets import stochastic_block_model
from coterie.federation.partition import partition
from coterie.federation.policy import LEAST_NODES, LEAST_ROWS, write_policy
from coterie.problem import Problem
from coterie.problem.losses import Huber, Lasso, Logistic, Multinomial, Poisson, Quantile, SquaredError
from coterie.problem.penalties import PENALTIES
from coterie.problem.strengths import refuse_strengths

OFFSET = "offset"  # the column of what is known of counts beforehand, where something is
LOSS_NAMES = {
    SquaredError: "squared",
    Lasso: "lasso",
    Logistic: "logistic",
    Multinomial: "logistic",
    Poisson: "poisson",
    Huber: "huber",
    Quantile: "quantile",
}

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.0.0"
description = "One model for every node of a network whose sites keep their rows"
license = "MIT"
dependencies = ["coterie[flower]"]

[tool.hatch.build.targets.wheel]
packages = ["federation"]

[tool.flwr.app]
publisher = "coterie"
fab-include = ["federation/*.py"]  # nothing else travels: what the sites have stays with them

[tool.flwr.app.components]
serverapp = "federation.server_app:app"
clientapp = "federation.client_app:app"

[tool.flwr.app.config]
# The problem
loss = "squared"            # squared, lasso, logistic, poisson, huber or quantile
alpha = 0.0                 # of lasso
ridge = 0.0                 # of all others
l1 = 0.0                    # of all others, which with a ridge makes an elastic net
delta = 1.0                 # of huber, in units of the label
quantile = 0.5              # of quantile
classes = ""                # of logistic: names of the classes, as "mild, severe, none"; empty: 0 and 1
penalty = "l1"              # l1 (the paper's), l2 or squared
lam = 0.01                  # the strength of the edges
# The columns of every site's data; all others are features
node = "node"
label = "y"
offset = ""                 # of poisson: a column that is added to ⟨x, w⟩; or
exposure = ""               # of poisson: a column whose logarithm is
# The run
sites = 3                   # how many sites take part
tol = 1e-6                  # the certified relative gap to reach
max-rounds = 200
timeout = 180.0             # seconds that a round may take
wait = 300.0                # seconds that sites may take to come at the start
hold-after = 3              # a site that misses so many rounds keeps its weights, and the others go on
on-bad-site = "stop"        # or "set-aside": what to do about a site that answers nonsense
share-weights = true        # whether sites send the weights of all their nodes at the end; they always keep them
resume = true               # go on from the last checkpoint in `out`, if there is one
graph = "graph.csv"         # the edges between sites: a path on the server's machine
out = "model"               # where the model goes: a path on the server's machine
# Differential privacy (coterie[privacy]): 0 is none; otherwise there is no certificate, and share-weights must be false
privacy-noise = 0.0         # standard deviation of the noise over 2 × privacy-clip
privacy-clip = 1.0          # how far the boundary weights of a site may move in one round
privacy-rounds = 10         # how many rounds there are
privacy-delta = 1e-5        # δ for which ε is stated
# Or differential privacy of single rows (coterie[privacy]; squared and lasso): 0 is none; the certificate is kept
row-privacy-epsilon = 0.0   # ε of everything that a site ever says
row-privacy-delta = 1e-5
row-privacy-x-clip = 1.0    # the norm that the features of a row may have before the row is shrunk
row-privacy-y-clip = 1.0    # the size that its label may have
"""

CLIENT = '''"""The ClientApp: answers requests about a site's nodes; its rows stay in the site's folder."""

from coterie.federation.client_app import app

__all__ = ["app"]
'''

SERVER = '''"""The ServerApp: knows the edges between sites, asks the sites, and proves how good the answer is."""

from coterie.federation.server_app import app

__all__ = ["app"]
'''


def write_project(folder: Path, name: str) -> None:
    """Write the app with an example: 60 nodes in three clusters, one at each of three sites."""
    truth = ((2.0, 2.0), (-2.0, 2.0), (1.0, -1.0))
    network = stochastic_block_model((20, 20, 20), truth, p_in=0.3, p_out=0.01, labelled=24, noise=0.1)
    write_app(folder, name)
    write_sites(folder, Problem(network.graph, network.data), np.arange(60) // 20, ("east", "north", "west"))


def write_app(folder: Path, name: str) -> None:
    """Write the configuration and the two apps."""
    (folder / "federation").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT.format(name=name), encoding="utf-8")
    for file, text in (("__init__.py", '"""The apps."""\n'), ("client_app.py", CLIENT), ("server_app.py", SERVER)):
        (folder / "federation" / file).write_text(text, encoding="utf-8")


def write_sites(folder: Path, problem: Problem, site_of: Any, names: Sequence[str]) -> None:
    """Write rows, inner edges and policy of each site into its own folder, and the edges between sites beside them."""
    refuse_strengths(problem)
    parts, cut = partition(problem.graph, site_of)
    data = problem.data
    features = [f"x{k}" for k in range(data.n_features)]
    known = [] if data.offset is None else [OFFSET]
    for part, name in zip(parts, names, strict=True):
        site = folder / "sites" / name
        site.mkdir(parents=True)
        rows = np.flatnonzero(np.isin(data.nodes, part.own))
        X = data.X if data.offset is None else np.column_stack([data.X, data.offset])
        lines = ([data.nodes[r], *map(repr, X[r].tolist()), _label(data.y[r])] for r in rows)
        _write_csv(site / "data.csv", ["node", *features, *known, "y"], lines)
        _write_edges(site / "edges.csv", part.own[part.graph.edges], part.graph.weights)
        labelled = np.unique(data.nodes[rows][~np.isnan(data.y[rows])], return_counts=True)[1]
        write_policy(
            site,
            features,
            [str(node) for node in part.own[part.boundary]],
            offset="".join(known),
            loss=LOSS_NAMES[type(problem.loss)],
            shape=getattr(problem.loss, "delta", getattr(problem.loss, "q", None)),
            classes=", ".join(map(str, range(getattr(problem.loss, "n_classes", 0)))),
            penalty=next(name for name, one in PENALTIES.items() if one == problem.penalty),
            least_rows=int(labelled.min(initial=LEAST_ROWS)),
            least_nodes=min(len(part.own), LEAST_NODES),
        )
    _write_edges(folder / "graph.csv", cut.nodes[cut.graph.edges], cut.graph.weights)


def _label(y: float) -> str:
    return "" if np.isnan(y) else repr(float(y))


def _write_edges(path: Path, edges: Any, weights: Any) -> None:
    _write_csv(path, ["a", "b", "weight"], ([i, j, repr(float(a))] for (i, j), a in zip(edges, weights, strict=True)))


def _write_csv(path: Path, header: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(lines)
