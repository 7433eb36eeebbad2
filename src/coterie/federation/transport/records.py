"""Requests and replies as Flower messages: one array each, and scalars.

This file is the whole list of what travels. Floats that may be infinite travel as they are; names and columns as text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flwr.app import Array as FlowerArray
from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from coterie.federation.messages import BadReplyError, Introduction, ProxReply, ProxRequest
from coterie.problem.arrays import Array

INTRODUCE, ANSWER, RELEASE, FINISH = "query.introduce", "query.answer", "query.release", "query.finish"
ARRAYS, FACTS = "arrays", "facts"  # the two records of a message


class SiteError(RuntimeError):
    """A site said that it cannot do what was asked."""


def introduce_request(nodes: Sequence[str]) -> RecordDict:
    """Which of these boundary nodes live with you?"""
    return RecordDict({FACTS: ConfigRecord({"nodes": list(nodes)})})


def introduction_reply(one: Introduction) -> RecordDict:
    """The name, hosted nodes and columns of a site, four scalars, and a digest."""
    facts = ConfigRecord(
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
    return RecordDict({FACTS: facts})


def read_introduction(content: RecordDict) -> Introduction:
    """Read what :func:`introduction_reply` wrote, if it makes sense."""
    facts = _facts(content)
    try:
        hosts = np.array([int(k) for k in facts["hosts"]], dtype=np.int64)
        columns = tuple(str(name) for name in facts["columns"])
        floor, scale, constant, size = (float(facts[key]) for key in ("floor", "scale", "constant", "size"))
    except (KeyError, TypeError, ValueError) as error:
        raise BadReplyError(f"an introduction that cannot be read ({error!r})") from None
    if not (np.isfinite([scale, constant, size]).all() and min(constant, size) >= 0 and not np.isnan(floor)):
        raise BadReplyError(f"an introduction with floor {floor}, scale {scale}, constant {constant} and size {size}")
    return Introduction(str(facts["site"]), hosts, columns, floor, scale, constant, size, str(facts.get("digest", "")))


def prox_request(request: ProxRequest, nodes: Sequence[str]) -> RecordDict:
    """v and τ side by side in one array, (b, n + 1); and which nodes its rows are about."""
    stacked = np.column_stack([request.v, request.tau])
    facts = ConfigRecord({"nodes": list(nodes), "level": float(request.level)})
    return RecordDict({ARRAYS: ArrayRecord({"question": FlowerArray(stacked)}), FACTS: facts})


def read_prox_request(content: RecordDict) -> tuple[ProxRequest, list[str]]:
    """Read what :func:`prox_request` wrote."""
    stacked = content.array_records[ARRAYS]["question"].numpy()
    facts = content.config_records[FACTS]
    return ProxRequest(stacked[:, :-1], stacked[:, -1], float(facts["level"])), [str(name) for name in facts["nodes"]]


def prox_reply(site: str, reply: ProxReply) -> RecordDict:
    """Boundary weights in one array, and four scalars."""
    facts = ConfigRecord(
        {"site": site, "value": reply.value, "bound": reply.bound, "left": reply.left, "reach": reply.reach}
    )
    return RecordDict({ARRAYS: ArrayRecord({"w": FlowerArray(np.ascontiguousarray(reply.w))}), FACTS: facts})


def read_prox_reply(content: RecordDict) -> ProxReply:
    """Read what :func:`prox_reply` wrote, if it makes sense."""
    facts = _facts(content)
    try:
        scalars = [float(facts[key]) for key in ("value", "bound", "left", "reach")]
    except (KeyError, TypeError, ValueError) as error:
        raise BadReplyError(f"a reply that cannot be read ({error!r})") from None
    return ProxReply(_weights(content), *scalars)


def weights_reply(site: str, nodes: Sequence[str], w: Array) -> RecordDict:
    """The weights of nodes: noisy ones of its boundary, or of all; of none, where a site keeps its model to itself."""
    facts = ConfigRecord({"site": site, "nodes": list(nodes)})
    return RecordDict({ARRAYS: ArrayRecord({"w": FlowerArray(np.ascontiguousarray(w))}), FACTS: facts})


def read_weights(content: RecordDict) -> tuple[list[str], Array]:
    """Read what :func:`weights_reply` wrote, if it makes sense."""
    nodes, w = [str(name) for name in _facts(content)["nodes"]], _weights(content)
    if w.ndim != 2 or len(w) != len(nodes) or not np.isfinite(w).all():
        raise BadReplyError(f"{len(nodes)} nodes with weights of shape {w.shape}, or not finite")
    return nodes, w


def error_reply(site: str, message: str) -> RecordDict:
    """One line that says why a site cannot do what was asked."""
    return RecordDict({FACTS: ConfigRecord({"site": site, "error": message})})


def _facts(content: RecordDict) -> ConfigRecord:
    facts = content.config_records.get(FACTS)
    if facts is None or "site" not in facts:
        raise BadReplyError("a message without the record of facts")
    if "error" in facts:
        raise SiteError(str(facts["error"]))
    return facts


def _weights(content: RecordDict) -> Array:
    try:
        w = np.asarray(content.array_records[ARRAYS]["w"].numpy())
    except Exception as error:  # whatever NumPy makes of bytes that are no array
        raise BadReplyError(f"weights that cannot be read ({error!r})") from None
    if w.dtype.kind != "f":
        raise BadReplyError(f"weights of type {w.dtype}")
    return w.astype(np.float64)
