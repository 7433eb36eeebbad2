"""Programs of Flower: where they are, and what they must be told so that nothing calls an outside host."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from coterie.io.files import MissingExtraError

QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}


def needs_flower(environment: Mapping[str, str]) -> None:
    """Prepare this process, and all that it starts, for Flower, if it is installed.

    Raises
    ------
    MissingExtraError
    """
    if find_spec("flwr") is None:
        raise MissingExtraError("a federation needs Flower, which comes with the extra coterie[flower]")
    beside = Path(program("flwr")).parent  # programs of Flower start each other by name
    os.environ.update(environment)
    if str(beside) not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"


def program(name: str) -> str:
    """The path of a program, in this environment before any other."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise MissingExtraError(f"there is no program {name!r}; it comes with the extra coterie[flower]")
    return found
