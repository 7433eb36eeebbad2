"""Figures without global state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coterie.io.files import MissingExtraError


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("pictures need matplotlib, which comes with the extra coterie[plot]") from None
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a PNG without metadata: the same figure gives the same file."""
    figure.savefig(path, dpi=150, metadata={"Software": None})
