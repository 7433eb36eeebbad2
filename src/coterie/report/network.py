"""A picture of the network, coloured by the weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import Array
from coterie.report.layout import layout

MOST_EDGES = 20_000  # drawn; of more, a random part
CUT = 1e-3  # an edge is a cut when its weights differ by more than this part of the largest difference


def draw_network(
    ax: Any, graph: EmpiricalGraph, w: Array, labelled: NDArray[np.int64] | None = None, seed: int = 0
) -> None:
    """Draw a graph on matplotlib axes, its nodes coloured by their weights.

    Parameters
    ----------
    ax : matplotlib Axes
    graph : EmpiricalGraph
    w : array of shape (V, n)
        With several coordinates, the colour is the one direction in which weights differ most.
    labelled : array of int, optional
        Nodes to mark as labelled.
    seed : int
        For the layout.
    """
    from matplotlib.colors import Normalize

    x = layout(graph, seed)
    tone, share = principal_tone(w)
    _draw_edges(ax, graph, x, w, seed)
    marked = np.zeros(graph.n_nodes, dtype=bool)
    if labelled is not None:
        marked[labelled] = True
    size = float(np.clip(9000 / graph.n_nodes, 4, 90))
    norm = Normalize(tone.min(), tone.max() if np.ptp(tone) > 0 else tone.min() + 1)
    look = {"cmap": "cividis", "norm": norm, "zorder": 3}
    dots = ax.scatter(*x[~marked].T, c=tone[~marked], s=size, edgecolors="white", linewidths=0.3, **look)
    ax.scatter(*x[marked].T, c=tone[marked], s=1.4 * size, marker="s", edgecolors="black", linewidths=0.8, **look)
    bar = ax.figure.colorbar(dots, ax=ax, shrink=0.8)
    bar.set_label(f"weights, along the direction in which they differ most\n({share:.0%} of their variance)")
    ax.plot([], [], "o", color="0.6", label="unlabelled")
    ax.plot([], [], "s", color="0.6", markeredgecolor="black", label="labelled")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False)
    ax.set_title(f"{graph.n_nodes} nodes, {graph.n_edges} edges, {int(marked.sum())} nodes labelled")
    ax.set_aspect("equal")
    ax.set_axis_off()


def principal_tone(w: Array) -> tuple[Array, float]:
    """One number per node, along the first principal direction of the weights, and its share of their variance."""
    centre = w.mean(axis=0)
    _, s, Vt = np.linalg.svd(w - centre, full_matrices=False)
    total = float((s**2).sum())
    direction = Vt[0] * np.sign(Vt[0][np.argmax(np.abs(Vt[0]))])
    return np.asarray((w - centre) @ direction), float(s[0] ** 2) / total if total > 0 else 1.0


def drawn_edges(
    graph: EmpiricalGraph, w: Array, most: int = MOST_EDGES, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges to draw, those across which weights differ apart; of more than `most`, a random part.

    Where weights differ across most edges, as with squared variation, none is set apart.
    """
    edges = graph.edges
    if len(edges) > most:
        edges = edges[np.sort(np.random.default_rng(seed).choice(len(edges), most, replace=False))]
    jump = np.abs(w[edges[:, 0]] - w[edges[:, 1]]).max(axis=1, initial=0.0)
    cut = jump > CUT * max(float(np.ptp(w, axis=0).max()), np.finfo(float).tiny)
    if 2 * cut.sum() > len(cut) > 2:
        cut[:] = False
    return edges[~cut], edges[cut]


def _draw_edges(ax: Any, graph: EmpiricalGraph, x: Array, w: Array, seed: int) -> None:
    from matplotlib.collections import LineCollection

    inside, cut = drawn_edges(graph, w, seed=seed)
    faint = float(np.clip(400 / max(len(inside) + len(cut), 1), 0.03, 0.5))
    ax.add_collection(LineCollection(list(x[inside]), colors="0.35", linewidths=0.5, alpha=faint, zorder=1))
    ax.add_collection(LineCollection(list(x[cut]), colors="#d55e00", linewidths=0.9, alpha=0.8, zorder=2))
    if len(cut):
        ax.plot([], [], color="#d55e00", linewidth=0.9, label="edge across which the weights differ")
