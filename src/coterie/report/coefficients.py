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
    w, effects : arrays of shape (rows, columns)
        Coefficients; and what ⟨x, w⟩ changes by, in units of the target, when a column moves by its spread (of the
        intercept: what it is at an average row, less the mean or median of the target, where that is a number).
    left_out : str
        A sentence about clusters and columns that are not in the table; empty where all are.
    """

    clusters: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_labelled: NDArray[np.int64]
    columns: list[str]
    w: Array
    effects: Array
    left_out: str

    @classmethod
    def of(cls, model: NetworkedModel) -> ClusterTable:
        from coterie.estimators.export import column_names

        order, sizes = by_size(model)
        rows, columns = order[:MOST_ROWS], most_varied(model.weights_, MOST_COLUMNS)
        first = np.unique(model.clusters_, return_index=True)[1][rows]
        w, effects = (
            model.weights_[first][:, columns],
            (model.scaling_.y_spread * model._weights_and_groups()[0])[first][:, columns],
        )
        labelled = np.bincount(model.clusters_[model.n_labelled_ > 0], minlength=len(sizes))
        labelled = labelled if labels_known(model) else np.full(len(sizes), -1)
        names, said = column_names(model), []
        if len(rows) < len(order):
            said.append(f"the {len(rows)} largest of {plural(len(order), 'cluster')}")
        if len(columns) < len(names):
            said.append(f"the {len(columns)} of {plural(len(names), 'coefficient')} that vary most")
        text = f"Shown: {' and '.join(said)}." if said else ""
        return cls(rows, sizes[rows], labelled[rows], [names[k] for k in columns], w, effects, text)

    @property
    def largest(self) -> float:
        """The largest effect, where colours end: one scale for all columns."""
        return max(float(np.abs(self.effects).max(initial=0.0)), np.finfo(float).tiny)

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
        return self.named and self.w.size <= CELLS_WRITTEN and self.w.shape[1] <= 12


def draw_coefficients(ax: Any, model: NetworkedModel) -> None:
    """Draw the coefficients of every cluster as a heat map on matplotlib axes, coloured by coefficient × spread."""
    from matplotlib.colors import LinearSegmentedColormap

    table = ClusterTable.of(model)
    scale = LinearSegmentedColormap.from_list("balance", DIVERGING)
    ends = {"vmin": -table.largest, "vmax": table.largest}
    image = ax.imshow(table.effects, cmap=scale, **ends, aspect="auto", interpolation="nearest")
    ax.set_xticks(range(len(table.columns)), table.columns, rotation=30 if len(table.columns) > 6 else 0)
    if table.named:
        ax.set_yticks(range(len(table.clusters)), table.row_names)
    else:
        ax.set_yticks([])
    ax.set_ylabel(table.row_title)
    if table.written:
        for (row, column), value in np.ndenumerate(table.w):
            colour = "white" if abs(table.effects[row, column]) > 0.6 * table.largest else "black"
            ax.text(column, row, short(value, 3), ha="center", va="center", color=colour, fontsize=8)
    ax.figure.colorbar(image, ax=ax, label="coefficient × spread of its column")


def coefficients_figure(table: ClusterTable) -> Any:
    """The picture of :func:`draw_coefficients` for the page."""
    columns = [markup(name) for name in table.columns]
    hover = [
        [
            f"cluster {row}<br>{column}: {short(value, 4)}<br>× spread of its column: {short(effect, 3)}"
            for column, value, effect in zip(columns, values, effects, strict=True)
        ]
        for row, values, effects in zip(table.row_names, table.w, table.effects, strict=True)
    ]
    steps = np.linspace(0, 1, len(DIVERGING))
    heat = plotly().Heatmap(
        z=table.effects,
        zmin=-table.largest,
        zmax=table.largest,
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
