"""A fitted model in sentences, and as an object for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.estimators.column_strength import strengths_of
from coterie.estimators.export import column_names
from coterie.report.criterion import NAMES
from coterie.report.notes import as_comparison
from coterie.report.text import (
    called,
    clusters_asked_of,
    counted,
    explanation,
    federation_of,
    held_out_in_words,
    information_in_words,
    kind_of,
    labels_known,
    labels_of,
    measure_of,
    network_of,
    own_of,
    own_parameters,
    penalty_of,
    plural,
    refit_in_words,
    short,
    smallest_error,
    some,
    verdict,
    weighting_of,
)
from coterie.solver import Status

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel
    from coterie.estimators.by_ranks import Facts

MOST_NAMED = 10
MOST_NODES = 50


def as_object(model: NetworkedModel, facts: Facts | None = None) -> dict[str, Any]:
    """What a model is and how good, as JSON can hold it. `facts`: of one that ranks have fitted, of all its nodes."""
    solution, graph = model.solution_, model.graph_
    choice = getattr(model, "lam_choice_", None)
    return {
        "estimator": type(model).__name__,
        "lam": model.lam_,
        "time_strength": None if model.space_time_ is None else model.time_strength_,
        "lam_chosen_over": None if choice is None else choice.over,
        "lam_chosen_error": None if choice is None else float(choice.mean[choice.best]),
        "lam_chosen_standard_error": None if choice is None else float(choice.standard_error[choice.best]),
        "lam_chosen_by": _chosen_by(model),
        "held_out": None if (held_out := getattr(model, "held_out_", None)) is None else held_out.split()[0],
        **_information(model),
        **own_parameters(model),
        **({} if model.offset_ is None else {model.offset_.kind: model.offset_.column}),
        "weight_by": model.weight_by,
        "standardize": model.standardize,
        "penalty": model.penalty if isinstance(model.penalty, str) else repr(model.penalty),
        "column_strength": strengths_of(model),
        "strengths_refined": bool(getattr(model, "refine_strength", False)),
        "shared": model.shared,
        "refit": model.refit,
        "features": [str(name) for name in getattr(model, "feature_names_in_", [])] or model.n_features_in_,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        **(_about_nodes(model) if facts is None else asdict(facts)),
        "status": solution.status.name,
        "converged": solution.status is Status.OPTIMAL,
        "gap": solution.gap,
        "tol": model.tol,
        "objective": solution.objective,
        "dual_bound": solution.dual_bound,
        "unconditional": solution.unconditional,
        "condition": solution.condition,
        "iterations": solution.n_iter,
        "seconds": solution.seconds,
    }


def _about_nodes(model: NetworkedModel) -> dict[str, Any]:
    """How many nodes have labels, how many share models, and which say nothing."""
    known = labels_known(model)
    return {
        "labelled_nodes": int((model.n_labelled_ > 0).sum()) if known else None,
        "labelled_rows": int(model.n_labelled_.sum()) if known else None,
        "clusters": int(model.clusters_.max()) + 1,
        "undetermined_nodes": [plain_id(name) for name in model.undetermined_nodes_.tolist()],
    }


def in_words(model: NetworkedModel, notes: dict[str, Any], facts: Facts | None = None) -> list[str]:
    """The same in sentences: first how well it predicts, then how certain the optimum is, then what it is."""
    about = _about_nodes(model) if facts is None else asdict(facts)
    choice = getattr(model, "lam_choice_", None)
    kind = f"{kind_of(model)}{own_of(model)}"
    how = clusters_asked_of(model)
    if choice is not None:
        how = f", chosen by cross-validation over {choice.over} ({smallest_error(choice)})"
    if (criterion := getattr(model, "criterion_choice_", None)) is not None:
        how = f", chosen by {NAMES[criterion.criterion]}"
    return [
        *held_out_in_words(model),
        *_beside(model, notes),
        verdict(model.solution_),
        *explanation(model.solution_, model.tol),
        *refit_in_words(model),
        f"Model: {kind}, λ = {short(model.lam_, 4)}{_in_time(model)}{how}; {penalty_of(model)}; {weighting_of(model)}.",
        *information_in_words(model),
        *_features(model),
        f"Network: {network_of(model.graph_)}; {labels_of(model) if facts is None else facts.labels}.",
        *federation_of(model),
        f"Clusters of nodes that share one model: {about['clusters']:,}.",
        *_undetermined(about["undetermined_nodes"]),
    ]


def _chosen_by(model: NetworkedModel) -> str:
    """What chose λ."""
    if hasattr(model, "criterion_choice_"):
        return str(model.criterion_choice_.criterion)
    by_hand = "n_clusters" if clusters_asked_of(model) else "given"
    return "cv" if hasattr(model, "lam_choice_") else by_hand


def _information(model: NetworkedModel) -> dict[str, float | None]:
    """Effective parameters, AICc and BIC; None where they are not known."""
    found = model._known_information()
    values = [None] * 3 if found is None else [found.effective_parameters, found.aicc, found.bic]
    known = [None if value is None or not np.isfinite(value) else float(value) for value in values]
    return dict(zip(("effective_parameters", "aicc", "bic"), known, strict=True))


def _beside(model: NetworkedModel, notes: dict[str, Any]) -> list[str]:
    """The baselines, the smallest error first, and what follows from them."""
    if (note := notes.get("baselines")) is None:
        return []
    found = as_comparison(note, measure_of(model))
    means = sorted(zip(found.mean.tolist(), found.methods, strict=True))
    listed = ", ".join(f"{method} {short(mean, 3)}" for mean, method in means)
    return [f"The same for other methods, the smallest first: {listed}.", found.verdict]


def _in_time(model: NetworkedModel) -> str:
    return "" if model.space_time_ is None else f", {short(model.time_strength_, 4)} times that in time"


def plain_id(name: Any) -> Any:
    """The id of a node as JSON can hold it: a date as text."""
    if isinstance(name, tuple):
        return list(map(plain_id, name))
    return name if name is None or isinstance(name, str | int | float) else str(name)


def _features(model: NetworkedModel) -> list[str]:
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    return [f"Features: {some(names, MOST_NAMED)}."] if names else []


def _undetermined(nodes: list[Any]) -> list[str]:
    names = [called(tuple(name) if isinstance(name, list) else name) for name in nodes[:MOST_NAMED]]
    listed = some([*names, *map(str, nodes[MOST_NAMED:])], MOST_NAMED)
    return [f"No label reaches {plural(len(nodes), 'node')}, whose models say nothing: {listed}."] if names else []


Table = tuple[list[str], list[list[str]], str]
"""A header, rows, and a sentence about what was left out of them; empty where nothing was."""


def cluster_table(model: NetworkedModel) -> Table:
    """The largest clusters: how many nodes, how many of them labelled, and the model they share."""
    from coterie.report.coefficients import ClusterTable

    table = ClusterTable.of(model)
    columns = table.columns[:MOST_NAMED]
    rows = zip(table.clusters, table.sizes, table.n_labelled, table.w[:, : len(columns)], strict=True)
    lines = [[str(k), f"{size:,}", counted(int(m)), *(short(v, 4) for v in np.asarray(w))] for k, size, m, w in rows]
    more = _more(int(model.clusters_.max()) + 1 - MOST_NAMED, "cluster"), _more_columns(model, len(columns))
    return ["cluster", "nodes", "labelled", *columns], lines[:MOST_NAMED], _left_out(*more)


def node_table(model: NetworkedModel) -> Table:
    """The first nodes: cluster, labelled rows, errors in units of the target, and coefficients."""
    first = all_nodes(model)[:MOST_NODES]
    names = list(first[0]["coefficients"])[:MOST_NAMED]
    facts = ("cluster", "labelled_rows", "held_out_error", "training_error")
    header = ["node", *(fact.replace("_", " ") for fact in facts), *names]
    lines = []
    for node in first:
        values = [node[fact] for fact in facts] + [node["coefficients"][name] for name in names]
        name = node["node"]
        lines.append([called(tuple(name) if isinstance(name, list) else name), *map(_cell, values)])
    more = _more(model.graph_.n_nodes - MOST_NODES, "node"), _more_columns(model, len(names))
    return header, lines, _left_out(*more)


def all_clusters(model: NetworkedModel) -> list[dict[str, Any]]:
    """Every cluster: its nodes, how many are labelled, and the model they share."""
    of, names, weights = model.clusters_, model.nodes_.tolist(), model.weights_
    members = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of))[:-1])
    labelled = labels_known(model)
    return [
        {
            "cluster": k,
            "nodes": [plain_id(names[i]) for i in nodes],
            "labelled_nodes": int((model.n_labelled_[nodes] > 0).sum()) if labelled else None,
            "coefficients": dict(zip(column_names(model), weights[nodes[0]].tolist(), strict=True)),
        }
        for k, nodes in enumerate(members)
    ]


def all_nodes(model: NetworkedModel) -> list[dict[str, Any]]:
    """Every node: its cluster, labelled rows, errors in units of the target (None: not known), and its model."""
    held_out, columns = getattr(model, "held_out_", None), column_names(model)
    unseen = np.full(model.graph_.n_nodes, np.nan) if held_out is None else held_out.node_errors
    errors = unseen, measure_of(model).of_mean(model.node_errors_)
    found = zip(model.nodes_.tolist(), model.clusters_, model.n_labelled_, *errors, model.weights_, strict=True)
    return [
        {
            "node": plain_id(name),
            "cluster": int(cluster),
            "labelled_rows": int(m) if m >= 0 else None,
            "held_out_error": None if np.isnan(unseen) else float(unseen),
            "training_error": None if np.isnan(trained) else float(trained),
            "coefficients": dict(zip(columns, w.tolist(), strict=True)),
        }
        for name, cluster, m, unseen, trained, w in found
    ]


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else short(value, 4)


def _more(count: int, thing: str) -> str:
    return f"{count:,} more {thing}{'' if count == 1 else 's'}" if count > 0 else ""


def _more_columns(model: NetworkedModel, shown: int) -> str:
    return _more(len(column_names(model)) - shown, "coefficient")


def _left_out(*more: str) -> str:
    return f"… {' and '.join(filter(None, more))}." if any(more) else ""
