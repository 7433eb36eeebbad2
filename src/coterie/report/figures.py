"""Matplotlib figures without global state, and curves with their spread over draws."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from coterie.io.files import MissingExtraError
from coterie.problem.arrays import Array
from coterie.report.colours import COLOURS

STYLES = ("-", "--", "-.", ":")


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


def draw_curves(ax: Any, curves: Iterable[tuple[str, Array, Array]], x_label: str, y_label: str) -> None:
    """Draw (label, x, y) with one row of y for each draw: the median as a line, the range as a band."""
    for k, (label, x, y) in enumerate(curves):
        colour = COLOURS[k % len(COLOURS)]
        ax.fill_between(x, y.min(axis=0), y.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        style = {"linestyle": STYLES[k % len(STYLES)], "marker": "o" if len(x) <= 20 else None, "markersize": 4}
        ax.plot(x, np.median(y, axis=0), color=colour, label=label, **style)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_yscale("log")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
