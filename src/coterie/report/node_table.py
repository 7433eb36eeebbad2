"""One row per node, for a table that a reader can sort, search and take away."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.report.colours import HELD_OUT_ERROR, LABELLED_ROWS, TRAINING_ERROR
from coterie.report.display_graph import MOST_COLUMNS, DisplayGraph, most_varied
from coterie.report.interactive import packed


def node_table(drawn: DisplayGraph, columns: list[str]) -> dict[str, Any]:
    """Names and columns of numbers, as the page's script reads them; nan where something is not known.

    The coefficients are those that vary most.
    """
    shown = most_varied(drawn.w, MOST_COLUMNS)
    rows = np.where(drawn.n_labelled >= 0, drawn.n_labelled, np.nan)
    facts = [
        ("cluster", drawn.cluster),
        ("nodes", drawn.n_nodes if drawn.aggregated else np.full(len(drawn.names), np.nan)),
        (LABELLED_ROWS, rows),
        (HELD_OUT_ERROR, drawn.held_out),
        (TRAINING_ERROR, drawn.error),
    ]
    known = [(name, values) for name, values in facts if np.isfinite(values).any()]
    known += [(columns[k], drawn.w[:, k]) for k in shown]
    return {
        "of": "cluster" if drawn.aggregated else "node",
        "sized": bool(drawn.aggregated),
        "names": drawn.names,
        "columns": [name for name, _ in known],
        "values": [packed(np.asarray(values, dtype=float)) for _, values in known],
    }
