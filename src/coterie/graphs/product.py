"""Space × time: a graph whose nodes are places at times, and the graph of the times alone."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from coterie.graphs.times import gaps, in_order
from coterie.problem import EmpiricalGraph
from coterie.problem.arrays import LARGEST
from coterie.problem.ids import Pairs


def product_graph(space: Any, time: Any, strength: tuple[float, float] = (1.0, 1.0)) -> EmpiricalGraph:
    """Join every place to its neighbours at the same time, and to itself at neighbouring times.

    Parameters
    ----------
    space : EmpiricalGraph, or what ``EmpiricalGraph.from_any`` takes
        The places, V of them.
    time : EmpiricalGraph, or what ``EmpiricalGraph.from_any`` takes
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
    if np.shape(strength) != (2,):
        raise ValueError(f"strength has two numbers, for edges in space and in time; got {strength!r}")
    for name, kappa in zip(("space", "time"), strength, strict=True):
        _check_positive(kappa, f"the strength in {name}")
    space, time = EmpiricalGraph.from_any(space), EmpiricalGraph.from_any(time)
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
        Numbers, dates or text, in any order, and as often as they are in a table. Text that holds numbers or dates,
        such as "2025-07", "2025-Q3", "2025-W27" or "2025-07-01", counts as these. Other text must differ in digits
        alone, as "FY2024-2025" does; it is in alphabetical order, and all its gaps are alike.
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
        If there are no times, one is missing, some cannot be compared, or the period is too short for them.

    Examples
    --------
    >>> import coterie as ct
    >>> ct.time_graph([2020, 2021, 2022, 2024]).weights.tolist()
    [1.0, 1.0, 0.5]
    >>> ct.time_graph(range(1, 13), period=12).n_edges
    12
    """
    ids, said = in_order(times)
    T = len(ids)
    edges = np.stack([np.arange(T - 1), np.arange(1, T)], axis=1)
    apart = gaps(said)
    if period is not None:
        left = _left(said, period)
        if T > 2:
            edges, apart = np.concatenate([edges, [[0, T - 1]]]), np.append(apart, left)
    weights = np.median(apart) / apart if len(apart) else apart
    return EmpiricalGraph.from_edges(edges, weights, n_nodes=T, ids=ids)


def _left(times: Sequence[Any], period: float) -> float:
    """What is left of the period after the last time."""
    _check_positive(period, "period")
    if not isinstance(times[0], int | float):
        raise ValueError(f"a period needs times that are numbers, such as months 1 to 12; got {times[0]!r}")
    left = float(times[0] + period - times[-1])
    if left <= 0:
        raise ValueError(f"times from {times[0]!r} to {times[-1]!r} do not fit into a period of {period:g}")
    return left


def _check_positive(value: Any, name: str) -> None:
    if not isinstance(value, Real) or not 0 < float(value) <= LARGEST:
        raise ValueError(f"{name} must be a positive and finite number, got {value!r}")
