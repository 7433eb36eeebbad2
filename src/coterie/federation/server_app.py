"""The ServerApp: it knows the cut edges and asks the sites; it never sees a row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from coterie.estimators.base import NetworkedModel
from coterie.federation import checkpoint
from coterie.federation.digest import digest_of
from coterie.federation.dp_loop import federate_privately
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.dp_moments import NOISY
from coterie.federation.loop import FederationError, Outcome, Rules, State, federate
from coterie.federation.messages import Introduction
from coterie.federation.model import KnownNetwork, federated_model, federation_note
from coterie.federation.partition import Cut, cut_between
from coterie.federation.roster import read_roster
from coterie.federation.site_files import SETTINGS, Settings, read_edges, write_weights
from coterie.federation.transport.grid import FlowerSites

PROGRESS, CHECKPOINT, WEIGHTS = "progress.jsonl", "checkpoint.npz", "weights.csv"

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Meet the sites, ask until the gap is small, write the model."""
    config = context.run_config
    out = Path(str(config["out"]))
    out.mkdir(parents=True, exist_ok=True)
    try:
        run(grid, config, out)
    except Exception as error:
        _report(out, {"error": str(error) or type(error).__name__})
        raise


def run(grid: Grid, config: Mapping[str, Any], out: Path) -> Outcome:
    """Run a federation; progress goes to a file, one line per round."""
    settings, privacy = Settings.of(config), Privacy.of(config)
    promise = settings.row_privacy.record if settings.row_privacy is not None else None
    promise = promise if privacy is None else _promise(privacy, config)
    edges, weights = read_edges(Path(str(config["graph"])))
    nodes = sorted({node for pair in edges for node in pair})
    if not nodes and not bool(config["share-weights"]):
        raise ValueError("without an edge between sites and with share-weights = false the server would learn nothing")
    said = {key: config[key] for key in SETTINGS if key in config}
    sites = FlowerSites(grid, nodes, float(config["timeout"]), said, read_roster())
    introductions = sites.meet(int(config["sites"]), float(config["wait"]))
    columns = agreed_columns(introductions)
    cut = _cut(nodes, edges, weights, introductions)
    names = [nodes[k] for k in cut.nodes]
    sites.rows = {k: names[cut.of(k)] for k in range(len(introductions))}
    n = settings.loss.n_weights(len(columns) - 1)
    state = State.first(cut, settings.penalty, settings.lam, n, introductions)
    digests = _digests(settings, columns, names, cut, introductions)

    def report(state: State) -> None:
        _report(out, {**asdict(state.history[-1]), "sites": len(state.names)})

    def keep(state: State) -> None:
        try:
            checkpoint.save(out / CHECKPOINT, state, digests)
        except OSError as error:  # a full disk: the last checkpoint is still there
            _report(out, {"warning": f"no checkpoint after round {len(state.history)} ({error}); the run goes on"})
        report(state)

    if privacy is not None:
        outcome = federate_privately(sites, state, privacy, report)
    else:
        if bool(config["resume"]) and (out / CHECKPOINT).exists():
            try:
                checkpoint.restore(out / CHECKPOINT, state, digests)
            except checkpoint.CheckpointError as error:
                _report(out, {"warning": f"{error}; the run starts anew"})
        outcome = federate(sites, state, _rules(config), keep)
    for complaint in sites.complaints.values():
        _report(out, {"warning": complaint})
    if settings.row_privacy is not None:
        outcome = replace(outcome, condition="; ".join(filter(None, [NOISY, outcome.condition])))
    known = KnownNetwork.of(cut, names, outcome, sites.own, state.coordinator.u)
    model = federated_model(known, settings, columns[:-1], outcome, float(config["tol"]))
    note = federation_note(known, settings, sites.names, outcome, promise)
    _write(out, known, model, settings.weight_names(columns[:-1]), note)
    _report(out, {"done": outcome.status.name, "gap": outcome.gap, "held": outcome.held, "privacy": promise})
    return outcome


def agreed_columns(introductions: Sequence[Introduction]) -> tuple[str, ...]:
    """The columns that all sites have; a site that has others is named."""
    schemas = [one.columns for one in introductions]
    usual = max(schemas, key=schemas.count)
    for one in introductions:
        if one.columns != usual:
            missing = [name for name in usual if name not in one.columns]
            extra = [name for name in one.columns if name not in usual]
            how = f"it lacks {missing}" if missing else f"it also has {extra}" if extra else "in another order"
            raise FederationError(f"site {one.name!r} has the columns {list(one.columns)}, others {list(usual)}: {how}")
    return usual


def _cut(
    nodes: Sequence[str], edges: Sequence[tuple[str, str]], weights: Any, introductions: Sequence[Introduction]
) -> Cut:
    """Number the boundary nodes site by site."""
    host = np.full(len(nodes), -1)
    for k, one in enumerate(introductions):
        taken = [int(j) for j in one.hosts if host[j] >= 0]
        if taken:
            other = introductions[host[taken[0]]].name
            raise FederationError(f"node {nodes[taken[0]]!r} is at site {other!r} and at site {one.name!r}")
        host[one.hosts] = k
    nowhere = [node for node, k in zip(nodes, host, strict=True) if k < 0]
    if nowhere:
        raise FederationError(f"the graph names node {nowhere[0]!r}, which no site hosts ({len(nowhere)} such nodes)")
    number = {node: k for k, node in enumerate(nodes)}
    pairs = np.array([[number[a], number[b]] for a, b in edges], dtype=np.int64).reshape(-1, 2)
    inside = np.flatnonzero(host[pairs[:, 0]] == host[pairs[:, 1]]) if len(pairs) else np.empty(0, np.int64)
    if len(inside):
        a, b = edges[inside[0]]
        name = introductions[host[number[a]]].name
        raise FederationError(f"the edge {a!r} – {b!r} lies inside site {name!r}; it belongs to that site's edges file")
    order = np.argsort(host, kind="stable")
    return cut_between(order, host[order], pairs, weights)


def _digests(
    settings: Settings, columns: Sequence[str], boundary: Sequence[str], cut: Cut, introductions: Sequence[Introduction]
) -> dict[str, str]:
    """What a checkpoint must agree with, by the name that it has for the user."""
    graph = digest_of([*boundary], cut.part, cut.graph.edges, cut.graph.weights)
    of_sites = {f"the data of site {one.name!r}": one.digest for one in introductions}
    return {"the settings": digest_of((settings, columns)).hex(), "the graph": graph.hex(), **of_sites}


def _promise(privacy: Privacy, config: Mapping[str, Any]) -> dict[str, Any]:
    """How private the run is, accounted for before any site is asked."""
    if float(config.get("row-privacy-epsilon", 0.0)) != 0:
        raise ValueError("privacy-noise and row-privacy-epsilon are two ways to privacy; choose one of them")
    if bool(config["share-weights"]):
        raise ValueError("with privacy-noise, share-weights must be false: the weights of all nodes have no noise")
    return privacy.record


def _rules(config: Mapping[str, Any]) -> Rules:
    choice = str(config["on-bad-site"])
    if choice not in ("stop", "set-aside"):
        raise ValueError(f'on-bad-site must be "stop" or "set-aside", got {choice!r}')
    return Rules(float(config["tol"]), int(config["max-rounds"]), int(config["hold-after"]), choice == "set-aside")


def _write(
    out: Path, known: KnownNetwork, model: NetworkedModel, names: Sequence[str], note: Mapping[str, Any]
) -> None:
    """Write the model, and the weights of its nodes, in the order of their names, as a table."""
    model.save(out, {"federation": note})
    order = sorted(range(len(known.nodes)), key=known.nodes.__getitem__)
    write_weights(out / WEIGHTS, [known.nodes[k] for k in order], names, known.w[order])


def _report(out: Path, line: Mapping[str, Any]) -> None:
    """Append a line to the file of progress; a disk that is full ends no run."""
    with suppress(OSError), (out / PROGRESS).open("a", encoding="utf-8") as file:
        file.write(json.dumps({k: _number(v) if isinstance(v, float) else v for k, v in line.items()}) + "\n")


def _number(x: float) -> float | None:
    """A number as JSON knows it; None, where there is none."""
    return float(x) if np.isfinite(x) else None
