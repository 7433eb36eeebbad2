"""What a site has released of its rows, in its own folder: once, and the same for ever.

A second release of the same rows would cost as much privacy as the first. So the first is kept, every run answers from
it, and while it is there no run without it, with other settings, or about other rows is answered.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np

from coterie.federation.digest import digest_of
from coterie.federation.dp_moments import RowPrivacy
from coterie.federation.release_log import BudgetError
from coterie.problem import LocalDatasets

RELEASED = "released.npz"
NEW = f"whoever answers for the site's data may remove {RELEASED} to release anew, and what was spent adds up"


def promised_rows(folder: Path, data: LocalDatasets, privacy: RowPrivacy | None) -> LocalDatasets:
    """Return the rows that runs may see: these, or those that were released in their place.

    Raises
    ------
    BudgetError
        When something else was released before.
    """
    path = folder / RELEASED
    if privacy is None:
        if path.exists():
            raise BudgetError(f"{folder.name} answers from its released moments only; {NEW}")
        return data
    if not path.exists():
        _write(path, privacy.release(data), _facts(data, privacy))
    with np.load(path, allow_pickle=False) as file:
        if str(file["facts"]) != _facts(data, privacy):
            raise BudgetError(f"{folder.name} has released moments of other rows, or with other settings; {NEW}")
        return LocalDatasets.from_rows(file["X"], file["y"], file["nodes"], data.n_nodes)


def _facts(data: LocalDatasets, privacy: RowPrivacy) -> str:
    digest = digest_of(data.n_nodes, data.X, data.y, data.nodes, data.weights).hex()
    return json.dumps({**asdict(privacy), "rows": digest}, sort_keys=True)


def _write(path: Path, rows: LocalDatasets, facts: str) -> None:
    """Write a release that nobody has seen yet; where another process was faster, its release counts."""
    temporary = path.with_name(f".{path.stem}-{os.getpid()}.npz")
    try:
        np.savez(temporary, X=rows.X, y=rows.y, nodes=rows.nodes, facts=np.array(facts))
        temporary.chmod(0o600)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        temporary.unlink(missing_ok=True)
