"""Colours that people with any colour vision can tell apart, and what nodes are coloured by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.problem.arrays import Array
from coterie.report.display_graph import MOST_COLUMNS, DisplayGraph, contracted, most_varied, neighbours
from coterie.report.interactive import packed
from coterie.report.text import plural

# Okabe and Ito's eight; black is left for text, and yellow is the last resort.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000")
CATEGORIES = (*COLOURS[:-1], "#f0e442")

# Perceptually uniform: viridis, and cmocean's balance without its darkest ends.
SEQUENTIAL = "viridis"
DIVERGING = (
    "#0b66bd",
    "#4590b9",
    "#8eb5c2",
    "#d2d8db",
    "#eeeae7",
    "#e6d2cc",
    "#d59d89",
    "#c46548",
    "#ac2b24",
)
HELD_OUT_ERROR, TRAINING_ERROR, LABELLED_ROWS = "error on held-out labels", "training error", "labelled rows"
OWN, UNREACHED = "#8a8f98", "#b9bdc4"
SCALE = [[k / 5, f"var(--scale-{k})"] for k in range(6)]  # viridis without the end that the background hides


class Channel(NamedTuple):
    """One number for each drawn node; with a legend (name, colour) it counts categories, without it is continuous."""

    name: str
    values: Array
    legend: list[tuple[str, str]]


def cluster_channel(drawn: DisplayGraph) -> Channel:
    """A colour for every cluster, not those of its neighbours; grey for nodes that share their model with none."""
    numbers, place = np.unique(drawn.cluster, return_inverse=True)
    sizes = np.bincount(place, drawn.n_nodes)
    sizes[place[drawn.undetermined]] = 0
    colour = np.full(len(numbers), len(CATEGORIES))
    shared = [k for k in np.argsort(-sizes, kind="stable") if sizes[k] > 1]
    near, used = neighbours(contracted(drawn.graph, place, len(numbers))), np.zeros(len(CATEGORIES))
    for k in shared:
        taken = np.bincount(colour[near[k]], minlength=len(CATEGORIES))[: len(CATEGORIES)]
        colour[k] = np.lexsort((used, taken))[0]
        used[colour[k]] += 1
    values = np.where(drawn.undetermined, len(CATEGORIES) + 1, colour[place])
    names = [f"cluster {numbers[k]} ({plural(int(sizes[k]), 'node')})" for k in shared]
    if len(shared) > len(CATEGORIES):
        text = f"{plural(len(shared), 'cluster')}; neighbouring ones have different colours"
        names = [""] * (len(CATEGORIES) - 1) + [text]
    names += [""] * (len(CATEGORIES) - len(names)) + ["a node with a model of its own", "no label reaches it"]
    return Channel("cluster", values.astype(float), list(zip(names, (*CATEGORIES, OWN, UNREACHED), strict=True)))


def used_legend(channel: Channel) -> list[tuple[str, str]]:
    """The categories that occur."""
    return [entry for k, entry in enumerate(channel.legend) if k in channel.values]


def channels(drawn: DisplayGraph, columns: list[str]) -> list[Channel]:
    """What the nodes can be coloured by: their cluster, errors and rows, and the coefficients that vary most."""
    rows = np.where(drawn.n_labelled >= 0, drawn.n_labelled, np.nan)
    facts = ((HELD_OUT_ERROR, drawn.held_out), (TRAINING_ERROR, drawn.error), (LABELLED_ROWS, rows))
    known = [Channel(name, values, []) for name, values in facts if np.isfinite(values).any()]
    shown = most_varied(drawn.w, MOST_COLUMNS)
    return [cluster_channel(drawn), *known, *(Channel(columns[k], drawn.w[:, k], []) for k in shown)]


def plain_channel(channel: Channel) -> dict[str, Any]:
    """A channel as the page's script reads it."""
    low, high = float(np.nanmin(channel.values)), float(np.nanmax(channel.values))
    scale = SCALE
    if channel.legend:
        count = len(channel.legend)
        low, high = -0.5, count - 0.5
        colours = [colour for _, colour in channel.legend]
        scale = [[(k + end) / count, colour] for k, colour in enumerate(colours) for end in (0, 1)]
    return {
        "values": packed(channel.values),
        "colorscale": scale,
        "cmin": low,
        "cmax": high if high > low else low + 1,
        "showscale": not channel.legend,
    }
