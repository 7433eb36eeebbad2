"""The picture of the README: a network whose clusters are found.

    python examples/clusters.py clusters.png

240 places in the plane, each with three rows of two features; three regions have a model of their own, and a third of
the places has no labels. Draws what each place would learn alone, and what the network learns.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection

import coterie as ct
from coterie.report.figures import new_figure, save_figure

SLOPES = np.array([2.0, 0.0, -2.0])


def main(path: str) -> None:
    """Fit and draw."""
    rng = np.random.default_rng(4)
    places = rng.uniform(0, 1, (240, 2))
    region = np.select([places[:, 0] < 0.4, places[:, 1] > 0.5], [0, 1], 2)
    nodes = np.repeat(np.arange(240), 3)
    X = rng.standard_normal((720, 2))
    y = SLOPES[region[nodes]] * X[:, 0] + X[:, 1] + 0.8 * rng.standard_normal(720)
    y[(rng.random(240) < 1 / 3)[nodes]] = np.nan
    graph = ct.knn_graph(places, k=6, metric="euclidean", weight=np.ones_like)
    chosen = ct.NetworkedLinearRegressionCV(graph, penalty="l2", n_lams=20, rule="one_se", random_state=0)
    model = chosen.fit(X, y, groups=nodes)
    alone = ct.NetworkedLinearRegression(graph, lam=0.0, fit_intercept=True).fit(X, y, groups=nodes)

    figure = new_figure(10, 4.6)
    axes = figure.subplots(1, 2)
    unlabelled = model.n_labelled_ == 0
    titles = ("Each place alone: noise, and gaps", "The network: clusters, and no gaps")
    for ax, slope, gaps, title in zip(
        axes, (alone.coef_[:, 0], model.coef_[:, 0]), (unlabelled, np.zeros(240, bool)), titles, strict=True
    ):
        _draw(ax, places, graph.edges, slope, gaps, title)
    print(f"{len(set(model.clusters_))} models, certified gap {model.gap_:.1e}")
    save_figure(figure, path)


def _draw(ax: Any, places: Any, edges: Any, slope: Any, gaps: Any, title: str) -> None:
    ax.add_collection(LineCollection(places[edges], colors="0.8", linewidths=0.6, zorder=1))
    look = {"cmap": "viridis", "vmin": -2.5, "vmax": 2.5, "s": 40, "zorder": 2, "edgecolors": "white"}
    ax.scatter(*places[~gaps].T, c=slope[~gaps], **look)
    ax.scatter(*places[gaps].T, c="white", s=30, zorder=2, edgecolors="0.5", linewidths=0.8)
    ax.set(title=title, aspect="equal")
    ax.set_axis_off()


if __name__ == "__main__":
    main(*sys.argv[1:])
