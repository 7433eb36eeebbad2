"""How a solve came to its answer: the objective from above, the bound from below, the gap between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.problem.arrays import Array
from coterie.report.colours import COLOURS
from coterie.report.interactive import figure, plotly
from coterie.solver import Solution

BLUE, ORANGE, GREEN = COLOURS[0], COLOURS[4], COLOURS[2]


@dataclass(frozen=True, eq=False)
class Convergence:
    """The history as columns; nan where there is nothing to draw.

    Attributes
    ----------
    n_iter, objective, dual_bound, gap : arrays
    window : (float, float)
        The part of the objective's axis worth looking at: starts and early bounds can be far off.
    """

    n_iter: Array
    objective: Array
    dual_bound: Array
    gap: Array
    window: tuple[float, float]

    @classmethod
    def of(cls, solution: Solution) -> Convergence:
        last = (solution.n_iter, solution.objective, solution.dual_bound, solution.gap)
        lines = np.array([tuple(line)[:4] for line in solution.history] or [last], dtype=float)
        lines[~np.isfinite(lines)] = np.nan
        n_iter, objective, bound, gap = lines.T
        return cls(n_iter, objective, bound, np.where(gap > 0, gap, np.nan), _window(objective, bound))


def _window(objective: Array, bound: Array) -> tuple[float, float]:
    last, first = float(objective[-1]), 1 if len(objective) > 2 else 0
    if np.isnan(last):
        return 0.0, 1.0
    below = last - bound[first:][np.isfinite(bound[first:])]
    up, down = float(np.nanmax(objective[first:])) - last, float(np.median(below)) if len(below) else 0.0
    reach = max(up, down) or 1e-3 * abs(last) or 1.0
    return last - 1.1 * max(down, 0.15 * reach), last + 1.1 * max(up, 0.15 * reach)


def draw_convergence(ax: Any, solution: Solution) -> None:
    """Draw objective and bound against iterations on matplotlib axes; the best possible lies between them."""
    c = Convergence.of(solution)
    ax.plot(c.n_iter, c.objective, "o-", color=BLUE, markersize=3, label="objective")
    ax.plot(c.n_iter, c.dual_bound, "o--", color=ORANGE, markersize=3, label="lower bound")
    ax.set_ylim(*c.window)
    _finish(ax, "objective")


def draw_gap(ax: Any, solution: Solution, tol: float | None = None) -> None:
    """Draw the relative gap against iterations on matplotlib axes, and the tolerance as a line."""
    c = Convergence.of(solution)
    ax.plot(c.n_iter, c.gap, "o-", color=GREEN, markersize=3, label="relative gap")
    if tol is not None:
        ax.axhline(tol, color="0.4", linestyle=":", label="asked for")
    ax.set_yscale("log")
    _finish(ax, "relative gap")


def _finish(ax: Any, y_label: str) -> None:
    ax.set_xlabel("iterations")
    ax.set_ylabel(y_label)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)


def convergence_figure(solution: Solution) -> Any:
    """The picture of :func:`draw_convergence` for the page."""
    c = Convergence.of(solution)
    traces = [
        _line(c.n_iter, c.objective, BLUE, "objective", "solid"),
        _line(c.n_iter, c.dual_bound, ORANGE, "lower bound", "dash"),
    ]
    y = {"title": {"text": "objective"}, "range": list(c.window)}
    return figure(traces, xaxis={"title": {"text": "iterations"}}, yaxis=y, hovermode="x unified")


def gap_figure(solution: Solution, tol: float) -> Any:
    """The picture of :func:`draw_gap` for the page."""
    c = Convergence.of(solution)
    asked = {"x0": 0, "x1": 1, "xref": "paper", "y0": tol, "y1": tol, "line": {"color": "var(--soft)", "dash": "dot"}}
    return figure(
        [_line(c.n_iter, c.gap, GREEN, "relative gap", "solid")],
        xaxis={"title": {"text": "iterations"}},
        yaxis={"title": {"text": "relative gap"}, "type": "log", "dtick": _decades(c.gap)},
        shapes=[{"type": "line", **asked, "label": {"text": "asked for", "textposition": "start"}}],
        hovermode="x unified",
    )


def _decades(gap: Array) -> int:
    """How many decades from tick to tick: whole ones, and not too many ticks."""
    shown = gap[gap > 0]
    return 1 + int(np.log10(shown.max() / shown.min()) // 9) if len(shown) else 1


def _line(x: Array, y: Array, colour: str, name: str, dash: str) -> Any:
    look = {"line": {"color": colour, "dash": dash}, "marker": {"size": 5}, "mode": "lines+markers"}
    return plotly().Scatter(x=x, y=y, name=name, hovertemplate="%{y:.6~g}", **look)
