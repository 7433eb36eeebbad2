"""Plotly figures for the page. Colours that depend on light or dark are CSS variables, which the page looks up."""

from __future__ import annotations

import base64
import html
import json
from typing import Any

from coterie.io.files import MissingExtraError
from coterie.problem.arrays import Array

LONGEST = 60  # characters of a name that are shown
INK, SOFT, GRID, PAPER, CUT = "var(--ink)", "var(--soft)", "var(--grid)", "var(--paper)", "var(--cut)"
AXIS = {
    "gridcolor": GRID,
    "linecolor": SOFT,
    "tickcolor": SOFT,
    "zeroline": False,
    "showline": True,
    "ticks": "outside",
    "automargin": True,
    "exponentformat": "power",
    "title": {"standoff": 10},
}


COLOUR_BAR = {
    "orientation": "h",
    "x": 0,
    "xanchor": "left",
    "y": 1.01,
    "yanchor": "bottom",
    "len": 0.6,
    "thickness": 10,
    "outlinewidth": 0,
}


def plotly() -> Any:
    """Return plotly's graph objects."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise MissingExtraError("a report needs plotly, which comes with the extra coterie[report]") from None
    return go


def figure(traces: list[Any], **layout: Any) -> Any:
    """Return a figure in the style of the page."""
    go = plotly()
    look = {
        "template": go.layout.Template(layout={"xaxis": AXIS, "yaxis": AXIS}),
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "hoverlabel": {"bgcolor": PAPER, "bordercolor": SOFT, "font": {"color": INK, "size": 13}, "align": "left"},
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": SOFT, "activecolor": INK},
        "dragmode": False,
    }
    return go.Figure(traces, {**look, **layout})


def markup(name: Any) -> str:
    """Return a name as plotly shows it letter by letter, whatever is in it; a long one is cut."""
    text = str(name)
    return html.escape(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…", quote=False)


def packed(values: Array) -> dict[str, str]:
    """Return numbers the way plotly.js unpacks them, in a third of the room that digits take."""
    return {"dtype": "f4", "bdata": base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")}


def script_json(value: Any) -> str:
    """Return JSON that can stand inside a script element, whatever the strings hold."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def plain(figure: Any) -> Any:
    """Return a figure as what JSON holds."""
    return json.loads(figure.to_json(engine="json"))
