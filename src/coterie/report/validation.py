"""Errors of held-out rows: those that the choice of λ rests on, and the networked model beside its baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.arrays import Array
from coterie.report.colours import COLOURS
from coterie.report.interactive import figure, markup, plotly
from coterie.report.text import short

if TYPE_CHECKING:
    from coterie.estimators.comparison import Comparison
    from coterie.estimators.lam_choice import LamChoice

WIDE = 20.0
LINE, BEST, ONE_SE = COLOURS[0], COLOURS[4], COLOURS[2]
CURVES = (LINE, COLOURS[1], COLOURS[3], COLOURS[5])


def _marks(choice: LamChoice) -> list[tuple[str, float, str, str]]:
    """What is marked: its name, λ, colour and line style."""
    best, one_se = choice.lams[choice.best], choice.lams[choice.one_se]
    if best == one_se:
        return [("best, also by the one-SE rule", best, BEST, "dash")]
    return [("best", best, BEST, "dash"), ("one-SE rule", one_se, ONE_SE, "dot")]


def _which(choice: LamChoice, value: float) -> str:
    """What was chosen together with λ."""
    if choice.neighbours is not None:
        return f"k = {value:.0f}"
    return f"threshold {short(value, 3)}" if choice.time_strengths is None else f"{short(value, 3)} times λ in time"


def _scale(choice: LamChoice) -> str:
    return "log" if (choice.lams > 0).all() else "linear"


def error_scale(mean: Array) -> str:
    """The scale of an axis of errors: logarithmic where they differ by far."""
    return "log" if 0 < WIDE * mean.min() < mean.max() else "linear"


def error_axis(mean: Array, error: str) -> dict[str, Any]:
    """An axis of errors for the page."""
    axis: dict[str, Any] = {"title": {"text": error}, "type": error_scale(mean)}
    return axis | ({"dtick": 1} if axis["type"] == "log" else {})  # decades alone


def error_label(over: str) -> str:
    """What the errors are of."""
    return f"error of held-out {'rows' if over == 'given' else over}"


def draw_lam_choice(ax: Any, choice: LamChoice) -> None:
    """Draw the cross-validated error of every λ on matplotlib axes, with standard errors and both rules marked."""
    look = {"color": LINE, "markersize": 4, "capsize": 2, "elinewidth": 0.8}
    for number, (which, one) in enumerate(choice.curves()):
        here = look if which is None else look | {"color": CURVES[number % len(CURVES)], "label": _which(choice, which)}
        ax.errorbar(one.lams, one.mean, one.standard_error, fmt="o-", **here)
    for name, lam, colour, style in _marks(choice):
        ax.axvline(lam, color=colour, linestyle={"dash": "--", "dot": ":"}[style], label=f"{name}: λ = {short(lam, 3)}")
    ax.set_xscale(_scale(choice))
    ax.set_yscale(error_scale(choice.mean))
    ax.set_xlabel("λ")
    ax.set_ylabel(error_label(choice.over))
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1))


def lam_choice_figure(choice: LamChoice, error: str) -> Any:
    """The picture of :func:`draw_lam_choice` for the page."""
    go = plotly()
    low, high = float(choice.mean.min()) / 1.2, float((choice.mean + choice.standard_error).max())
    hover = "λ = %{x:.3~g}<br>error %{y:.4~g} ± %{error_y.array:.2~g}<extra></extra>"
    traces = []
    for number, (which, one) in enumerate(choice.curves()):
        colour = CURVES[number % len(CURVES)]
        bars = {"type": "data", "array": one.standard_error, "thickness": 1, "width": 3, "color": colour}
        look = {"mode": "lines+markers", "line": {"color": colour}, "marker": {"size": 6}, "error_y": bars}
        name = "mean, ± one standard error" if which is None else _which(choice, which)
        traces.append(go.Scatter(x=one.lams, y=one.mean, name=name, hovertemplate=hover, **look))
    for name, lam, colour, dash in _marks(choice):
        line = {"mode": "lines", "line": {"color": colour, "dash": dash, "width": 2}, "hoverinfo": "skip"}
        traces.append(go.Scatter(x=[lam, lam], y=[low, high], name=f"{name}: λ = {short(lam, 3)}", **line))
    x: dict[str, Any] = {"title": {"text": "λ"}, "type": _scale(choice)}
    if _scale(choice) == "log" and choice.lams.max() > 20 * choice.lams.min():
        x["dtick"] = 1  # decades alone
    return figure(traces, xaxis=x, yaxis=error_axis(choice.mean, error))


def _colours(comparison: Comparison) -> list[str]:
    return [BEST if k == comparison.best else LINE for k in range(len(comparison.methods))]


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
