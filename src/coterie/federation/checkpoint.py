"""The state of a server, in one file: a run can go on from its last round.

A checkpoint is a place to start from, never evidence. What goes on is the point z, what was learnt of the sites, and
the history; objective and bound are earned anew, from replies of this run. So a file that is damaged, changed or about
another problem can cost rounds, and cannot make a certificate false. It carries digests of all that the run depends
on: where one differs, the run starts anew and says which.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from coterie.federation.loop import Round, State
from coterie.io.files import staged_file
from coterie.problem.arrays import Array

OF_SITES = ("w", "g", "v", "tau")  # of the certificate: the latest reply at every boundary node
UNREADABLE = (OSError, EOFError, KeyError, TypeError, ValueError, IndexError, zipfile.BadZipFile, zlib.error)


class CheckpointError(ValueError):
    """A checkpoint that this run cannot go on from; the message says why."""


def save(path: Path, state: State, digests: Mapping[str, str]) -> None:
    """Write the state; the file is whole at any time."""
    coordinator, certificate = state.coordinator, state.certificate
    facts = {
        "digests": dict(digests),
        "rounds": coordinator.rounds,
        "omega": float(coordinator.steps.omega),
        "set_aside": {str(k): what for k, what in state.set_aside.items()},
        "history": [[float(x) for x in astuple(one)] for one in state.history],
    }
    arrays = {f"certificate_{name}": getattr(certificate, name) for name in (*OF_SITES, "scalars")}
    replies: Array = np.array(coordinator.replies).reshape(len(coordinator.replies), 2, *coordinator.w.shape)
    arrays |= {"w": coordinator.w, "u": coordinator.u, "replies": replies}
    with staged_file(path) as temporary:
        np.savez(temporary, facts=np.array(json.dumps(facts)), **arrays)


def restore(path: Path, state: State, digests: Mapping[str, str]) -> None:
    """Put a fresh state where a saved one was; it is left as it is where that cannot be.

    Raises
    ------
    CheckpointError
        When the file cannot be read, or is about another problem.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            facts, arrays = json.loads(str(file["facts"])), {key: file[key] for key in file if key != "facts"}
        _check_digests(path.name, facts["digests"], digests)
        _restore(facts, arrays, state)
    except CheckpointError:
        raise
    except UNREADABLE as error:
        raise CheckpointError(f"{path.name} cannot be read ({type(error).__name__}: {error})") from None


def _check_digests(name: str, found: Mapping[str, str], digests: Mapping[str, str]) -> None:
    other = [what for what in digests if found.get(what) != digests[what]] + [
        what for what in found if what not in digests
    ]
    if other:
        raise CheckpointError(f"{name} is about another problem: {', '.join(other)} changed")


def _restore(facts: Mapping[str, Any], arrays: Mapping[str, Array], state: State) -> None:
    """Take everything out of the file before anything of the state changes."""
    coordinator, certificate = state.coordinator, state.certificate
    w, u = (_like(arrays[key], getattr(coordinator, key)) for key in ("w", "u"))
    replies = [(_like(w, coordinator.w), _like(g, coordinator.w)) for w, g in arrays["replies"]]
    latest = {key: _like(arrays[f"certificate_{key}"], getattr(certificate, key)) for key in OF_SITES}
    scalars = arrays["certificate_scalars"].reshape(certificate.scalars.shape)
    set_aside = {int(k): str(what) for k, what in facts["set_aside"].items()}
    history = [Round(int(r[0]), r[1], r[2], r[3], int(r[4]), r[5]) for r in facts["history"]]
    rounds, omega = int(facts["rounds"]), float(facts["omega"])
    if not (np.isfinite(omega) and omega > 0 and all(0 <= k < len(state.names) for k in set_aside)):
        raise ValueError("numbers that cannot be")
    coordinator.w, coordinator.u, coordinator.replies = w, u, replies
    coordinator.rounds, coordinator.steps.omega = rounds, omega
    state.set_aside, state.history = set_aside, history
    for k in set_aside:  # nobody asks these sites again: their weights stay as they were
        at = certificate.cut.of(k)
        for key, values in latest.items():
            getattr(certificate, key)[at] = values[at]
        certificate.scalars[k] = scalars[k]


def _like(values: Array, model: Array) -> Array:
    """These values, if they can stand where `model` stands."""
    if values.shape != model.shape or values.dtype != model.dtype or not np.isfinite(values).all():
        raise ValueError(f"an array of {values.dtype} and shape {values.shape}, or not finite")
    return values
