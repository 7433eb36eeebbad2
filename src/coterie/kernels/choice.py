"""Which form of the kernels is used: NumPy, there at once, or compiled, faster once it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from coterie.kernels import compilation

COMPILED, REFERENCE = "coterie.kernels", "coterie.kernels.reference"

_chosen: ContextVar[bool | None] = ContextVar("compiled kernels", default=None)


@contextmanager
def using(*, compiled: bool) -> Iterator[None]:
    """Inside, kernels are compiled, or they are NumPy."""
    token = _chosen.set(compiled)
    try:
        yield
    finally:
        _chosen.reset(token)


def compile_from_now_on() -> None:
    """Inside `using`, and to its end: kernels are compiled."""
    _chosen.set(True)


def compiled() -> bool:
    """Whether kernels are the compiled ones here; where nobody has chosen, whether the compiler has been loaded."""
    chosen = _chosen.get()
    return is_loaded() if chosen is None else chosen


def is_chosen() -> bool:
    """Whether somebody has chosen here."""
    return _chosen.get() is not None


def is_loaded() -> bool:
    """Whether this process has loaded the compiler."""
    return f"{COMPILED}.compiling" in sys.modules


def are_kept() -> bool:
    """Whether some compiled kernels have been kept on disk: in NUMBA_CACHE_DIR, or beside their sources."""
    folder = os.environ.get("NUMBA_CACHE_DIR")
    kept = Path(folder).glob("*/*.nbi") if folder else (Path(__file__).parent / "__pycache__").glob("*.nbi")
    return any(kept)


class Either:
    """A module of kernels: what is asked of it is looked up in its NumPy form or in the compiled one.

    What has no NumPy form is compiled. `elsewhere` is where the compiled form stands, if not among the others.
    """

    def __init__(self, name: str, elsewhere: str | None = None) -> None:
        self._name, self._compiled = name, elsewhere or f"{COMPILED}.{name}"

    def __getattr__(self, attribute: str) -> Any:
        plain = None if compiled() else _reference(self._name)
        if plain is not None and hasattr(plain, attribute):
            return getattr(plain, attribute)
        return getattr(_loaded(self._compiled), attribute)


@cache
def _loaded(name: str) -> ModuleType:
    """A module of compiled kernels. Loading it, and with it the compiler, counts as compiling: no limit counts it."""
    with compilation.running():
        return import_module(name)


@cache
def _reference(name: str) -> ModuleType | None:
    name = f"{REFERENCE}.{name}"
    return None if find_spec(name) is None else import_module(name)
