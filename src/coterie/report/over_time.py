"""Places at times: the network at several times, side by side, and the line of a coefficient at each place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.graphs.times import what_they_say
from coterie.problem.arrays import Array
from coterie.problem.ids import Pairs
from coterie.report.colours import COLOURS, SCALE
from coterie.report.display_graph import DisplayGraph, most_varied
from coterie.report.interactive import INK, PAPER, SOFT, figure, markup, packed, plotly
from coterie.report.map import MOST_EDGES, OUTLINED_UP_TO, VECTOR_UP_TO, cropped, positions, segments
from coterie.report.network import drawn_edges
from coterie.report.notes import Coordinates
from coterie.report.text import short

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

MOST_SLICES, MOST_LINES, MOST_COEFFICIENTS, MOST_TICKS = 6, 40, 12, 6
NARROWEST = 1e-9  # of the largest number: colours and axes span at least this much


@dataclass(frozen=True, eq=False)
class OverTime:
    """The coefficients that vary most, at every place and time.

    Attributes
    ----------
    places : list of str
    times : sequence
        Numbers, dates or text.
    shown : array of int
        The times that are drawn as networks.
    lines : array of int
        The places that are drawn as lines.
    columns : list of str
    w : array of shape (columns, times, places)
    """

    places: list[str]
    times: Sequence[Any]
    shown: NDArray[np.int64]
    lines: NDArray[np.int64]
    columns: list[str]
    w: Array

    @classmethod
    def of(cls, model: NetworkedModel) -> OverTime | None:
        """What there is to draw; None of a model without times, or with one only."""
        from coterie.estimators.export import column_names

        pairs = model.graph_.ids
        if not isinstance(pairs, Pairs) or len(pairs.second) < 2:
            return None
        V, T = len(pairs.first), len(pairs.second)
        kept, names = most_varied(model.weights_, MOST_COEFFICIENTS), column_names(model)
        w = model.weights_[:, kept].reshape(T, V, -1).transpose(2, 0, 1)
        shown, lines = _spread(T, MOST_SLICES), _spread(V, MOST_LINES)
        return cls([str(name) for name in pairs.first], pairs.second, shown, lines, [names[k] for k in kept], w)

    @property
    def labels(self) -> list[str]:
        """The times that are drawn as networks, in words."""
        return [short(t, 6) if isinstance(t, float) else str(t) for t in (self.times[k] for k in self.shown)]

    @property
    def ends(self) -> list[tuple[float, float]]:
        """Between which numbers the colours of each coefficient lie, the same at all times."""
        low, high = self.w.min(axis=(1, 2)), self.w.max(axis=(1, 2))
        room = np.maximum(NARROWEST * np.abs(self.w).max(axis=(1, 2)), np.finfo(float).tiny)
        return [(float(a), float(max(b, a + r))) for a, b, r in zip(low, high, room, strict=True)]

    @property
    def when(self) -> list[Any]:
        """The times as numbers or dates, where they say so; else text."""
        try:
            said = what_they_say(self.times)
        except ValueError:  # names in the order of a graph
            said = list(self.times)
        plain = [t.astype("datetime64[us]").item() if isinstance(t, np.datetime64) else t for t in said]
        return [t if isinstance(t, int | float | date) else str(t) for t in plain]

    @property
    def across(self) -> list[Any]:
        """The times as an axis takes them."""
        return [t.isoformat() if isinstance(t, date) else t for t in self.when]

    def page(self) -> list[dict[str, Any]]:
        """The numbers of each coefficient, as the page's script reads them."""
        return [
            {
                "name": name,
                "cmin": low,
                "cmax": high,
                "low": short(low, 3),
                "high": short(high, 3),
                "slices": [packed(w[k]) for k in self.shown],
                "lines": [packed(w[:, i]) for i in self.lines],
            }
            for name, w, (low, high) in zip(self.columns, self.w, self.ends, strict=True)
        ]


def _spread(count: int, most: int) -> NDArray[np.int64]:
    """At most so many of 0 … count − 1, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def slice_figures(found: OverTime, drawn: DisplayGraph, coordinates: Coordinates | None) -> dict[str, Any]:
    """The network at each of the times shown, without its colours, which the page takes from a coefficient."""
    scatter = plotly().Scattergl if len(drawn.names) > VECTOR_UP_TO else plotly().Scatter
    x = positions(drawn, coordinates)
    edges = drawn_edges(drawn.graph, np.zeros((len(x), 1)), MOST_EDGES)[0]
    line = {"color": INK if len(x) <= OUTLINED_UP_TO else PAPER, "width": 0.4}
    marker = {"size": float(np.clip(70 / np.sqrt(len(x)), 3, 10)), "colorscale": SCALE, "line": line}
    hidden: dict[str, Any] = {"visible": False}
    across, up = ({**hidden, **cropped(x[:, k])} for k in (0, 1))
    up |= {"scaleanchor": "x", "scaleratio": 1.0 if coordinates is None else coordinates.stretch}
    figures = {}
    for number, label in enumerate(found.labels):
        nodes = scatter(
            x=x[:, 0],
            y=x[:, 1],
            mode="markers",
            marker=marker,
            text=[markup(name) for name in found.places],
            hovertemplate="%{text}<br>%{marker.color:.4~g}<extra></extra>",
        )
        look: dict[str, Any] = {"showlegend": False, "hovermode": "closest", "dragmode": False}
        look |= {"margin": {"l": 4, "r": 4, "t": 30, "b": 4}, "title": {"text": markup(label), "font": {"size": 14}}}
        traces = [segments(scatter, x[edges], SOFT, 0.35, 0.8), nodes]
        figures[f"slice-{number}"] = figure(traces, xaxis=across, yaxis=up, **look)
    return figures


def lines_figure(found: OverTime) -> Any:
    """A line for each place, of the coefficient that the page chooses."""
    traces = [
        plotly().Scatter(
            x=found.across,
            mode="lines" if len(found.times) > 30 else "lines+markers",
            marker={"size": 4},
            line={"color": COLOURS[k % (len(COLOURS) - 1)], "width": 1.3},
            opacity=0.85 if len(found.lines) <= 10 else 0.5,
            name=markup(found.places[i]),
            hovertemplate="%{x}: %{y:.4~g}",
        )
        for k, i in enumerate(found.lines)
    ]
    kind = {"type": "category"} if isinstance(found.when[0], str) else {}
    return figure(
        traces, xaxis=kind, yaxis={"title": {"text": ""}}, showlegend=len(found.lines) <= 6, hovermode="closest"
    )


def draw_over_time(ax: Any, model: NetworkedModel, by: str | None = None) -> None:
    """Draw the line of a coefficient at each place on matplotlib axes."""
    found = OverTime.of(model)
    if found is None:
        raise ValueError("the nodes of this model are not places at several times; give graph=(space, time) to it")
    if by is not None and by not in found.columns:
        raise ValueError(f"there is no coefficient {by!r} to draw; choose one of {', '.join(found.columns)}")
    w, when = found.w[0 if by is None else found.columns.index(by)], found.when
    for k, i in enumerate(found.lines):
        look = {"color": COLOURS[k % (len(COLOURS) - 1)], "linewidth": 1.2, "alpha": 0.8}
        ax.plot(when, w[:, i], label=found.places[i], **look)
    if isinstance(when[0], str):
        ax.set_xticks([when[k] for k in _spread(len(when), MOST_TICKS)])
    elif isinstance(when[0], date):
        from matplotlib import dates

        named: Any = dates.ConciseDateFormatter
        ax.xaxis.set_major_formatter(named(ax.xaxis.get_major_locator()))
    ax.set_ylabel(found.columns[0] if by is None else by)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    if len(found.lines) <= 10:
        ax.legend(frameon=False)
