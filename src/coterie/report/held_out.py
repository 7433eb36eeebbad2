"""Predicted against actual, or residuals against expected counts: of labels that were held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from coterie.problem.arrays import Array
from coterie.report.colours import COLOURS
from coterie.report.interactive import SOFT, figure, plotly
from coterie.report.text import plural

if TYPE_CHECKING:
    from coterie.estimators.held_out import HeldOut

SMALLEST, LARGEST = 5.0, 26.0  # diameters of dots


RIGHT = "On the dashed line, predictions are right."
ALIKE = (
    "Deviance residuals, the signed roots of deviances, lie around the dashed line alike whatever is expected, mostly "
    "between −2 and 2, if counts vary no more than a Poisson distribution has it."
)


class Dots(NamedTuple):
    """Where predictions and labels fall, counted: one dot for each bin that is not empty.

    `line` is what a dashed line from `ends[0]` to `ends[1]` is at, and `meaning` says what it means.
    """

    predicted: Array
    actual: Array
    rows: Array
    titles: tuple[str, str]
    ends: tuple[float, float]
    line: tuple[float, float]
    meaning: str = RIGHT

    @classmethod
    def of(cls, held_out: HeldOut) -> Dots | None:
        """None where single predictions are not known."""
        if held_out.edges is None or held_out.counts is None:
            return None
        edges, counts = held_out.edges, held_out.counts
        middle, ends = (edges[:-1] + edges[1:]) / 2, (float(edges[0]), float(edges[-1]))
        if counts.shape[1] == 2:  # of each class
            some = counts.sum(axis=1)
            k = np.flatnonzero(some)
            titles = ("predicted probability of a class", "share of it among these rows")
            return cls(middle[k], counts[k, 1] / some[k], some[k], titles, ends, ends)
        up, across = np.nonzero(counts)
        rows, predicted = counts[up, across], middle[across]
        if (residuals := held_out.residual_edges) is not None:
            actual = ((residuals[:-1] + residuals[1:]) / 2)[up]
            shown = float(predicted.min()), float(predicted.max())
            return cls(predicted, actual, rows, ("expected count", "residual"), shown, (0.0, 0.0), ALIKE)
        below = held_out.coverage
        meaning = RIGHT if below is None else f"Labels below the dashed line, {below:.0%}, are less than predicted."
        return cls(predicted, middle[up], rows, ("predicted", "actual"), ends, ends, meaning)

    @property
    def scale(self) -> str:
        """The scale across: counts differ by factors."""
        return "log" if self.meaning == ALIKE else "linear"

    @property
    def sizes(self) -> Array:
        """Diameters; the area goes with the count, but for the smallest."""
        return np.maximum(LARGEST * np.sqrt(self.rows / self.rows.max()), SMALLEST)


def draw_held_out(ax: Any, held_out: HeldOut) -> None:
    """Draw predicted against actual held-out labels, or against shares of a class, on matplotlib axes."""
    if (dots := Dots.of(held_out)) is None:
        raise ValueError("single predictions are not known: the model was fitted in one pass")
    ax.plot(dots.ends, dots.line, color="0.6", linestyle="--", linewidth=1, zorder=1)
    ax.scatter(dots.predicted, dots.actual, (0.5 * dots.sizes) ** 2, color=COLOURS[0], alpha=0.7, zorder=2)
    ax.set_xscale(dots.scale)
    ax.set_xlabel(dots.titles[0])
    ax.set_ylabel(dots.titles[1])
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def held_out_figure(dots: Dots) -> Any:
    """The picture of :func:`draw_held_out` for the page."""
    go = plotly()
    line = go.Scatter(
        x=dots.ends, y=dots.line, mode="lines", line={"color": SOFT, "dash": "dash", "width": 1}, hoverinfo="skip"
    )
    marker = {"size": dots.sizes, "color": COLOURS[0], "opacity": 0.7, "line": {"width": 0}}
    of, other = ("predicted", "actual") if dots.scale == "linear" else dots.titles
    hover = [f"{of} {p:.4g}<br>{other} {a:.4g}<br>{plural(int(c), 'row')}" for p, a, c in zip(*dots[:3], strict=True)]
    cloud = go.Scatter(
        x=dots.predicted, y=dots.actual, mode="markers", marker=marker, hovertext=hover, hoverinfo="text"
    )
    axes = ({"title": {"text": title}} for title in dots.titles)
    x, y = axes
    x["type"] = dots.scale  # type: ignore[assignment]
    return figure([line, cloud], xaxis=x, yaxis=y, showlegend=False, hovermode="closest")
