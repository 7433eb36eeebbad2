"""The networked model beside what can be had without the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.report.choice import error_axis, error_label, error_scale
from coterie.report.colours import COLOURS
from coterie.report.interactive import figure, markup, plotly

if TYPE_CHECKING:
    from coterie.estimators.comparison import Comparison

MEAN, BEST = COLOURS[0], COLOURS[4]


def _colours(comparison: Comparison) -> list[str]:
    return [BEST if k == comparison.best else MEAN for k in range(len(comparison.methods))]


def close_to_best(comparison: Comparison) -> list[str]:
    """The methods whose mean is within one standard error of the smallest."""
    best = comparison.best
    close = comparison.mean <= comparison.mean[best] + comparison.standard_error[best]
    return [method for k, method in enumerate(comparison.methods) if close[k] and k != best]


def draw_comparison(ax: Any, comparison: Comparison) -> None:
    """Draw the error of each method on matplotlib axes: every fold, and the mean with its standard error."""
    places = np.arange(len(comparison.methods))
    folds = comparison.errors.shape[1]
    ax.scatter(comparison.errors.ravel(), np.repeat(places, folds), color="0.6", s=14, label="each fold")
    values = zip(places, comparison.mean, comparison.standard_error, _colours(comparison), strict=True)
    for place, mean, spread, colour in values:
        look = {"fmt": "D" if colour == BEST else "o", "color": colour, "capsize": 3, "markersize": 7}
        ax.errorbar(mean, place, xerr=spread, label="smallest mean" if colour == BEST else None, **look)
    ax.set_yticks(places, comparison.methods)
    ax.invert_yaxis()
    ax.set_xscale(error_scale(comparison.mean))
    ax.set_xlabel(error_label(comparison.over))
    ax.grid(alpha=0.25, axis="x")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))


def comparison_figure(comparison: Comparison, error: str) -> Any:
    """The picture of :func:`draw_comparison` for the page."""
    go = plotly()
    places, folds = np.arange(len(comparison.methods)), comparison.errors.shape[1]
    dots = {"mode": "markers", "marker": {"color": "var(--soft)", "size": 6, "opacity": 0.6}}
    each = go.Scatter(
        x=comparison.errors.ravel(),
        y=np.repeat(places, folds),
        name="each fold",
        hovertemplate="%{x:.4~g}<extra>one fold</extra>",
        **dots,
    )
    colours = _colours(comparison)
    symbols = ["diamond" if colour == BEST else "circle" for colour in colours]
    mean = go.Scatter(
        x=comparison.mean,
        y=places,
        name="mean, ± one standard error",
        mode="markers",
        marker={"color": colours, "size": 12, "symbol": symbols},
        error_x={"type": "data", "array": comparison.standard_error, "thickness": 1.5, "color": "var(--ink)"},
        hovertemplate="mean %{x:.4~g} ± %{error_x.array:.2~g}<extra></extra>",
    )
    names = [markup(method) for method in comparison.methods]
    y = {"tickvals": places, "ticktext": names, "range": [len(places) - 0.5, -0.5], "showgrid": False}
    return figure([each, mean], xaxis=error_axis(comparison.mean, error), yaxis=y)
