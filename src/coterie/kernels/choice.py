"""Which form of the kernels is used: NumPy, there at once, or compiled, faster once it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from coterie.kernels import compilation
from coterie.kernels.forms import Form, chosen

COMPILED, REFERENCE = "coterie.kernels", "coterie.kernels.reference"


@contextmanager
def using(form: Form | None = None, *, compiled: bool = False) -> Iterator[None]:
    """Inside, kernels have this form; without one, they are compiled, for any n, or NumPy."""
    token = chosen.set((Form.ANY_N if compiled else Form.NUMPY) if form is None else form)
    try:
        yield
    finally:
        chosen.reset(token)


def from_now_on(form: Form) -> None:
    """Inside `using`, and to its end: kernels have this form."""
    chosen.set(form)


def form_here() -> Form:
    """The form of kernels here; where nobody has chosen, whether the compiler has been loaded."""
    form = chosen.get()
    return (Form.THIS_N if is_loaded() else Form.NUMPY) if form is None else form


def compiled() -> bool:
    """Whether kernels are compiled ones here."""
    return form_here() is not Form.NUMPY


def is_chosen() -> bool:
    """Whether somebody has chosen here."""
    return chosen.get() is not None


@cache
def has_compiler() -> bool:
    """Whether the compiler is installed: a solve on a GPU, or in NumPy, does without."""
    return find_spec("numba") is not None


def is_loaded() -> bool:
    """Whether this process has loaded the compiler."""
    return f"{COMPILED}.compiling" in sys.modules


def note_kept(kernels: str) -> None:
    """Note that kernels of one kind or sort have been kept on disk, in an empty file of that name beside them."""
    with suppress(OSError):  # then they cannot be kept, either
        (_folder() / f"{kernels}.known").touch()


def is_noted(kernels: str) -> bool:
    """Whether kernels of one kind or sort have been kept on disk."""
    return (_folder() / f"{kernels}.known").exists()


def _folder() -> Path:
    """Where compiled kernels are kept."""
    return Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__")


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
