"""Groups of nodes that strong edges hold together, inside components that weak edges hold together.

One weak edge lets the two sides of a component drift far apart, though each side may be held tightly by its own edges
and rows. So groups are made of edges above ever lower strengths, and every node is charged in the group where that
costs least: a group as a whole, or as the sum of what its parts cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from coterie.kernels.reference.exact import EPS
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

STEP = 30.0  # by which the strength falls from one level to the next
MOST_LEVELS = 16
MOST_EDGES = 100_000  # for more, looking at levels takes longer than the solve gains


@dataclass(frozen=True, eq=False)
class Level:
    """Groups of nodes joined by edges of at least this strength.

    Attributes
    ----------
    strength : float
    group : array of shape (V,)
        The number of each node's group.
    labelled : array of shape (V,)
        The same among groups with a label, or −1.
    sizes : array
        How many nodes each labelled group has, those without labels included: paths may lead over them.
    """

    strength: float
    group: NDArray[np.int64]
    labelled: NDArray[np.int64]
    sizes: NDArray[np.int64]


def levels_between(problem: BoundProblem) -> list[Level]:
    """Levels between single nodes and whole components; none where edges are of one size."""
    c = problem.c
    if problem.lam == 0 or not 0 < len(c) <= MOST_EDGES or not 0 < c.min() * STEP < c.max():
        return []
    components = int(problem.graph.components.max()) + 1
    return [level for level in levels_of(problem, c) if int(level.group.max()) + 1 > components]


def alone(problem: BoundProblem) -> Level:
    """Every node by itself."""
    return _level(problem, np.inf, np.arange(problem.graph.n_nodes), problem.graph.n_nodes)


def levels_of(problem: BoundProblem, strengths: Array) -> list[Level]:
    """Groups of nodes joined by edges of at least a strength, from strong to all that have any."""
    there = strengths[strengths > 0]
    if not there.size:
        return []
    high, low = float(there.max()), float(there.min())
    steps = np.geomspace(high, low, min(int(np.log(high / low) / np.log(STEP)), MOST_LEVELS) + 2)[1:]
    steps[-1] = low
    levels, before = [], problem.graph.n_nodes
    for strength in steps:
        i, j = problem.graph.edges[strengths >= strength].T
        shape = problem.graph.n_nodes, problem.graph.n_nodes
        n_groups, group = connected_components(coo_array((np.ones(len(i)), (i, j)), shape=shape), directed=False)
        if n_groups != before:
            levels.append(_level(problem, float(strength), group.astype(np.int64), n_groups))
        before = n_groups
    return levels


def _level(problem: BoundProblem, strength: float, group: NDArray[np.int64], n_groups: int) -> Level:
    number = np.full(n_groups, -1)
    present = np.unique(group[problem.M])
    number[present] = np.arange(len(present))
    labelled = number[group]
    return Level(strength, group, labelled, np.bincount(labelled[labelled >= 0], minlength=len(present)))


def cheapest(cost: Array, levels: list[tuple[Level, Array]], top: NDArray[np.int64], n_top: int) -> Array:
    """What the groups of `top` cost, from the costs of single nodes and of the labelled groups of each level.

    Costs are charges: lower bounds of either sign, of which the largest counts; −∞ where there is none. What rounding
    may have added is taken off at every level, as sums of both signs can be much smaller than their parts.
    """
    for level, charges in levels:
        share = np.bincount(level.group)
        whole = np.full(len(share), -np.inf)
        there = level.labelled >= 0
        whole[level.group[there]] = charges[level.labelled[there]]
        best = np.maximum(whole, _sums(cost, level.group, len(share)))
        part = (best / share)[level.group]  # a group's cost is carried by its nodes in equal parts
        cost = part - 2 * EPS * np.abs(part)
    return _sums(cost[top >= 0], top[top >= 0], n_top)


def _sums(cost: Array, group: NDArray[np.int64], n_groups: int) -> Array:
    """The sum of each group, less what rounding may have added."""
    count, size = (np.bincount(group, weights, minlength=n_groups) for weights in (None, np.abs(cost)))
    return np.bincount(group, cost, minlength=n_groups) - (count + 4) * EPS * size
