"""The state of a server, in one file: a run can go on from its last round."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

import numpy as np

from coterie.federation.loop import FederationError, Round, State
from coterie.io.files import staged_file
from coterie.problem.arrays import Array
from coterie.solver.bound import Bound

OF_CERTIFICATE = ("w", "g", "v", "tau", "scalars", "best_v", "best_tau", "best_w")


def save(path: Path, state: State) -> None:
    """Write the state; the file is whole at any time."""
    coordinator, certificate, proof = state.coordinator, state.certificate, state.certificate.proof
    facts = {
        "names": state.names,
        "rounds": coordinator.rounds,
        "omega": float(coordinator.steps.omega),
        "objective": float(certificate.objective),
        "proof": [float(proof.value), float(proof.weight_bound), bool(proof.unconditional)],
        "held": sorted(certificate.held),
        "set_aside": {str(k): what for k, what in state.set_aside.items()},
        "history": [[float(x) for x in astuple(one)] for one in state.history],
    }
    arrays = {f"certificate_{name}": getattr(certificate, name) for name in OF_CERTIFICATE}
    replies: Array = np.array(coordinator.replies).reshape(len(coordinator.replies), 2, *coordinator.w.shape)
    arrays |= {"w": coordinator.w, "u": coordinator.u, "replies": replies}
    with staged_file(path) as temporary:
        np.savez(temporary, facts=np.array(json.dumps(facts)), **arrays)


def restore(path: Path, state: State) -> None:
    """Put a fresh state of the same federation where a saved one was."""
    try:
        _restore(path, state)
    except KeyError as missing:
        why = f"it was written by another version (it has no {missing})"
        raise FederationError(f"{path.name} cannot be read: {why}; remove it to start anew") from None


def _restore(path: Path, state: State) -> None:
    coordinator, certificate = state.coordinator, state.certificate
    with np.load(path, allow_pickle=False) as file:
        facts = json.loads(str(file["facts"]))
        if tuple(facts["names"]) != state.names or file["w"].shape != coordinator.w.shape:
            raise FederationError(f"{path.name} belongs to another federation; remove it to start anew")
        coordinator.w, coordinator.u = file["w"], file["u"]
        coordinator.replies = [(w, g) for w, g in file["replies"]]
        for name in OF_CERTIFICATE:
            setattr(certificate, name, file[f"certificate_{name}"])
    coordinator.rounds, coordinator.steps.omega = int(facts["rounds"]), float(facts["omega"])
    bound, reach, unconditional = facts["proof"]
    certificate.objective, certificate.proof = float(facts["objective"]), Bound(bound, unconditional, reach)
    coordinator.held = certificate.held = set(facts["held"])
    state.set_aside = {int(k): what for k, what in facts["set_aside"].items()}
    state.history = [Round(int(r[0]), r[1], r[2], r[3], int(r[4]), r[5]) for r in facts["history"]]
