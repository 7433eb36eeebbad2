"""Requests and replies as Flower messages: one record each, with scalars, names, and arrays as bytes.

This file is the whole list of what travels. Flower moves every record, and every array in one, by calls of its own, so
a message is one record. Floats that may be infinite travel as they are; names and columns as text; arrays as 64-bit
numbers, row by row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict
from flwr.common.serde import recorddict_to_proto

from coterie.federation.messages import HUGE, BadReplyError, Introduction, ProxReply, ProxRequest
from coterie.federation.refusals import Code
from coterie.problem.arrays import Array

INTRODUCE, ANSWER, RELEASE, FINISH = "query.introduce", "query.answer", "query.release", "query.finish"
FACTS = "facts"  # the record of a message


class SiteError(RuntimeError):
    """A site said that it cannot do what was asked."""


def introduce_request(nodes: Sequence[str], settings: Mapping[str, Any]) -> RecordDict:
    """Which of these boundary nodes live with you?"""
    return _record({"nodes": list(nodes), "settings": json.dumps(dict(settings))})


def read_introduce_request(content: RecordDict) -> list[str]:
    """Read the nodes that :func:`introduce_request` asks for."""
    return [str(node) for node in content.config_records[FACTS]["nodes"]]


def read_settings(content: RecordDict) -> dict[str, Any]:
    """Read the settings of the run, which every request has with it."""
    settings = json.loads(str(content.config_records[FACTS]["settings"]))
    if not isinstance(settings, dict):
        raise ValueError("settings that are no table")
    return settings


def introduction_reply(one: Introduction) -> RecordDict:
    """The name, hosted nodes and columns of a site, four scalars, and a digest."""
    return _record(
        {
            "site": one.name,
            "hosts": [int(k) for k in one.hosts],
            "columns": list(one.columns),
            "floor": one.floor,
            "scale": one.scale,
            "constant": one.constant,
            "size": one.size,
            "digest": one.digest,
        }
    )


def read_introduction(content: RecordDict, n_nodes: int) -> Introduction:
    """Read what :func:`introduction_reply` wrote, if it makes sense of a request about so many nodes."""
    facts = _facts(content)
    try:
        hosts = np.array([int(k) for k in facts["hosts"]], dtype=np.int64)
        columns = tuple(str(name) for name in facts["columns"])
        floor, scale, constant, size = (float(facts[key]) for key in ("floor", "scale", "constant", "size"))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadReplyError(f"an introduction that cannot be read ({error!r})") from None
    if not (floor < HUGE and abs(scale) < HUGE and 0 <= constant < HUGE and 0 <= size < HUGE):
        raise BadReplyError(f"an introduction with floor {floor}, scale {scale}, constant {constant} and size {size}")
    if not columns or len(np.unique(hosts)) < len(hosts) or ((hosts < 0) | (hosts >= n_nodes)).any():
        raise BadReplyError("an introduction without columns, or with nodes that it was not asked about")
    return Introduction(str(facts["site"]), hosts, columns, floor, scale, constant, size, str(facts.get("digest", "")))


def prox_request(request: ProxRequest, nodes: Sequence[str], settings: Mapping[str, Any]) -> RecordDict:
    """v and τ side by side in one array, (b, n + 1); and which nodes its rows are about."""
    stacked = np.column_stack([request.v, request.tau])
    facts = {"nodes": list(nodes), "level": float(request.level), "settings": json.dumps(dict(settings))}
    return _record({**facts, **_packed("question", stacked)})


def read_prox_request(content: RecordDict) -> tuple[ProxRequest, list[str]]:
    """Read what :func:`prox_request` wrote."""
    facts = content.config_records[FACTS]
    stacked, nodes = _unpacked(facts, "question"), [str(name) for name in facts["nodes"]]
    if len(stacked) != len(nodes) or not np.isfinite(stacked).all() or not (stacked[:, -1] > 0).all():
        raise ValueError(f"{len(nodes)} nodes with a question of shape {stacked.shape}, or numbers that cannot be")
    return ProxRequest(stacked[:, :-1], stacked[:, -1], float(facts["level"])), nodes


def prox_reply(site: str, reply: ProxReply) -> RecordDict:
    """Boundary weights in one array, and four scalars."""
    scalars = {"value": reply.value, "bound": reply.bound, "left": reply.left, "reach": reply.reach}
    return _record({"site": site, **scalars, **_packed("w", reply.w)})


def read_prox_reply(content: RecordDict) -> ProxReply:
    """Read what :func:`prox_reply` wrote, if it makes sense."""
    facts = _facts(content)
    try:
        scalars = [float(facts[key]) for key in ("value", "bound", "left", "reach")]
    except (KeyError, TypeError, ValueError) as error:
        raise BadReplyError(f"a reply that cannot be read ({error!r})") from None
    return ProxReply(_weights(facts), *scalars)


def weights_reply(site: str, nodes: Sequence[str], w: Array) -> RecordDict:
    """The weights of nodes: noisy ones of its boundary, or of all; of none, where a site keeps its model to itself."""
    return _record({"site": site, "nodes": list(nodes), **_packed("w", w)})


def read_weights(content: RecordDict) -> tuple[list[str], Array]:
    """Read what :func:`weights_reply` wrote, if it makes sense."""
    facts = _facts(content)
    named = facts.get("nodes", [])
    nodes, w = [str(name) for name in named] if isinstance(named, list) else [], _weights(facts)
    if w.ndim != 2 or len(w) != len(nodes) or len(set(nodes)) < len(nodes) or not np.isfinite(w).all():
        raise BadReplyError(f"{len(nodes)} nodes with weights of shape {w.shape}, not finite, or a node twice")
    return nodes, w


def error_reply(site: str, code: Code) -> RecordDict:
    """Why a site does not do what was asked: a code, and nothing else."""
    return _record({"site": site, "error": code.value})


def encoded(content: RecordDict) -> bytes:
    """What travels of a message, as bytes: the same for the same content."""
    return recorddict_to_proto(content).SerializeToString(deterministic=True)


def _record(facts: dict[str, Any]) -> RecordDict:
    return RecordDict({FACTS: ConfigRecord(facts)})


def _packed(name: str, array: Array) -> dict[str, Any]:
    return {name: np.ascontiguousarray(array, dtype="<f8").tobytes(), "width": int(array.shape[1])}


def _unpacked(facts: ConfigRecord, name: str) -> Array:
    return np.frombuffer(facts[name], dtype="<f8").reshape(-1, max(int(facts["width"]), 1)).astype(np.float64)


def _facts(content: RecordDict) -> ConfigRecord:
    facts = content.config_records.get(FACTS)
    if facts is None or "site" not in facts:
        raise BadReplyError("a message without the record of facts")
    if "error" in facts:
        raise SiteError(Code.says(facts["error"]))
    return facts


def _weights(facts: ConfigRecord) -> Array:
    try:
        return _unpacked(facts, "w")
    except Exception as error:  # whatever NumPy makes of bytes that are no array
        raise BadReplyError(f"weights that cannot be read ({error!r})") from None
