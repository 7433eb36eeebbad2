"""Whether all ranks were given the same: a digest of each thing, compared before anything is computed."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from coterie.engines.mpi.crew import Crew, RankFailed

SIZE = 16  # bytes of a digest
VERSION = "version of"
PACKAGES = "coterie", "numpy", "scipy", "numba", "polars"


def refuse_differences(crew: Crew, given: dict[str, Any]) -> None:
    """Raise RankFailed at every rank where some have another version, or were given something else, than rank 0."""
    things = {f"{VERSION} {name}": _version(name) for name in PACKAGES} | given
    digests = crew.every(np.array([list(digest(thing)) for thing in things.values()], dtype=np.uint8))
    differ = (digests != digests[0]).any(axis=2)
    if not differ.any():
        return
    what = next(name for name, column in zip(things, differ.T, strict=True) if column.any())
    ranks = np.flatnonzero(differ[:, list(things).index(what)]).tolist()
    who = f"rank {ranks[0]} has" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks[:5]))} have"
    advice = "read the same files with the same options, and draw random numbers from the same seed"
    advice = "use the same installation" if what.startswith(VERSION) else advice
    raise RankFailed(
        f"all ranks must solve the same problem, but {who} another {what} than rank 0: let every rank {advice}"
    )


def digest(thing: Any) -> bytes:
    """Of arrays, and of what holds them."""
    hashed = blake2b(digest_size=SIZE)
    _feed(hashed, thing)
    return hashed.digest()


def _feed(hashed: Any, thing: Any) -> None:
    hashed.update(type(thing).__name__.encode())
    if isinstance(thing, np.ndarray):
        hashed.update(f"{thing.dtype}{thing.shape}".encode())
        hashed.update(np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data if thing.size else b"")
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            _feed(hashed, getattr(thing, field.name))
    elif isinstance(thing, tuple | list):
        for part in thing:
            _feed(hashed, part)
    elif isinstance(thing, str | int | float | bool | np.generic | None):
        hashed.update(repr(thing).encode())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # from its sources
        return "unknown"
