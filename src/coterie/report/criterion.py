"""AICc and BIC of every λ, where one of them chose it, or beside the errors of folds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie.problem.arrays import Array
from coterie.report.colours import COLOURS
from coterie.report.interactive import figure, plotly
from coterie.report.text import short

if TYPE_CHECKING:
    from coterie.estimators.criterion import CriterionChoice

NAMES = {"aicc": "AICc", "bic": "BIC"}


def _lines(choice: CriterionChoice) -> list[tuple[str, Array, Array, str]]:
    """What is drawn: a name, λ, values and a colour; λ with more parameters than rows have no value."""
    lines = []
    for k, (key, name) in enumerate(NAMES.items()):
        values = getattr(choice, key)
        finite = np.isfinite(values)
        lines.append((name, choice.lams[finite], values[finite], COLOURS[k]))
    return lines


def _best(choice: CriterionChoice) -> tuple[str, float]:
    lam = float(choice.lams[choice.best])
    return f"smallest {NAMES[choice.criterion]}: λ = {short(lam, 3)}", lam


def smallest_in_words(choice: CriterionChoice) -> str:
    """Where each of them is smallest, and how many parameters the fit uses there."""
    said = []
    for key, name in NAMES.items():
        best = replace(choice, criterion=key).best
        used = short(float(choice.effective_parameters[best]), 4)
        said.append(f"{name} is smallest at λ = {short(float(choice.lams[best]), 3)} ({used} effective parameters)")
    return ", ".join(said)


def draw_criterion(ax: Any, choice: CriterionChoice) -> None:
    """Draw AICc and BIC of every λ on matplotlib axes, with the λ that was chosen."""
    for name, lams, values, colour in _lines(choice):
        ax.plot(lams, values, "o-", color=colour, markersize=4, label=name)
    name, lam = _best(choice)
    ax.axvline(lam, color=COLOURS[4], linestyle="--", label=name)
    ax.set_xscale("log" if (choice.lams > 0).all() else "linear")
    ax.set_xlabel("λ")
    ax.set_ylabel("AICc, BIC")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1))


def criterion_figure(choice: CriterionChoice) -> Any:
    """The picture of :func:`draw_criterion` for the page."""
    go = plotly()
    lines, (name, lam) = _lines(choice), _best(choice)
    traces = []
    for title, lams, values, colour in lines:
        look = {"mode": "lines+markers", "line": {"color": colour}, "marker": {"size": 6}}
        hover = f"λ = %{{x:.3~g}}<br>{title} %{{y:.6~g}}<extra></extra>"
        traces.append(go.Scatter(x=lams, y=values, name=title, hovertemplate=hover, **look))
    ends = np.concatenate([values for _, _, values, _ in lines])
    mark = {"mode": "lines", "line": {"color": COLOURS[4], "dash": "dash", "width": 2}, "hoverinfo": "skip"}
    traces.append(go.Scatter(x=[lam, lam], y=[ends.min(), ends.max()], name=name, **mark))
    x: dict[str, Any] = {"title": {"text": "λ"}, "type": "log" if (choice.lams > 0).all() else "linear"}
    return figure(traces, xaxis=x, yaxis={"title": {"text": "AICc, BIC"}})
