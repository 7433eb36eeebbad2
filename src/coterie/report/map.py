"""The network, coloured by cluster or by one coefficient: on a map where nodes have coordinates, else laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.report.coefficients import MOST_COLUMNS, most_varied
from coterie.report.colours import CATEGORIES, SEQUENTIAL
from coterie.report.drawn import DrawnNetwork, neighbours
from coterie.report.interactive import INK, PAPER, SOFT, figure, markup, packed, plotly
from coterie.report.layout import layout
from coterie.report.network import drawn_edges
from coterie.report.notes import Coordinates
from coterie.report.words import plural, short, some

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

VECTOR_UP_TO = 1500  # nodes drawn as SVG; beyond, WebGL
WEIGHTS_SHOWN, NEIGHBOURS_SHOWN = 12, 6
OTHERS = "#8a8f98"
SYMBOLS = ("circle", "square", "x")  # without labels, labelled, undetermined


class Channel(NamedTuple):
    """One number for each drawn node, and how to colour it: `legend` names categories, None a continuous scale."""

    name: str
    values: Array
    legend: list[tuple[str, str]] | None


def places(drawn: DrawnNetwork, coordinates: Coordinates | None) -> Array:
    """Where to draw each node."""
    return layout(drawn.graph) if coordinates is None else drawn.mean_of(coordinates.values)


def cluster_channel(drawn: DrawnNetwork) -> Channel:
    """A colour for each of the largest clusters, one for all the smaller, one for what no label reaches."""
    sizes = np.bincount(drawn.cluster, drawn.n_nodes)
    sizes[drawn.cluster[drawn.undetermined]] = 0
    largest = [int(k) for k in np.argsort(-sizes, kind="stable")[: len(CATEGORIES)] if sizes[k] > 0]
    category = np.full(len(sizes), len(largest))
    category[largest] = np.arange(len(largest))
    values = np.where(drawn.undetermined, len(largest) + 1, category[drawn.cluster])
    legend = [(f"cluster {k} ({plural(int(sizes[k]), 'node')})", CATEGORIES[p]) for p, k in enumerate(largest)]
    smaller = int((sizes > 0).sum()) - len(largest)
    legend.append((f"{plural(smaller, 'smaller cluster')}" if smaller else "", OTHERS))
    legend.append(("no label reaches it" if drawn.undetermined.any() else "", SOFT))
    return Channel("cluster", values.astype(float), legend)


def channels(drawn: DrawnNetwork, columns: list[str]) -> list[Channel]:
    """What the nodes can be coloured by: their cluster, and the coefficients that vary most."""
    shown = most_varied(drawn.w, MOST_COLUMNS)
    return [cluster_channel(drawn), *(Channel(columns[k], drawn.w[:, k], None) for k in shown)]


def kinds(drawn: DrawnNetwork) -> NDArray[np.int64]:
    """Which of SYMBOLS each drawn node has."""
    return np.where(drawn.undetermined, 2, drawn.n_labelled > 0)


def draw_map(ax: Any, model: NetworkedModel, coordinate: str | None = None) -> None:
    """Draw the network of a model on matplotlib axes, where its notes say the nodes are, else laid out.

    coordinate : the name of the coefficient that gives the colour, or "intercept"; None for the cluster.
    """
    from coterie.estimators.export import column_names
    from coterie.report.notes import Notes
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    columns, coordinates = column_names(model), Notes.of(model).coordinates
    if coordinate is not None and coordinate not in columns:
        raise ValueError(f"there is no coefficient {coordinate!r}; choose one of {', '.join(columns)}")
    drawn = DrawnNetwork.of_model(model)
    x = places(drawn, coordinates)
    for pairs, colour, alpha in zip(drawn_edges(drawn.graph, drawn.w), ("0.5", "#d55e00"), (0.35, 0.8), strict=True):
        ax.add_collection(LineCollection(list(x[pairs]), colors=colour, linewidths=0.6, alpha=alpha, zorder=1))
    channel = cluster_channel(drawn) if coordinate is None else None
    values = drawn.w[:, columns.index(coordinate)] if coordinate is not None else channel.values
    look: dict[str, Any] = {"cmap": SEQUENTIAL, "vmin": values.min(), "vmax": values.max()}
    if channel is not None:
        colours = [colour if colour != SOFT else "0.6" for _, colour in channel.legend]
        look = {"cmap": ListedColormap(colours), "vmin": -0.5, "vmax": len(colours) - 0.5}
        for name, colour in zip((name for name, _ in channel.legend), colours, strict=True):
            if name:
                ax.plot([], [], "o", color=colour, label=name)
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    size, dots = marker_sizes(drawn) ** 2, None
    for kind, marker in enumerate(("o", "s", "x")):
        at = kinds(drawn) == kind
        edge = {} if marker == "x" else {"edgecolors": "black", "linewidths": 0.3}
        dots = ax.scatter(*x[at].T, c=values[at], s=size[at], marker=marker, zorder=2, **look, **edge)
    if channel is None:
        ax.figure.colorbar(dots, ax=ax, label=coordinate)
    if coordinates is None:
        ax.set_axis_off()
        ax.set_aspect("equal")
    else:
        ax.set_xlabel(coordinates.names[0])
        ax.set_ylabel(coordinates.names[1])
        ax.set_aspect(coordinates.stretch)


def marker_sizes(drawn: DrawnNetwork) -> Array:
    """Diameters; the area of a cluster goes with its nodes."""
    base = float(np.clip(150 / np.sqrt(len(drawn.names)), 4, 15))
    if not drawn.aggregated:
        return np.full(len(drawn.names), base)
    return np.clip(base * np.sqrt(drawn.n_nodes / drawn.n_nodes.mean()), 4, 45)


def hover_texts(drawn: DrawnNetwork, columns: list[str], error: str) -> list[str]:
    """What hovering over each drawn node shows."""
    names = [markup(name) for name in drawn.names]
    shown = most_varied(drawn.w, WEIGHTS_SHOWN)
    labels, more = [markup(columns[k]) for k in shown], len(columns) - len(shown)
    texts = []
    for k, near in enumerate(neighbours(drawn.graph)):
        title = f"<b>{names[k]}</b>" if drawn.aggregated else f"<b>{names[k]}</b>  ·  cluster {drawn.cluster[k]}"
        lines = [title, plural(int(drawn.n_nodes[k]), "node")] if drawn.aggregated else [title]
        lines += [f"{label}: {short(value, 4)}" for label, value in zip(labels, drawn.w[k, shown], strict=True)]
        lines += [f"… and {plural(more, 'more coefficient')}"] if more > 0 else []
        lines.append("no label reaches it" if drawn.undetermined[k] else f"labelled rows m: {drawn.n_labelled[k]:,}")
        lines += [f"{error}: {short(drawn.error[k], 3)}"] if drawn.n_labelled[k] else []
        lines.append(f"neighbours: {some([names[q] for q in near], NEIGHBOURS_SHOWN) or 'none'}")
        texts.append("<br>".join(lines))
    return texts


def map_figure(drawn: DrawnNetwork, columns: list[str], coordinates: Coordinates | None, error: str) -> Any:
    """The picture of :func:`draw_map` for the page, without its colours, which the page takes from a channel."""
    go = plotly()
    scatter = go.Scattergl if len(drawn.names) > VECTOR_UP_TO else go.Scatter
    x = places(drawn, coordinates)
    inside, cut = drawn_edges(drawn.graph, drawn.w)
    lines = [
        _segments(scatter, x[inside], SOFT, float(np.clip(300 / max(len(inside), 1), 0.08, 0.5)), 1.0),
        _segments(scatter, x[cut], "var(--cut)", float(np.clip(3000 / max(len(cut), 1), 0.25, 0.9)), 1.3),
    ]
    marker = {
        "size": marker_sizes(drawn),
        "symbol": [SYMBOLS[kind] for kind in kinds(drawn)],
        "line": {"color": INK if len(drawn.names) <= VECTOR_UP_TO else PAPER, "width": 0.6},
        "colorbar": {"thickness": 12, "outlinewidth": 0, "len": 0.8},
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
    hidden = {"visible": False}
    horizontal, vertical = (hidden, hidden) if coordinates is None else _axes(coordinates)
    vertical = {**vertical, "scaleanchor": "x", "scaleratio": 1.0 if coordinates is None else coordinates.stretch}
    look = {"showlegend": False, "hovermode": "closest", "dragmode": "zoom", "uirevision": "stay"}
    return figure([*lines, nodes], xaxis=horizontal, yaxis=vertical, **look)


def _axes(coordinates: Coordinates) -> tuple[dict[str, Any], dict[str, Any]]:
    unit = {"ticksuffix": "°"} if coordinates.geographic else {}
    across, up = ({"title": {"text": markup(name)}, "zeroline": False, **unit} for name in coordinates.names)
    return across, up


def _segments(scatter: Any, ends: Array, colour: str, opacity: float, width: float) -> Any:
    """All edges as one line with gaps."""
    points = np.full((len(ends), 3, 2), np.nan)
    points[:, :2] = ends
    x, y = points.reshape(-1, 2).T
    return scatter(x=x, y=y, mode="lines", line={"color": colour, "width": width}, opacity=opacity, hoverinfo="skip")


def plain_channel(channel: Channel) -> dict[str, Any]:
    """A channel as the page's script reads it."""
    low, high = float(channel.values.min()), float(channel.values.max())
    scale: Any = SEQUENTIAL.capitalize()
    title = markup(channel.name)
    if channel.legend is not None:
        count, title = len(channel.legend), ""
        low, high = -0.5, count - 0.5
        colours = [colour for _, colour in channel.legend]
        scale = [[(k + end) / count, colour] for k, colour in enumerate(colours) for end in (0, 1)]
    return {
        "values": packed(channel.values),
        "colorscale": scale,
        "cmin": low,
        "cmax": high if high > low else low + 1,
        "title": title,
        "showscale": channel.legend is None,
    }
