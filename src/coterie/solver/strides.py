"""In which order the λ of a path are solved, and where each solve starts.

From the smallest λ up: there a solve is over soon, as what a node learns from others comes from nearby, and what is
fused by then mostly stays so. Duals that are feasible at one λ are feasible at every larger one.

The least objective P(λ) is a minimum of functions that are affine in λ, so it is concave: between two λ it lies above
the chord. Duals show it: where u′ and u″ prove bounds at λ′ and λ″, (1 − t)u′ + tu″ is feasible at (1 − t)λ′ + tλ″ and
proves at least the mean of the bounds. And under total variation the weights of squared error move along straight
lines, from one change of clusters to the next. So between two solutions their means are a start that is nearly
optimal, and often proven to be before the first iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses
from coterie.problem.reuse import reused
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.balance import scales
from coterie.solver.solution import Solution

COSTS = 0.1  # of the gap that is asked for, which making weights of clusters equal may cost at a start
STRIDE = 8  # steps from one λ that is solved from the last one to the next, at most: measured, decision 35
WIDEST = 2.0  # the larger of two λ over the smaller: means of others far apart are not the models of the λ in between


def in_strides(lams: Sequence[float]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The numbers of descending λ, from the last one up, each after those that it starts from: the one a stride
    before, or two around it.
    """
    last = len(lams) - 1
    if len(lams):
        yield last, ()
    while last > 0:
        after = last - 1
        while after > max(last - STRIDE, 0) and lams[after - 1] <= WIDEST * lams[last]:
            after -= 1
        yield after, (last,)
        yield from _halves(after, last)
        last = after


def _halves(first: int, last: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    middle = (first + last) // 2
    if middle > first:
        yield middle, (first, last)
        yield from _halves(middle, last)
        yield from _halves(first, middle)


def start_at(
    problem: BoundProblem, near: Sequence[tuple[float, Solution]], first: Solution | None, tol: float
) -> Solution | None:
    """The solution nearby, at a smaller λ, where its duals are feasible as they are, or one model for all, if that is
    better; or a mean of two, linear in λ, of which no iterations are expected; `first` without any, or where λ was zero
    and edges have said nothing.
    """
    if not near or near[-1][0] == 0:
        return first
    lam, (high, one), (low, other) = problem.lam, near[0], near[-1]
    if high == low:
        return replace(one, w=_fused(problem, one.w))
    t = (lam - low) / (high - low)
    w, u = ((1 - t) * getattr(other, name) + t * getattr(one, name) for name in ("w", "u"))
    return replace(other, w=_snapped(problem, w, u, COSTS * tol), u=u, n_iter=0)


def balance_of(problem: BoundProblem, two: Sequence[Solution]) -> float | None:
    """The balance ω of steps (`balance.py`) that suits the way from one solution to the other, or part of it.

    Weights and duals travel equally far, in the metric of the iteration, with
    ω² = Σ 2‖Δu_e‖²/s_e / Σ d_i ‖Δw_i‖². None where one of them does not move, or where only one solution is known.
    """
    if len(two) < 2 or problem.lam == 0 or problem.graph.n_edges == 0:
        return None
    graph, (one, other) = problem.graph, two
    s, d = reused(scales, graph, graph.weights)
    du, dw = one.u - other.u, one.w - other.w
    dual = 2 * float(np.einsum("ek,ek,e->", du, du, 1 / s))
    primal = float(np.einsum("ik,ik,i->", dw, dw, d))
    return float(np.sqrt(dual / primal)) if primal > 0 and dual > 0 else None


def _fused(problem: BoundProblem, w: Array) -> Array:
    """One model for each component if that is as good as w, which it is from the largest useful λ on."""
    fused, objective = reused(_one_each, problem.f, problem.graph.components, problem.M)
    return fused if objective <= problem.objective(w) else w


def _one_each(f: LocalLosses, component: NDArray[np.int64], M: NDArray[np.int64]) -> tuple[Array, float]:
    """One model for each component, and what that costs at any λ: nothing varies."""
    fused = f.pooled(component[M], int(component.max()) + 1)[0][component]
    return fused, float(f.exact(fused[M]).sum())


def _snapped(problem: BoundProblem, w: Array, u: Array, tol: float) -> Array:
    """Weights that are equal in the clusters that duals show, unless that costs more than `tol` of the objective.

    Duals that had to be repaired have been scaled, so that none is at its bound: they show one cluster.
    """
    if not problem.sees_all:
        return _fused(problem, w)
    clusters = DualClusters.shown_by(problem, u)
    if clusters is None:
        return w
    equal, objective = clusters.average(w), problem.objective(w)
    return equal if problem.objective(equal) - objective <= tol * abs(objective) else w
