"""Space × time: a graph whose nodes are places at times, and the graph of the times alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import LARGEST, Array, as_floats
from coterie.problem.ids import Pairs, as_ids


def product_graph(
    space: EmpiricalGraph, time: EmpiricalGraph, strength: tuple[float, float] = (1.0, 1.0)
) -> EmpiricalGraph:
    """Join every place to its neighbours at the same time, and to itself at neighbouring times.

    Parameters
    ----------
    space : EmpiricalGraph
        The places, V of them.
    time : EmpiricalGraph
        The times, T of them; see :func:`time_graph`.
    strength : tuple of two floats, default=(1.0, 1.0)
        What weights of edges in space, and of those in time, are multiplied by. With λ, these are a λ for each.

    Returns
    -------
    EmpiricalGraph
        V·T nodes, called (place, time); place i at time t has the number t·V + i.

    Raises
    ------
    ValueError
        If a strength is not positive and finite.

    Examples
    --------
    >>> import coterie as ct
    >>> space = ct.EmpiricalGraph.from_edges([(0, 1)], ids=["Oulu", "Kemi"])
    >>> graph = ct.product_graph(space, ct.time_graph([2023, 2024, 2025]), strength=(1.0, 0.5))
    >>> graph, graph.names[3]
    (EmpiricalGraph(6 nodes, 7 edges), ('Kemi', 2024))
    """
    for name, kappa in zip(("space", "time"), strength, strict=True):
        _check_positive(kappa, f"the strength in {name}")
    V, T = space.n_nodes, time.n_nodes
    slices = V * np.arange(T)[:, None, None] + space.edges
    stays = V * time.edges[:, None, :] + np.arange(V)[:, None]
    edges = np.concatenate([slices.reshape(-1, 2), stays.reshape(-1, 2)])
    weights = np.concatenate([np.tile(strength[0] * space.weights, T), np.repeat(strength[1] * time.weights, V)])
    order = np.argsort(edges[:, 0] * np.int64(V * T) + edges[:, 1])
    edges, weights = edges[order], weights[order]
    edges.flags.writeable = weights.flags.writeable = False
    return EmpiricalGraph(V * T, edges, weights, Pairs(space.names, time.names))


def time_graph(times: Any, period: float | None = None) -> EmpiricalGraph:
    """Join times to the next, more loosely across longer gaps.

    Parameters
    ----------
    times : sequence
        Numbers, dates or text, in any order, and as often as they are in a table. Text is in alphabetical order, as
        "2025-07" is, and all its gaps are alike.
    period : float, default=None
        Joins the last to the first, as many units after it as are left of the period: 12 for months 1 to 12, 24 for
        hours of the day. For numbers only.

    Returns
    -------
    EmpiricalGraph
        Its nodes are the different times, in ascending order. An edge across a gap d has the weight s/d, with s the
        median of the gaps: usual gaps count 1, and one that is twice as long counts half.

    Raises
    ------
    ValueError
        If there are no times, some cannot be compared, or the period is too short for them.

    Examples
    --------
    >>> import coterie as ct
    >>> ct.time_graph([2020, 2021, 2022, 2024]).weights.tolist()
    [1.0, 1.0, 0.5]
    >>> ct.time_graph(range(1, 13), period=12).n_edges
    12
    """
    ids = _ascending(times)
    T = len(ids)
    edges = np.stack([np.arange(T - 1), np.arange(1, T)], axis=1)
    gaps = _gaps(ids)
    if period is not None:
        left = _left(ids, period)
        if T > 2:
            edges, gaps = np.concatenate([edges, [[0, T - 1]]]), np.append(gaps, left)
    weights = np.median(gaps) / gaps if len(gaps) else gaps
    return EmpiricalGraph.from_edges(edges, weights, n_nodes=T, ids=ids)


def _ascending(times: Any) -> list[Hashable]:
    """The different times in ascending order."""
    different = list(dict.fromkeys(as_ids(times, "times")))
    if not different:
        raise ValueError("there are no times")
    absent = next((t for t in different if t is None or t != t), different)
    if absent is not different:
        raise ValueError(f"one of the times is {absent!r}; leave out rows without a time")
    try:
        return sorted(different)  # type: ignore[type-var]
    except TypeError:
        raise ValueError(
            f"times must be all numbers, all dates or all text, got {different[0]!r} among others"
        ) from None


def _gaps(ids: Sequence[Any]) -> Array:
    """How far each time is from the one before, in units of its own; text: 1."""
    if isinstance(ids[0], str):
        return np.ones(len(ids) - 1)
    steps = np.array([after - before for before, after in pairwise(ids)])
    if steps.dtype.kind == "m":
        return steps.astype(np.int64).astype(np.float64)
    if steps.dtype == object:  # differences of dates
        return np.array([step.total_seconds() for step in steps])
    return as_floats(steps, "differences of times")


def _left(ids: Sequence[Any], period: float) -> float:
    """What is left of the period after the last time."""
    _check_positive(period, "period")
    if not isinstance(ids[0], int | float):
        raise ValueError(f"a period needs times that are numbers, such as months 1 to 12; got {ids[0]!r}")
    left = float(ids[0] + period - ids[-1])
    if left <= 0:
        raise ValueError(f"times from {ids[0]!r} to {ids[-1]!r} do not fit into a period of {period:g}")
    return left


def _check_positive(value: Any, name: str) -> None:
    if not isinstance(value, Real) or not 0 < float(value) <= LARGEST:
        raise ValueError(f"{name} must be a positive and finite number, got {value!r}")
