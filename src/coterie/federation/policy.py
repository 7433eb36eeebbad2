"""What a site agrees to: `site.toml` in its folder, read before anything is answered.

Whoever answers for the site's data writes it. What arrives and differs is refused with a code (`refusals.py`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.federation.classes import class_names
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.dp_moments import RowPrivacy
from coterie.federation.refusals import Code, RefusedError
from coterie.federation.site_folder import AUDIT, POLICY
from coterie.problem import LocalDatasets

QUESTIONS = ("introduce", "answer", "release", "finish")  # of a server
KINDS = (*QUESTIONS, "gossip")  # of neighbours, without a server
LEAST_ROWS, LEAST_NODES, MOST = 5, 2, 1000  # what a new policy says

TEXT = """\
# What this site agrees to. Coterie reads it before every reply; what arrives and differs is refused.

[columns]                   # of data.csv or data.parquet; all others are left alone
node = {node}
label = {label}
features = {features}
{known}
[problem]
loss = {loss}            # squared, lasso, logistic, poisson, huber or quantile
{shape}penalty = {penalty}              # l1, l2 or squared
min-rows-per-node = {least_rows}       # a node with labels has at least so many labelled rows
min-nodes-per-site = {least_nodes}      # the site has at least so many nodes

[questions]
kinds = {kinds}
most = {most}                 # different questions that are answered, over all runs; {audit} counts them
share-weights = {share}       # whether the weights of all nodes leave at the end
round-to = 0.0              # boundary weights are rounded to multiples of this; 0.0: not at all
# The nodes that may be asked about: those with a neighbour at another site.
nodes = {nodes}

[server]
certificate = ""            # SHA-256 of the ca.crt of the only server that is answered; empty: of any
runs = []                   # the only runs that are answered, by their ids; empty: any

# With this section nothing leaves but noisy weights with exactly this differential privacy:
# [privacy]
# noise = 1.6
# clip = 0.3
# rounds = 10
# delta = 1e-5

# With this section nothing leaves that is not computed from noisy moments with exactly this privacy of single rows:
# [row-privacy]
# epsilon = 1.0
# delta = 1e-5
# x-clip = 2.0
# y-clip = 2.0
"""

SHAPE: dict[str, dict[str, type]] = {
    "columns": {"node": str, "label": str, "features": list},
    "problem": {"loss": str, "penalty": str, "min-rows-per-node": int, "min-nodes-per-site": int},
    "questions": {"kinds": list, "most": int, "share-weights": bool, "round-to": float, "nodes": list},
    "server": {"certificate": str, "runs": list},
}
OPTIONAL: dict[str, dict[str, type]] = {  # keys that may be left out
    "columns": {"offset": str, "exposure": str},
    "problem": {"delta": float, "quantile": float, "classes": str},
}
DELTA, MEDIAN = 1.0, 0.5  # of the losses huber and quantile, where nothing else is said
SHAPED_BY = {"huber": ("delta", DELTA), "quantile": ("quantile", MEDIAN)}  # what such a loss depends on
KNOWN = '# exposure = "days"        # of counts: how long or how many they were counted in; or offset, its logarithm'


@dataclass(frozen=True)
class Policy:
    """A site's policy; `privacy` and `row_privacy` are None where none is required."""

    node: str
    label: str
    features: tuple[str, ...]
    offset: str
    exposure: str
    loss: str
    delta: float
    quantile: float
    classes: str
    penalty: str
    least_rows: int
    least_nodes: int
    kinds: tuple[str, ...]
    most: int
    share_weights: bool
    round_to: float
    nodes: frozenset[str]
    certificate: str
    runs: tuple[int, ...]
    privacy: Privacy | None
    row_privacy: RowPrivacy | None

    @classmethod
    def read(cls, folder: Path) -> Policy:
        """Read and check the file; what is wrong is said with its name, for the site's own eyes."""
        try:
            content = tomllib.loads((folder / POLICY).read_text(encoding="utf-8"))
            return cls._of(content)
        except FileNotFoundError:
            how = f"`coterie federate init --site {folder}` writes one"
            raise RefusedError(Code.NO_POLICY, f"there is no {POLICY} in {folder}; {how}") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RefusedError(Code.NO_POLICY, f"{folder / POLICY}: {error}") from None

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> Policy:
        privacy, of_rows = content.get("privacy"), content.get("row-privacy")
        _check_shape({name: part for name, part in content.items() if name not in ("privacy", "row-privacy")})
        columns, problem, questions, server = (content[name] for name in SHAPE)
        if not 0 <= questions["round-to"] < float("inf"):
            raise ValueError(f"round-to must be a number of at least 0, not {questions['round-to']}")
        unknown = set(questions["kinds"]) - set(KINDS)
        if unknown:
            raise ValueError(f"kinds: there is no question {sorted(unknown)}; choose of {', '.join(KINDS)}")
        return cls(
            columns["node"],
            columns["label"],
            tuple(map(str, columns["features"])),
            columns.get("offset", ""),
            columns.get("exposure", ""),
            problem["loss"],
            problem.get("delta", DELTA),
            problem.get("quantile", MEDIAN),
            problem.get("classes", ""),
            problem["penalty"],
            problem["min-rows-per-node"],
            problem["min-nodes-per-site"],
            tuple(questions["kinds"]),
            questions["most"],
            questions["share-weights"],
            questions["round-to"],
            frozenset(map(str, questions["nodes"])),
            server["certificate"].lower().replace(":", ""),
            tuple(map(int, server["runs"])),
            None if privacy is None else Privacy(**privacy),
            None if of_rows is None else RowPrivacy(**{key.replace("-", "_"): x for key, x in of_rows.items()}),
        )

    def check_server(self, certificate: str) -> None:
        """Refuse a server that is not trusted through the certificate that the policy names."""
        if self.certificate and self.certificate != certificate:
            raise RefusedError(Code.SERVER, "the root certificate is not the one that the policy names")

    def check_question(self, run_id: int, kind: str, settings: Mapping[str, Any]) -> None:
        """Refuse a run, a kind of question, or settings that the policy does not name."""
        if self.runs and run_id not in self.runs:
            raise RefusedError(Code.RUN, f"run {run_id} is not among those of the policy")
        if kind not in self.kinds:
            raise RefusedError(Code.QUESTION, f"the policy does not answer {kind!r}")
        for name, ours, code in (
            ("node", self.node, Code.COLUMNS),
            ("label", self.label, Code.COLUMNS),
            ("offset", self.offset, Code.COLUMNS),
            ("exposure", self.exposure, Code.COLUMNS),
            ("loss", self.loss, Code.LOSS),
            ("penalty", self.penalty, Code.PENALTY),
        ):
            if settings.get(name, "") != ours:
                raise RefusedError(code, f"the run has the {name} {settings.get(name, '')!r}, the policy {ours!r}")
        if self.loss in SHAPED_BY:
            name, usual = SHAPED_BY[self.loss]
            if settings.get(name, usual) != getattr(self, name):
                raise RefusedError(Code.LOSS, f"the run has another {name} than the policy")
        if class_names(settings) != class_names(vars(self)):
            raise RefusedError(Code.LOSS, "the run has other classes than the policy, or in another order")
        if settings.get("share-weights") and not self.share_weights:
            raise RefusedError(Code.SHARE)

    def check_privacy(self, privacy: Privacy | None, of_rows: RowPrivacy | None = None) -> None:
        """Refuse other privacy than is required, and a run whose questions would be refused."""
        for ours, theirs in ((self.privacy, privacy), (self.row_privacy, of_rows)):
            if ours is not None and theirs != ours:
                raise RefusedError(Code.PRIVACY, f"the run has {theirs}, the policy {ours}")
        kind = "answer" if privacy is None else "release"
        if kind not in self.kinds:
            raise RefusedError(Code.QUESTION, f"the run asks {kind!r}, which the policy does not answer")

    def check_nodes(self, nodes: Iterable[str]) -> None:
        """Refuse questions about nodes that the others have no business with."""
        if not self.nodes.issuperset(nodes):
            raise RefusedError(Code.NODES, "a node that is asked about is not among those of the policy")

    def check_rows(self, rows: LocalDatasets) -> None:
        """Refuse data with few nodes, or in which a node has labels, but few."""
        if rows.n_nodes < self.least_nodes:
            raise RefusedError(Code.FEW_NODES, f"{rows.n_nodes} nodes, and min-nodes-per-site is {self.least_nodes}")
        labelled = np.bincount(rows.nodes[~np.isnan(rows.y)], minlength=rows.n_nodes)
        fewest = int(labelled[labelled > 0].min(initial=self.least_rows))
        if fewest < self.least_rows:
            raise RefusedError(
                Code.FEW_ROWS, f"a node has {fewest} labelled rows, and min-rows-per-node is {self.least_rows}"
            )


def write_policy(
    folder: Path,
    features: Sequence[str],
    nodes: Sequence[str],
    *,
    node: str = "node",
    label: str = "y",
    offset: str = "",
    loss: str = "squared",
    shape: float | None = None,
    classes: str = "",
    penalty: str = "l1",
    least_rows: int = LEAST_ROWS,
    least_nodes: int = LEAST_NODES,
    share_weights: bool = True,
) -> None:
    """Write a policy for the owner of the data to read and to change; `shape` is delta or quantile of its loss."""
    text = TEXT.format(
        node=json.dumps(node),
        label=json.dumps(label),
        features=json.dumps(list(features)),
        known=f"offset = {json.dumps(offset)}\n" if offset else f"{KNOWN}\n",
        loss=json.dumps(loss),
        shape=_shape(loss, shape, classes),
        penalty=json.dumps(penalty),
        least_rows=least_rows,
        least_nodes=least_nodes,
        kinds=json.dumps(["introduce", "answer", "finish"]),
        most=MOST,
        audit=AUDIT,
        share=json.dumps(share_weights),
        nodes=json.dumps(list(nodes)),
    )
    (folder / POLICY).write_text(text, encoding="utf-8")


def _shape(loss: str, shape: float | None, classes: str) -> str:
    """What else the loss depends on, as lines."""
    if classes:
        return f"classes = {json.dumps(classes)}\n"
    return "" if shape is None else f"{SHAPED_BY[loss][0]} = {float(shape)!r}\n"


def _check_shape(content: Mapping[str, Any]) -> None:
    """Every section and key is there, of its type, and no other: a mistyped key must not pass for consent."""
    if content.keys() != SHAPE.keys():
        may = "perhaps privacy or row-privacy"
        raise ValueError(f"the sections are {', '.join(SHAPE)} and {may}, not {', '.join(content)}")
    for section, keys in SHAPE.items():
        if not isinstance(content[section], dict):
            raise ValueError(f"[{section}] must be a section")
        optional = OPTIONAL.get(section, {})
        if content[section].keys() - optional.keys() != keys.keys():
            raise ValueError(f"[{section}] has the keys {', '.join(keys)}, not {', '.join(content[section])}")
        for key, value in content[section].items():
            kind = {**keys, **optional}[key]
            if type(value) is not kind:
                raise ValueError(f"[{section}] {key} must be of type {kind.__name__}")
