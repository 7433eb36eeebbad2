"""Polishing: the optimum on given clusters, and the duals that prove it.

On given clusters, and with the signs of the weights across their borders, total variation is linear, ⟨force, w⟩ with
force = Dᵀ(c sign Dw): what is left is a smooth problem in one value per cluster. If clusters and signs are right, its
minimiser w is optimal, and some u with Dᵀu = −∇f(w), u_e = ±c_e across borders and |u_e| ≤ c_e inside clusters proves
it: a feasible flow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from coterie.kernels.choice import Either
from coterie.kernels.interruption import check
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import LocalLosses
from coterie.problem.losses.kinked_losses import KinkedLosses
from coterie.problem.losses.row_losses import RowLosses
from coterie.proofs.dual_clusters import DualClusters
from coterie.solver.whole.kinked_clusters import best_on
from coterie.solver.whole.spread import spread

Enough = Callable[[Array, Array], bool]
"""Whether duals prove, about, what is asked for of weights."""

flow, flows = Either("flow"), Either("route")
kernels, systems = Either("clusters"), Either("cluster_systems")

MOST = 5_000_000  # duals and numbers in Hessians, above which this is not tried
NEWTON_STEPS = 20
ROUNDS = 5  # of joining clusters
KINKED_ROUNDS, HALVES = 12, 3  # of splitting and joining, with kinks, and in how many what is left must halve
SECANTS, FEWER = 0.1, 0.3  # the part of their curvature that straight rows get, and how much of it in the next step
STEPS, CG_ACCURACY = 500, 1e-13  # of conjugate gradients, in each Newton step
LATER = 2  # steps after which the same begins where clusters have only been joined: weights are near
LONG, SHORTEST = 0.1, 0.01  # of the largest weight, a step that may lead up; and what is left of it then, at least
RIDGE = 1e-9  # of the diagonal, for directions that no data see
SETTLED = 1e-8  # a Newton step this small, relatively, is the last one needed
PHASES = 20  # of maximum flow, between two looks at the clock
SAME = 1e-12  # of the largest weight: clusters less apart are one
NUDGE = 1e-9  # of the largest weight, by which the parts of a cluster are moved apart
LEFT = 1e-3  # of the largest strength: what may be left of a flow that fits
HOPELESS = 10.0  # of the largest strength: so much is left where clusters are not right yet …
STRAIGHT_HOPELESS = 25.0  # … and where rows can be straight lines, whose attempts cost more and come later
KINKED_COSTS = 40  # iterations, about: rows with kinks make up for it, which iterations take thousands for
STRAIGHT_COSTS = 200  # the same of rows that are straight lines: later attempts have fewer rounds
FEW, MANY = 64, 50_000  # clusters up to which, and duals from which on, flows are spread before they are sent
NO_FLOW, CRUMBS = 1e-12, 1e-9  # of the largest strength: a flow that small is none; and where losses have kinks
WIDE = 0.3  # of its limit: a dual that has less left shows a border, where losses have kinks


def applies(problem: BoundProblem) -> bool:
    """Whether the problem on given clusters is a smooth one, or one of rows with kinks, and not too large."""
    duals, blocks = problem.graph.n_edges * problem.n_features, len(problem.M) * problem.n_features**2
    known = problem.f.smooth or isinstance(problem.f, KinkedLosses)
    return known and problem.penalty.exact_clusters and 0 < duals <= MOST and 0 < blocks <= MOST


def settle(
    problem: BoundProblem, partition: DualClusters, w: Array, u: Array, enough: Enough | None = None
) -> tuple[Array, DualClusters | None]:
    """Return the optimum and its clusters, from clusters that are nearly right; u, feasible, is moved to prove it.

    In turn the best weights on the clusters are found, joining those that would have to pass each other, and the flow
    that would prove them; clusters through which that does not fit are split. Without success, None for the clusters.
    """
    if isinstance(problem.f, KinkedLosses):  # they begin with clusters of their own
        return _settle_kinks(problem, w, u, enough)
    clusters = DualClusters(partition.label.copy(), partition.counts.copy())
    seen = np.zeros(w.shape, dtype=bool)
    seen[problem.M] = np.einsum("ikk->ik", problem.f.hessian(w[problem.M])) > 0
    kernels.join_unseen(problem.graph.edges, seen, w, clusters.label, clusters.counts)
    best, objective = w, np.inf
    hopeless = STRAIGHT_HOPELESS if _has_straight_rows(problem.f) else HOPELESS
    for _ in range(ROUNDS):
        moved = polish(problem, clusters, w)
        if moved is None or not (value := problem.objective(moved)) < objective:
            break
        best, objective, w = moved, value, moved.copy()
        left = aim(problem, clusters, u, w, problem.f.gradient(w[problem.M]), enough, hopeless)
        if left <= LEFT or left > hopeless:
            return best, clusters if left <= LEFT else None
    return best, None


def _settle_kinks(
    problem: BoundProblem, w: Array, u: Array, enough: Enough | None
) -> tuple[Array, DualClusters | None]:
    """The same for losses with kinks, for as long as less and less of the flow finds no way.

    Every round begins with the clusters that u shows by a wide margin: those that are too small become one again.
    """
    assert isinstance(problem.f, KinkedLosses)
    left, b = [np.inf], problem.f.last_duals.copy()
    for _ in range(KINKED_ROUNDS):
        clusters = DualClusters.shown_by(problem, u, WIDE)
        found = None if clusters is None else best_on(problem, clusters, w, u, b)
        if clusters is None or found is None:
            break
        w, slope = found
        left.append(aim(problem, clusters, u, w, slope, enough, hopeless=np.inf))
        if left[-1] <= LEFT:
            return w, clusters
        if left[-1] > 0.5 * left[max(len(left) - 1 - HALVES, 0)]:
            break
    return w, None


def polish(problem: BoundProblem, clusters: DualClusters, w: Array) -> Array | None:
    """Return the best weights on the clusters, near w; None where conjugate gradients do not find them.

    Where signs of w across borders prove wrong, because two clusters would have to pass each other, they become one.
    """
    guess = w
    for again in range(ROUNDS):
        w = clusters.average(w)
        moved = _minimise(problem, clusters, w, clusters.average(guess), LATER if again else 0)
        if moved is None:
            return None
        guess, least = moved.copy(), SAME * np.abs(moved).max()
        if not kernels.join_crossed(problem.graph.edges, w, guess, least, clusters.label, clusters.counts):
            break
    return moved


def _minimise(problem: BoundProblem, partition: DualClusters, w: Array, guess: Array, begin: int) -> Array | None:
    """The minimiser of f + ⟨force of w, ·⟩ on the clusters, by Newton's method; for squared error, in one step."""
    M, f = problem.M, problem.f
    offset = np.concatenate([[0], np.cumsum(partition.counts)])
    unknown, force = partition.label + offset[:-1], np.empty_like(w)
    at = unknown[M]
    kernels.cut_forces(problem.graph.edges, problem.c, w, force)
    pull = np.bincount(unknown.ravel(), weights=force.ravel(), minlength=offset[-1])

    def add_up(values: Array) -> Array:
        return np.bincount(at.ravel(), weights=values.ravel(), minlength=offset[-1])

    def value(w: Array) -> float:
        return float(f.value(w[M]).sum() + (force * w).sum())

    w, longest, straight = guess, np.inf, _has_straight_rows(f)
    for step in range(begin, begin + (NEWTON_STEPS if f.quadratic is None else 1)):
        H = _curvature(f, w[M], step)
        diagonal = add_up(np.einsum("ikk->ik", H))
        right = -pull - add_up(f.gradient(w[M]))
        change = systems.solve(H, at, RIDGE * diagonal, diagonal, right, pull, STEPS, CG_ACCURACY)
        if change is None or not np.isfinite(change).all():
            return None
        before, longest = longest, float(np.abs(change).max())
        if straight and longest > min(before, LONG * np.abs(w).max()):
            change *= _length(value, w, change[unknown])
        w = w + change[unknown]
        if longest <= SETTLED * np.abs(w).max() or longest > before:  # or clusters are not those of a minimum
            break
    return w


def _length(value: Callable[[Array], float], w: Array, step: Array) -> float:
    """1, ½, ¼ …: of a step, a part that does not lead up."""
    here, length = value(w), 1.0
    while length > SHORTEST and not value(w + length * step) <= here:
        length /= 2
    return length


def _curvature(f: LocalLosses, w: Array, step: int) -> Array:
    """∇²f, and less and less of the secants where rows can be straight lines: without any, steps have no end."""
    H = f.hessian(w)
    if _has_straight_rows(f) and (above := f.model(w, None)) is not None:
        H += SECANTS * FEWER**step * above.H
    return H


def _has_straight_rows(f: LocalLosses) -> bool:
    """Whether rows can be without curvature, at nodes that do not see every direction."""
    return isinstance(f, RowLosses) and f.psi.straight and not f.sees_all


def aim(
    problem: BoundProblem,
    clusters: DualClusters,
    u: Array,
    w: Array,
    slope: Array,
    enough: Enough | None = None,
    hopeless: float = HOPELESS,
) -> float:
    """Move feasible duals u, in place, to where they prove w, with these slopes of its losses, optimal.

    Return how much of the flow finds no way, in units of the largest strength; where that is hopeless, the rest is left
    undone. The part of a cluster that cannot get rid of its flow becomes a cluster, a little lower in w.
    """
    ends, c, nudge = problem.graph.edges, problem.c, NUDGE * np.abs(w).max()
    fixed, rest = np.empty(u.shape, dtype=bool), np.empty_like(w)
    flow.saturate_cuts(ends, c, w, u, fixed)
    target = np.zeros_like(w)
    target[problem.M] = slope
    large = enough is not None and clusters.total <= FEW and is_large(problem)
    if enough is not None and large and spread(problem, fixed, u, target, partial(enough, w)):
        return 0.0
    flow.divergence(ends, u, rest)
    rest += target
    if large and (left := float(np.abs(rest).sum() / c.max())) > hopeless:
        return left
    arcs, room, level = flows.arcs_of(ends, len(w)), np.empty(2 * len(u)), np.empty(len(w), dtype=np.int64)
    kinked = isinstance(problem.f, KinkedLosses)
    total, least = 0.0, (CRUMBS if kinked else NO_FLOW) * c.max()
    for k in range(w.shape[1]):
        check()
        rest_k = rest[:, k].copy()
        flows.rooms(k, c, fixed, u, room)
        if kinked:  # little has to go everywhere
            flows.sweep(k, *arcs, u, room, rest_k)
        while not flows.route(k, PHASES, *arcs, u, room, rest_k, least, level):
            check()
        left = float(np.abs(rest_k).sum() / c.max())
        total += left
        if total > hopeless:
            break
        if left > LEFT:
            clusters.counts[k] = kernels.split(level, k, clusters.label, clusters.counts[k])
            w[level >= 0, k] -= nudge
    return total


def is_large(problem: BoundProblem) -> bool:
    """Whether flows of few clusters are spread before they are sent."""
    return problem.graph.n_edges * problem.n_features >= MANY


def costs(problem: BoundProblem) -> float:
    """About how many iterations of the solver a round of settling costs."""
    if isinstance(problem.f, KinkedLosses):
        return KINKED_COSTS
    if _has_straight_rows(problem.f):
        return STRAIGHT_COSTS
    duals, blocks = problem.graph.n_edges * problem.n_features, len(problem.M) * problem.n_features**2
    newton_steps = 5 if problem.f.quadratic is None else 1
    return (60 * duals + 300 * newton_steps * blocks) / max(0.7 * duals + blocks, 1)
