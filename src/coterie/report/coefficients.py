"""The models of the clusters, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from coterie.problem.arrays import Array
from coterie.report.colours import DIVERGING
from coterie.report.display_graph import MOST_COLUMNS, by_size, most_varied
from coterie.report.interactive import COLOUR_BAR, figure, markup, plotly
from coterie.report.text import labels_known, plural, short

if TYPE_CHECKING:
    from coterie.estimators.base import NetworkedModel

MOST_ROWS = 400
ROWS_NAMED, CELLS_WRITTEN = 40, 250


@dataclass(frozen=True, eq=False)
class ClusterTable:
    """The coefficients of the largest clusters, in the columns that vary most.

    Attributes
    ----------
    clusters, sizes, n_labelled : arrays of shape (rows,)
        The number of each cluster in ``clusters_``, largest first, how many nodes it has and how many are labelled
        (−1: that is not known).
    columns : list of str
    w : array of shape (rows, columns)
    left_out : str
        A sentence about clusters and columns that are not in the table; empty where all are.
    """

    clusters: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_labelled: NDArray[np.int64]
    columns: list[str]
    w: Array
    left_out: str

    @classmethod
    def of(cls, model: NetworkedModel) -> ClusterTable:
        from coterie.estimators.export import column_names

        order, sizes = by_size(model)
        rows, columns = order[:MOST_ROWS], most_varied(model.weights_, MOST_COLUMNS)
        w = model.weights_[np.unique(model.clusters_, return_index=True)[1][rows]][:, columns]
        labelled = np.bincount(model.clusters_[model.n_labelled_ > 0], minlength=len(sizes))
        labelled = labelled if labels_known(model) else np.full(len(sizes), -1)
        names, said = column_names(model), []
        if len(rows) < len(order):
            said.append(f"the {len(rows)} largest of {plural(len(order), 'cluster')}")
        if len(columns) < len(names):
            said.append(f"the {len(columns)} of {plural(len(names), 'coefficient')} that vary most")
        text = f"Shown: {' and '.join(said)}." if said else ""
        return cls(rows, sizes[rows], labelled[rows], [names[k] for k in columns], w, text)

    @property
    def relative(self) -> Array:
        """Each column divided by its largest absolute value."""
        return self.w / np.maximum(np.abs(self.w).max(axis=0), np.finfo(float).tiny)

    @property
    def named(self) -> bool:
        """Whether there is room for the names of the rows."""
        return len(self.clusters) <= ROWS_NAMED

    @property
    def row_names(self) -> list[str]:
        """The number of each cluster, and its size in brackets."""
        return [f"{k} ({size:,})" for k, size in zip(self.clusters, self.sizes, strict=True)]

    @property
    def row_title(self) -> str:
        """What the rows are, as the title of an axis."""
        return "cluster (nodes)" if self.named else "clusters, the largest at the top"

    @property
    def written(self) -> bool:
        """Whether there is room for the numbers in the cells."""
        return self.w.size <= CELLS_WRITTEN and self.w.shape[1] <= 12


def draw_coefficients(ax: Any, model: NetworkedModel) -> None:
    """Draw the coefficients of every cluster as a heat map on matplotlib axes, each column relative to its largest."""
    from matplotlib.colors import LinearSegmentedColormap

    table = ClusterTable.of(model)
    scale = LinearSegmentedColormap.from_list("balance", DIVERGING)
    image = ax.imshow(table.relative, cmap=scale, vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    ax.set_xticks(range(len(table.columns)), table.columns, rotation=30 if len(table.columns) > 6 else 0)
    if table.named:
        ax.set_yticks(range(len(table.clusters)), table.row_names)
    else:
        ax.set_yticks([])
    ax.set_ylabel(table.row_title)
    if table.written:
        for (row, column), value in np.ndenumerate(table.w):
            colour = "white" if abs(table.relative[row, column]) > 0.6 else "black"
            ax.text(column, row, short(value, 3), ha="center", va="center", color=colour, fontsize=8)
    ax.figure.colorbar(image, ax=ax, label="relative to the largest of the column")


def coefficients_figure(table: ClusterTable) -> Any:
    """The picture of :func:`draw_coefficients` for the page."""
    columns = [markup(name) for name in table.columns]
    hover = [
        [f"cluster {row}<br>{column}: {short(value, 4)}" for column, value in zip(columns, values, strict=True)]
        for row, values in zip(table.row_names, table.w, strict=True)
    ]
    steps = np.linspace(0, 1, len(DIVERGING))
    heat = plotly().Heatmap(
        z=table.relative,
        zmin=-1,
        zmax=1,
        colorscale=[[step, colour] for step, colour in zip(steps, DIVERGING, strict=True)],
        colorbar=COLOUR_BAR,
        hovertext=hover,
        hoverinfo="text",
        text=[[short(value, 3) for value in values] for values in table.w] if table.written else None,
        texttemplate="%{text}" if table.written else None,
        xgap=1,
        ygap=1 if table.named else 0,
    )
    plain = {"showgrid": False, "ticks": "", "showline": False}
    x = {"tickvals": list(range(len(columns))), "ticktext": columns, **plain}
    y = {"tickvals": list(range(len(table.clusters))), "ticktext": table.row_names, **plain}
    y |= {"title": {"text": table.row_title}, "autorange": "reversed", "showticklabels": table.named}
    return figure([heat], xaxis=x, yaxis=y, height=int(np.clip(26 * len(table.clusters) + 80, 200, 560)))
