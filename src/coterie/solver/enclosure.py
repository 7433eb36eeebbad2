"""A box that provably holds a minimiser.

Let q_i ≤ L_i be quadratics with Hessians H_i, centres ŵ_i and floors, and Δ = level − Σ floors, where `level`
is any objective value reached. For a minimiser w*,

    Σ ½ (w*_i − ŵ_i)ᵀ H_i (w*_i − ŵ_i) ≤ Δ    and    g(Dw*) ≤ Δ.

* The second says that nodes of a component are within R of each other in every coordinate.
* Hence one v near them all has ‖v − v̂‖_H ≤ √(2Δ) + R √(n Σ λ_max(H_i)) with H = Σ H_i and v̂ the pooled
  minimiser; along directions that no node of the component sees, w* can be shifted at no cost until v = v̂.
* The first alone bounds the weights of a labelled node whose H_i has full rank.
* Unlabelled nodes can be clipped to the hull of the labelled ones at no cost: differences only shrink.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import by_node, sum_by_group
from coterie.problem.losses.quadratic import Quadratics


def enclosure(problem: Problem, level: float) -> tuple[Array, Array] | None:
    """Return lower and upper corners, both (V, n), or None when the loss gives no quadratic bound."""
    q = problem.f.minorant(level)
    if q is None:
        return None
    M, component = problem.M, problem.graph.components
    C = int(component.max()) + 1
    excess = max(level - float(q.floor.sum()), 0.0) * (1 + 1e-9) + 1e-15 * abs(level)
    centre, reach = _around_pooled(problem, q, excess, component, C)
    low, high = centre - reach, centre + reach
    own = _around_own(q, excess)
    low_M = np.maximum(low[component[M]], q.centre - own)
    high_M = np.minimum(high[component[M]], q.centre + own)
    hull_low, hull_high = np.full_like(low, np.inf), np.full_like(high, -np.inf)
    np.minimum.at(hull_low, component[M], low_M)
    np.maximum.at(hull_high, component[M], high_M)
    lower, upper = hull_low[component], hull_high[component]
    lower[M], upper[M] = low_M, high_M
    lower[problem.undetermined] = upper[problem.undetermined] = 0.0
    return lower, upper


def _around_pooled(
    problem: Problem, q: Quadratics, excess: float, component: NDArray[np.int64], C: int
) -> tuple[Array, Array]:
    """Centre and half-width (C, n) of a box for all nodes of each component."""
    groups = component[problem.M]
    n = problem.n_features
    inverse = np.linalg.pinv(sum_by_group(q.H, groups, C), hermitian=True)
    centre = by_node(inverse, sum_by_group(q.b, groups, C))
    largest = sum_by_group(q.h.max(axis=1, initial=0.0), groups, C)
    weakest = np.full(C, np.inf)
    np.minimum.at(weakest, component[problem.graph.edges[:, 0]], problem.c)
    longest = np.bincount(component, minlength=C) - 1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # λ = 0: nothing holds neighbours together
        R = np.where(longest > 0, problem.penalty.spread(excess, weakest, longest), 0.0)
        distance = np.sqrt(2 * excess) + np.where(R > 0, R * np.sqrt(n * largest), 0.0)
        spread = np.sqrt(np.maximum(np.einsum("ckk->ck", inverse), 0.0))
        reach = np.where(spread > 0, distance[:, None] * spread, 0.0) + R[:, None]
    return centre, reach


def _around_own(q: Quadratics, excess: float) -> Array:
    """Half-width (|M|, n) of a box around each labelled node's own minimiser; infinite without full rank."""
    full = (q.V.shape[1] == q.V.shape[2]) & (q.h > 0).all(axis=1)
    safe = np.where(q.h > 0, q.h, 1.0)
    variance = np.einsum("irk,ir->ik", q.V**2, 1.0 / safe)
    return np.where(full[:, None], np.sqrt(2 * excess * variance), np.inf)
