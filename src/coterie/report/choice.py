"""The errors that the choice of λ rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coterie.problem.arrays import Array
from coterie.report.colours import COLOURS
from coterie.report.interactive import figure, plotly
from coterie.report.words import short

if TYPE_CHECKING:
    from coterie.estimators.cross_validation import LamChoice

WIDE = 20.0
LINE, BEST, ONE_SE = COLOURS[0], COLOURS[4], COLOURS[2]


def _marks(choice: LamChoice) -> list[tuple[str, float, str, str]]:
    """What is marked: its name, λ, colour and line style."""
    best, one_se = choice.lams[choice.best], choice.lams[choice.one_se]
    if best == one_se:
        return [("best, also by the one-SE rule", best, BEST, "dash")]
    return [("best", best, BEST, "dash"), ("one-SE rule", one_se, ONE_SE, "dot")]


def _scale(choice: LamChoice) -> str:
    return "log" if (choice.lams > 0).all() else "linear"


def error_scale(mean: Array) -> str:
    """The scale of an axis of errors: logarithmic where they differ by far."""
    return "log" if 0 < WIDE * mean.min() < mean.max() else "linear"


def error_axis(mean: Array, error: str) -> dict[str, Any]:
    """An axis of errors for the page."""
    axis: dict[str, Any] = {"title": {"text": f"mean {error}"}, "type": error_scale(mean)}
    return axis | ({"dtick": 1} if axis["type"] == "log" else {})  # decades alone


def error_label(over: str) -> str:
    """What the errors are of."""
    return f"mean error of held-out {'rows' if over == 'given' else over}"


def draw_lam_choice(ax: Any, choice: LamChoice) -> None:
    """Draw the cross-validated error of every λ on matplotlib axes, with standard errors and both rules marked."""
    look = {"color": LINE, "markersize": 4, "capsize": 2, "elinewidth": 0.8}
    ax.errorbar(choice.lams, choice.mean, choice.standard_error, fmt="o-", **look)
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
    bars = {"type": "data", "array": choice.standard_error, "thickness": 1, "width": 3, "color": LINE}
    low, high = float(choice.mean.min()) / 1.2, float((choice.mean + choice.standard_error).max())
    hover = "λ = %{x:.3~g}<br>error %{y:.4~g} ± %{error_y.array:.2~g}<extra></extra>"
    look = {"mode": "lines+markers", "line": {"color": LINE}, "marker": {"size": 6}, "error_y": bars}
    traces = [go.Scatter(x=choice.lams, y=choice.mean, name="mean, ± one standard error", hovertemplate=hover, **look)]
    for name, lam, colour, dash in _marks(choice):
        line = {"mode": "lines", "line": {"color": colour, "dash": dash, "width": 2}, "hoverinfo": "skip"}
        traces.append(go.Scatter(x=[lam, lam], y=[low, high], name=f"{name}: λ = {short(lam, 3)}", **line))
    x: dict[str, Any] = {"title": {"text": "λ"}, "type": _scale(choice)}
    if _scale(choice) == "log" and choice.lams.max() > 20 * choice.lams.min():
        x["dtick"] = 1  # decades alone
    return figure(traces, xaxis=x, yaxis=error_axis(choice.mean, error))
