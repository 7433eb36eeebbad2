"""The λ at which so many clusters remain."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from coterie.problem import Problem, largest_useful_lam
from coterie.problem.penalties import SquaredVariation
from coterie.solver import NotConverged, Solution, solve

STEP, SMALLEST = 0.5, 1e-9  # λ falls by this factor, from the largest useful one down to this part of it
NEARBY, TRIES = 1.1, 40  # λ around a jump over k that are tried, from 1/1.1 to 1.1 times it: counts rise and fall
JUST_ABOVE = 1.01  # times the λ of a merge: at λ itself clusters have just met, and the gap decides what is seen
CLOSE, CLOSEST = 1e-3, 1e-9  # how near the λ is to the smallest, relatively; and the least that λ can differ by


def lam_of_clusters(problem: Problem, k: int, **options: Any) -> tuple[float, Solution]:
    """Return a λ a hundredth above the smallest at which k clusters remain, or that itself, and the solution there.

    λ descends from the one that leaves one model per component until there are more than k clusters; then bisection,
    in logarithms, between the last two. A hundredth above that, solves from anywhere see as many clusters, if as many
    remain. Where the number of clusters jumps over k, λ within a tenth of the jump are tried: the one that is found
    then need not be the smallest. All solves start from the last one. Clusters are those of `Solution.clusters`:
    connected nodes whose weights are equal in all coordinates.
    """
    _check(problem, k)
    bound, largest = problem.bound, largest_useful_lam(problem)
    if largest == 0:  # the same solution at any λ
        return 1.0, _all_alike(problem, k, options)

    def at(lam: float, start: Solution | None) -> tuple[Solution, int]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)
            found = solve(bound.at(lam), start=start, **options)
        return found, len(found.clusters())

    high, (solution, few) = largest, at(largest, None)  # at most k clusters
    low, many, last = 0.0, problem.graph.n_nodes, solution  # more
    while low == 0 and high > SMALLEST * largest:
        last, count = at(STEP * high, last)
        if count > k:
            low, many = STEP * high, count
        else:
            high, solution, few = STEP * high, last, count
    while low > 0 and high > low * (1 + (CLOSE if few == k else CLOSEST)):
        middle = float(np.sqrt(low * high))
        last, count = at(middle, last)
        if count > k:
            low, many = middle, count
        else:
            high, solution, few = middle, last, count
    for lam in np.geomspace(high / NEARBY, high * NEARBY, TRIES) if few != k else ():
        last, count = at(float(lam), last)
        if count == k:
            return float(lam), last
    if few != k:
        other = f"and {many} at {low:.12g}" if low > 0 else "and no more at any smaller one"
        if problem.strength is not None and not problem.strength.all():
            other += "; columns of strength 0 tell nodes apart at any λ"
        raise ValueError(f"n_clusters={k}: no λ was found that leaves so many; {few} remain at {high:.12g}, {other}")
    above, count = at(JUST_ABOVE * high, solution)
    return (JUST_ABOVE * high, above) if count == k else (high, solution)


def _all_alike(problem: Problem, k: int, options: dict[str, Any]) -> Solution:
    """The solution where any λ above zero leaves one model per component."""
    solution = solve(problem.bound.at(1.0), **options)
    if (count := len(solution.clusters())) != k:
        raise ValueError(f"n_clusters={k}: the labels tell no two nodes apart, so that any λ leaves {count}")
    return solution


def _check(problem: Problem, k: int) -> None:
    """Refuse numbers that no λ can leave."""
    if isinstance(problem.penalty, SquaredVariation):
        raise ValueError('penalty="squared" makes no two models equal; n_clusters needs "l1" or "l2"')
    V, parts = problem.graph.n_nodes, int(problem.graph.components.max()) + 1
    if not parts <= k <= V:
        what = f"the graph falls into {parts} parts, which no λ joins" if k < parts else f"there are {V} nodes"
        raise ValueError(f"n_clusters={k}: {what}")
