"""For which kind of row an interval is: what had labels in the fit, of its node, its place and its time.

- "rows": its node had.
- "nodes": its node had none. Of places at times: a gap, as its place had labels at another time, and its time, or a
  later one, at another place.
- "places": its place had none at any time.
- "times": its time comes after the last that had labels, in the graph or after it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.estimators.fold import Over
from coterie.estimators.space_time import goes_round, places_of, unknown_to
from coterie.estimators.tables import take_groups
from coterie.problem import Problem
from coterie.problem.ids import as_ids, written

KINDS = ("rows", "nodes", "places", "times")
BOTH = "blocks"
"""New places at times to come, which are of no kind that can be calibrated by."""

SERVED = {"rows": ("rows",), **{kind: ("rows", "nodes", kind) for kind in KINDS[1:]}}
"""The kinds of rows for which residuals of each kind are not known to be too small."""

SEEN = {
    "nodes": 'node {} had labels in the fit; by="nodes" is for those that had none, by="rows" for others',
    "places": 'place {} had labels in the fit; by="places" is for those that had none at any time',
    "times": 'time {} is not after the last that had labels in the fit; by="times" is for those to come',
}


def check_by(model: Any, by: Over) -> None:
    """Refuse what a model cannot be calibrated by."""
    kinds = KINDS[:2] if places_of(model.graph_) is None else KINDS
    if by not in ("auto", *kinds):
        known = ", ".join(f'"{one}"' for one in ("auto", *kinds[:-1]))
        more = "; places and times are of models with graph=(space, time)" if by in KINDS else ""
        raise ValueError(f'by must be {known} or "{kinds[-1]}", got {by!r}{more}')
    if by == "times" and goes_round(model.graph_):
        raise ValueError('by="times": times go round, so that none comes next; use "rows", "nodes" or "places"')


def most_folds(problem: Problem, by: str) -> int:
    """How many folds the labels of a problem can be held out in."""
    rows, V = problem.data.labelled, places_of(problem.graph)
    if by == "rows":
        return max(int(rows.m.sum()), 2)
    if by == "nodes" or V is None:
        return max(len(rows.M), 2)
    return max(len(np.unique(rows.M % V)) if by == "places" else len(np.unique(rows.M // V)) - 1, 2)


def kinds_of(model: Any, X: Any, groups: Any, nodes: NDArray[np.int64]) -> NDArray[np.object_]:
    """The kind of each row, whose node is given: where its time is not in the graph, that of the last time."""
    m = np.append(model.n_labelled_, 0)  # the last is any node that is not in the graph
    kinds = np.where(m[nodes] > 0, "rows", "nodes").astype(object)
    if (V := places_of(model.graph_)) is None:
        return kinds
    new = (m[:-1].reshape(-1, V).sum(axis=0) == 0)[nodes % V]
    late = np.zeros(len(nodes), dtype=bool)
    if not goes_round(model.graph_):
        late = (nodes // V > _last(model, V)) | unknown_to(model.graph_, ids_of(model, X, groups))
    kinds[late], kinds[new], kinds[new & late] = "times", "places", BOTH
    return kinds


def ids_of(model: Any, X: Any, groups: Any) -> list[Any]:
    """The ids of nodes that rows come with; of a model of one node, none."""
    ids = take_groups(X, model.groups_column_ if groups is None else groups)[1]
    return [] if ids is None else as_ids(ids)


def _last(model: Any, V: Any) -> int:
    """The number of the last time with labels."""
    return int(np.flatnonzero(model.n_labelled_)[-1]) // V


def units_of(model: Any, held: str, nodes: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Numbers of what is held out as a whole and drawn alike, so that one row of each counts; None: each row counts."""
    if held == "places":
        return nodes % places_of(model.graph_)  # type: ignore[operator]
    return nodes if held == "nodes" else None


def refuse_seen(model: Any, held: str, nodes: NDArray[np.int64], kinds: NDArray[np.object_]) -> None:
    """Refuse rows to calibrate with of what had labels in the fit, where it is for what had none."""
    if held == "rows":
        return
    seen = kinds == "rows" if held == "nodes" else (kinds != held) & (kinds != BOTH)
    if seen.any():
        name: Any = model.graph_.names[nodes[seen][0]]
        raise ValueError(SEEN[held].format(written(name if held == "nodes" else name[held == "times"])))


def warn_of_others(model: Any, by: str, nodes: NDArray[np.int64], kinds: NDArray[np.object_]) -> None:
    """Warn where intervals are asked for rows of another kind than those that were calibrated by."""
    for kind in sorted(set(kinds) - set(SERVED[by])):
        first, names = int(nodes[kinds == kind][0]), model.graph_.names
        name: Any = names[first] if first < len(names) else None
        if kind == "nodes":
            what = f"{'a node that is not in the graph' if name is None else f'node {name!r}'} has no labels"
        elif kind == "places":
            what = f"place {written(name[0])} has no labels at any time"
        else:
            last: Any = names[_last(model, places_of(model.graph_)) * places_of(model.graph_)]  # type: ignore[operator]
            where = "" if kind == "times" else f", at place {written(name[0])}, which has none"
            what = f"there are rows of times after {written(last[1])}, the last with labels{where}"
        use = "nothing can be calibrated for both" if kind == BOTH else f'use calibrate(by="{kind}")'
        known = by == "rows" and kind == "nodes"
        of, are = ("on rows of nodes that have", "are") if known else (f"by {by}", "may be")
        warnings.warn(
            f"{what}, but intervals were calibrated {of}: they {are} too narrow for that; {use}",
            UserWarning,
            stacklevel=3,
        )
