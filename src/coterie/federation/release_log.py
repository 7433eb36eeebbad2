"""The log of what a site has released under differential privacy, in its own folder: the site itself sees to the limit.

Three things would undo the noise: more replies than were accounted for, fresh noise for a request that comes twice,
and a run that asks without privacy. So a site keeps a log. It counts replies and refuses when there have been enough;
it draws noise from a key that never leaves it and from everything that the reply depends on, so that the same
request gets the same reply and no two others share noise; and while there is a log, no run with other settings is
answered.
"""

from __future__ import annotations

import hmac
import json
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import numpy as np

from coterie.federation.digest import data_arrays, digest_of
from coterie.federation.dp_mechanism import Privacy
from coterie.federation.messages import ProxRequest
from coterie.problem import Problem

RELEASE_LOG = "privacy.db"
PATIENCE = 60.0  # seconds to wait for another process that writes in the same log
NEW = f"whoever answers for the site's data may remove {RELEASE_LOG} to begin anew, and what was spent adds up"


class BudgetError(ValueError):
    """A site may release no more, or not like this; the message says why."""


def check_promise(folder: Path, privacy: Privacy | None) -> None:
    """Refuse a run without privacy, or with another one, where a site has promised one before."""
    if not (folder / RELEASE_LOG).exists():
        return
    if privacy is None:
        raise BudgetError(f"{folder.name} answers with differential privacy only; {NEW}")
    with closing(_open(folder)) as db:
        _key(db, folder, privacy)


def noise_for(
    folder: Path,
    privacy: Privacy,
    problem: Problem,
    request: ProxRequest,
    nodes: Sequence[str],
    round_to: float = 0.0,
) -> np.random.Generator:
    """Write a release down, and return where its noise comes from; both before anything leaves.

    Raises
    ------
    BudgetError
        When as many replies have been released as were accounted for, or the log is about other settings.
    """
    with closing(_open(folder)) as db:
        db.execute("BEGIN IMMEDIATE")
        asked = _fingerprint(problem, request, nodes, round_to)
        seed = hmac.digest(_key(db, folder, privacy), asked, "sha256")
        known = db.execute("SELECT 1 FROM released WHERE seed = ?", [seed]).fetchone()
        (count,) = db.execute("SELECT COUNT(*) FROM released").fetchone()
        if known is None:
            if count >= privacy.rounds:
                raise BudgetError(f"{folder.name} has released all of its {privacy.rounds} private answers; {NEW}")
            db.execute("INSERT INTO released VALUES (?)", [seed])
        db.execute("COMMIT")
    return np.random.default_rng(int.from_bytes(seed))


def _open(folder: Path) -> sqlite3.Connection:
    db = sqlite3.connect(folder / RELEASE_LOG, timeout=PATIENCE, isolation_level=None)
    db.execute("CREATE TABLE IF NOT EXISTS promise (one INTEGER PRIMARY KEY CHECK (one = 1), settings TEXT, key BLOB)")
    db.execute("CREATE TABLE IF NOT EXISTS released (seed BLOB PRIMARY KEY)")
    (folder / RELEASE_LOG).chmod(0o600)
    return db


def _key(db: sqlite3.Connection, folder: Path, privacy: Privacy) -> bytes:
    """The site's key, made with its first release; the settings are those of the first release for ever."""
    settings = json.dumps(asdict(privacy), sort_keys=True)
    db.execute("INSERT OR IGNORE INTO promise VALUES (1, ?, ?)", [settings, secrets.token_bytes(32)])
    promised, key = db.execute("SELECT settings, key FROM promise").fetchone()
    if promised != settings:
        raise BudgetError(f"{folder.name} has promised the privacy {promised}, and the run has {settings}; {NEW}")
    return bytes(key)


def _fingerprint(problem: Problem, request: ProxRequest, nodes: Sequence[str], round_to: float) -> bytes:
    """A digest of all that a reply depends on."""
    facts = (problem.loss, problem.penalty, float(problem.lam), list(nodes), round_to)
    return digest_of(facts, request.v, request.tau, *data_arrays(problem))
