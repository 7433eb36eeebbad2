"""The network, coloured by cluster or by one coefficient: on a map where nodes have coordinates, else laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.report.colours import SEQUENTIAL, Channel, cluster_channel, used_legend
from coterie.report.display_graph import DisplayGraph, most_varied, neighbours
from coterie.report.interactive import COLOUR_BAR, CUT, INK, PAPER, SOFT, figure, markup, plotly
from coterie.report.layout import layout
from coterie.report.network import drawn_edges
from coterie.report.notes import Coordinates, Notes
from coterie.report.text import plural, short, some

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

VECTOR_UP_TO = 1500  # nodes drawn as SVG; beyond, WebGL
OUTLINED_UP_TO = 500  # nodes with a dark outline; where they are crowded, outlines would hide the colours
MOST_EDGES = 10_000  # on the page; without a graphics card, more are slow to draw
WEIGHTS_SHOWN, NEIGHBOURS_SHOWN = 12, 6
MARGIN = 0.06  # of the extent of the nodes, around them
FOUND = {"size": 22, "symbol": "circle-open", "color": CUT, "line": {"width": 3, "color": CUT}}
SYMBOLS = ("circle", "square", "x")  # without labels, labelled, undetermined


def positions(drawn: DisplayGraph, coordinates: Coordinates | None) -> Array:
    """Where to draw each node."""
    return layout(drawn.graph) if coordinates is None else drawn.mean_of(coordinates.values)


def kinds(drawn: DisplayGraph) -> NDArray[np.int64]:
    """Which of SYMBOLS each drawn node has."""
    return np.where(drawn.undetermined, 2, drawn.n_labelled > 0)


def draw_map(ax: Any, model: NetworkedModel, coordinate: str | None = None) -> None:
    """Draw the network of a model on matplotlib axes, where its notes say the nodes are, else laid out.

    coordinate : the name of the coefficient that gives the colour, or "intercept"; None for the cluster.
    """
    from matplotlib.collections import LineCollection

    from coterie.estimators.export import column_names

    columns, coordinates = column_names(model), Notes.of(model).coordinates
    if coordinate is not None and coordinate not in columns:
        raise ValueError(f"there is no coefficient {coordinate!r}; choose one of {', '.join(columns)}")
    drawn = DisplayGraph.of_model(model)
    x = positions(drawn, coordinates)
    for pairs, colour, alpha in zip(drawn_edges(drawn.graph, drawn.w), ("0.5", "#d55e00"), (0.35, 0.8), strict=True):
        ax.add_collection(LineCollection(list(x[pairs]), colors=colour, linewidths=0.6, alpha=alpha, zorder=1))
    if coordinate is None:
        _draw_nodes(ax, drawn, x, cluster_channel(drawn))
    else:
        _draw_nodes(ax, drawn, x, Channel(coordinate, drawn.w[:, columns.index(coordinate)], []))
    ax.set_aspect("equal" if coordinates is None else coordinates.stretch)
    if coordinates is None:
        ax.set_axis_off()
    else:
        ax.set_xlabel(coordinates.names[0])
        ax.set_ylabel(coordinates.names[1])


def _draw_nodes(ax: Any, drawn: DisplayGraph, x: Array, channel: Channel) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    colours = [colour for _, colour in channel.legend]
    low, high = (-0.5, len(colours) - 0.5) if colours else (channel.values.min(), channel.values.max())
    scale = ScalarMappable(Normalize(low, high), ListedColormap(colours) if colours else SEQUENTIAL)
    for kind, marker in enumerate(("o", "s", "x")):
        at = kinds(drawn) == kind
        look: dict[str, Any] = {} if marker == "x" else {"edgecolors": "black", "linewidths": 0.3}
        shade, size = scale.to_rgba(channel.values[at]), (0.6 * marker_sizes(drawn)[at]) ** 2
        ax.scatter(*x[at].T, c=shade, s=size, marker=marker, zorder=2, **look)
    if not colours:
        ax.figure.colorbar(scale, ax=ax, label=channel.name)
        return
    for name, colour in used_legend(channel):
        ax.plot([], [], "o", color=colour, label=name or " ")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))


def marker_sizes(drawn: DisplayGraph) -> Array:
    """Diameters; the area of a cluster goes with its nodes."""
    base = float(np.clip(150 / np.sqrt(len(drawn.names)), 4, 15))
    if not drawn.aggregated:
        return np.full(len(drawn.names), base)
    return np.clip(base * np.sqrt(drawn.n_nodes / drawn.n_nodes.mean()), 4, 45)


def hover_texts(drawn: DisplayGraph, columns: list[str], error: str) -> list[str]:
    """What hovering over each drawn node shows."""
    names = [markup(name) for name in drawn.names]
    shown = most_varied(drawn.w, WEIGHTS_SHOWN)
    labels, more = [markup(columns[k]) for k in shown], len(columns) - len(shown)
    errors = ((f"{error}, held out", drawn.held_out), (f"{error}, training", drawn.error))
    texts = []
    for k, near in enumerate(neighbours(drawn.graph)):
        title = f"<b>{names[k]}</b>" if drawn.aggregated else f"<b>{names[k]}</b>  ·  cluster {drawn.cluster[k]}"
        lines = [title, plural(int(drawn.n_nodes[k]), "node")] if drawn.aggregated else [title]
        lines += [f"{label}: {short(value, 4)}" for label, value in zip(labels, drawn.w[k, shown], strict=True)]
        lines += [f"… and {plural(more, 'more coefficient')}"] if more > 0 else []
        lines += ["no label reaches it"] if drawn.undetermined[k] else _labels(int(drawn.n_labelled[k]))
        lines += [f"{name}: {short(of[k], 3)}" for name, of in errors if np.isfinite(of[k])]
        lines.append(f"neighbours: {some([names[q] for q in near], NEIGHBOURS_SHOWN) or 'none'}")
        texts.append("<br>".join(lines))
    return texts


def _labels(count: int) -> list[str]:
    """How many labelled rows there are, where that is known."""
    return [f"labelled rows m: {count:,}"] if count >= 0 else []


def map_figure(drawn: DisplayGraph, columns: list[str], coordinates: Coordinates | None, error: str) -> Any:
    """The picture of :func:`draw_map` for the page, without its colours, which the page takes from a channel."""
    go = plotly()
    scatter = go.Scattergl if len(drawn.names) > VECTOR_UP_TO else go.Scatter
    x = positions(drawn, coordinates)
    inside, cut = drawn_edges(drawn.graph, drawn.w, MOST_EDGES)
    faint = float(np.clip(len(drawn.names) / max(len(inside), 1), 0.08, 0.5))
    lines = [
        segments(scatter, x[inside], SOFT, faint, 1.0),
        segments(scatter, x[cut], CUT, float(np.clip(1500 / max(len(cut), 1), 0.4, 0.9)), 1.3),
    ]
    marker = {
        "size": marker_sizes(drawn) if drawn.aggregated else float(marker_sizes(drawn)[0]),
        "symbol": [SYMBOLS[kind] for kind in kinds(drawn)],
        "line": {"color": INK if len(drawn.names) <= OUTLINED_UP_TO else PAPER, "width": 0.6},
        "colorbar": COLOUR_BAR,
        "opacity": 1,
    }
    nodes = scatter(
        x=x[:, 0],
        y=x[:, 1],
        mode="markers",
        marker=marker,
        hovertext=hover_texts(drawn, columns, error),
        hoverinfo="text",
    )
    found = scatter(x=[], y=[], mode="markers", marker=FOUND, hoverinfo="skip")  # nodes that a reader looks for
    hidden = {"visible": False}
    horizontal, vertical = (hidden, hidden) if coordinates is None else _axes(coordinates)
    horizontal, vertical = ({**axis, **cropped(x[:, k])} for k, axis in enumerate((horizontal, vertical)))
    vertical |= {"scaleanchor": "x", "scaleratio": 1.0 if coordinates is None else coordinates.stretch}
    look = {"showlegend": False, "hovermode": "closest", "dragmode": "zoom", "uirevision": "stay"}
    look |= {"margin": {"l": 8, "r": 8, "t": 64, "b": 8}}  # room for the colour bar
    return figure([*lines, nodes, found], xaxis=horizontal, yaxis=vertical, **look)


def cropped(x: Array) -> dict[str, Any]:
    """An axis that ends where the nodes do; the picture becomes narrower, not the axis longer."""
    low, high = (float(np.nanmin(x)), float(np.nanmax(x))) if np.isfinite(x).any() else (0.0, 1.0)
    more = MARGIN * (high - low) or 1.0
    return {"range": [low - more, high + more], "constrain": "domain"}


def _axes(coordinates: Coordinates) -> tuple[dict[str, Any], dict[str, Any]]:
    unit = {"ticksuffix": "°"} if coordinates.geographic else {}
    across, up = ({"title": {"text": markup(name)}, "zeroline": False, **unit} for name in coordinates.names)
    return across, up


def segments(scatter: Any, ends: Array, colour: str, opacity: float, width: float) -> Any:
    """All edges as one line with gaps."""
    points = np.full((len(ends), 3, 2), np.nan)
    points[:, :2] = ends
    x, y = points.reshape(-1, 2).T
    return scatter(x=x, y=y, mode="lines", line={"color": colour, "width": width}, opacity=opacity, hoverinfo="skip")
