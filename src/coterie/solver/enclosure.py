"""Where a minimiser provably lies, and what an imperfect dual point costs there.

Let q_i ≤ L_i be quadratics with Hessians H_i, centres ŵ_i and floors, and Δ = level − Σ floors, where `level`
is any objective value reached. For a minimiser w*,

    Σ ½ (w*_i − ŵ_i)ᵀ H_i (w*_i − ŵ_i) ≤ Δ    and    g(Dw*) ≤ Δ.

* The second says that nodes of a component are within R of each other in every coordinate.
* Hence one v near them all has ‖v − v̂‖_H ≤ √(2Δ) + R √(n Σ λ_max(H_i)) with H = Σ H_i and v̂ the pooled
  minimiser; along directions that no node of the component sees, w* can be shifted at no cost until v = v̂.
* The first alone bounds the weights of a labelled node whose H_i has full rank, and, where all have, all of
  them together: Σ⟨r_i, w*_i − ŵ_i⟩ ≥ −√(2Δ Σ r_iᵀH_i⁻¹r_i).
* Unlabelled nodes can be clipped to the hull of the labelled ones at no cost: differences only shrink.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import flow
from coterie.problem import Problem
from coterie.problem.arrays import Array
from coterie.problem.losses.base import by_node, dot, sum_by_group
from coterie.problem.losses.quadratic import Quadratics

SMALL = 1e-10  # eigenvalues below this are computed again, row by row, where nothing cancels
FLAT = 1e-24  # … and a direction with less curvature than that has none
ROUNDING = 64 * np.finfo(float).eps  # relative error of the sums behind a pooled minimiser
MARGIN = 1e-9  # boxes are wider than computed by this part, for rounding


class Enclosure:
    """Bounds on the minimisers of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.component = problem.graph.components
        self.C = int(self.component.max()) + 1
        self._pooled: tuple[Quadratics, Array, Array, Array, Array] | None = None

    def charge(self, rest: Array, level: float) -> float | None:
        """Return a lower bound on Σ_i ⟨rest_i, w*_i⟩, or None when the loss gives no quadratic bound."""
        q = self.problem.f.minorant(level)
        if q is None:
            return None
        low, high = self._box(q, level)
        terms = charge_terms(rest, low, high)
        M = self.problem.M
        joint, labelled = self._joint_charge(q, rest[M], level), float(terms[M].sum())
        terms[M] = 0.0
        return float(terms.sum()) + (labelled if joint is None else max(labelled, joint))

    def box(self, level: float) -> tuple[Array, Array] | None:
        """Return corners (V, n) of a box that holds a minimiser, or None when the loss gives no quadratic bound."""
        q = self.problem.f.minorant(level)
        return None if q is None else self._box(q, level)

    def reach(self, level: float) -> float:
        """Return the largest |weight| of a labelled node of any w whose objective is at most `level`.

        Infinite where the data of a node's component leave some direction open, or the loss gives no quadratic bound.
        """
        M = self.problem.M
        if not len(M):
            return 0.0
        q = self.problem.f.minorant(level) if np.isfinite(level) else None
        if q is None:
            return np.inf
        excess = _excess(q, level)
        centre, reach = self._around_pooled(q, excess)
        groups = self.component[M]
        H = sum_by_group(q.H, groups, self.C)
        rank = np.einsum("ckl,clk->c", self._pooled_inverse(q, groups)[0], H)
        open_ended = rank < self.problem.n_features - 0.5
        furthest = (np.abs(centre) + reach * (1 + MARGIN) + MARGIN * np.abs(centre))[groups]
        furthest[open_ended[groups]] = np.inf
        own = _around_own(q, excess)
        if own is not None:
            furthest = np.minimum(furthest, np.abs(q.centre) + own)
        return float(furthest.max())

    def _box(self, q: Quadratics, level: float) -> tuple[Array, Array]:
        problem, component = self.problem, self.component
        excess = _excess(q, level)
        centre, reach = self._around_pooled(q, excess)
        reach = reach * (1 + MARGIN) + MARGIN * np.abs(centre)
        low, high = (centre - reach)[component], (centre + reach)[component]
        own = _around_own(q, excess)
        if own is not None:
            M = problem.M
            low[M] = np.maximum(low[M], q.centre - own)
            high[M] = np.minimum(high[M], q.centre + own)
            self._clip_unlabelled(low, high)
        low[problem.undetermined] = high[problem.undetermined] = 0.0
        return low, high

    def _joint_charge(self, q: Quadratics, rest: Array, level: float) -> float | None:
        if q.V.shape[1] < q.V.shape[2] or not (q.h > 0).all():
            return None
        spread = float((by_node(q.V, rest) ** 2 / q.h).sum())
        return float(dot(rest, q.centre).sum() - np.sqrt(2 * _excess(q, level) * spread))

    def _around_pooled(self, q: Quadratics, excess: float) -> tuple[Array, Array]:
        """Centre and half-width (C, n) of a box for all nodes of each component."""
        if self._pooled is None or self._pooled[0] is not q:
            groups = self.component[self.problem.M]
            inverse, variance = self._pooled_inverse(q, groups)
            centre = by_node(inverse, sum_by_group(q.b, groups, self.C))
            doubt = by_node(np.abs(inverse), sum_by_group(np.abs(q.b), groups, self.C)) * ROUNDING
            largest = sum_by_group(q.h.max(axis=1, initial=0.0), groups, self.C)
            self._pooled = q, centre, doubt, np.sqrt(variance), np.sqrt(self.problem.n_features * largest)
        _, centre, doubt, spread, stretch = self._pooled
        weakest, longest = self._edges_of_components
        with np.errstate(divide="ignore", invalid="ignore"):  # λ = 0: nothing holds neighbours together
            R = np.where(longest > 0, self.problem.penalty.spread(excess, weakest, longest), 0.0)
            distance = np.sqrt(2 * excess) + np.where(R > 0, R * stretch, 0.0)
            reach = np.where(spread > 0, distance[:, None] * spread, 0.0) + R[:, None] + doubt
        return centre, reach

    def _pooled_inverse(self, q: Quadratics, groups: NDArray[np.int64]) -> tuple[Array, Array]:
        """(Σ H_i)⁻¹ of each component, zero along directions that none of its nodes sees, and its diagonal.

        In the diagonal, eigenvalues that are hard to tell are halved, to be safe.
        """
        H = sum_by_group(q.H, groups, self.C)
        diagonal = np.einsum("ckk->ck", H)
        unit = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
        values, vectors = np.linalg.eigh(H * unit[:, :, None] * unit[:, None, :])
        vectors = vectors * unit[:, :, None]
        for c, j in np.argwhere(values < SMALL):
            members = groups == c
            along = np.matmul(q.V[members], vectors[c, :, j])
            values[c, j] = float((q.h[members] * along**2).sum())
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > FLAT)
        safe = np.where(values < SMALL, 2 * inverse, inverse)
        diagonal = np.einsum("ckj,cj->ck", vectors**2, safe)
        return np.matmul(vectors * inverse[:, None, :], vectors.transpose(0, 2, 1)), diagonal

    @cached_property
    def _edges_of_components(self) -> tuple[Array, Array]:
        """The smallest strength in each component, and a bound on the length of its paths."""
        weakest = np.full(self.C, np.inf)
        np.minimum.at(weakest, self.component[self.problem.graph.edges[:, 0]], self.problem.c)
        return weakest, np.bincount(self.component, minlength=self.C) - 1.0

    @cached_property
    def _labelled_by_component(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Labelled nodes sorted by component, where each component begins, and which components those are."""
        M = self.problem.M
        order = M[np.argsort(self.component[M], kind="stable")]
        present, begins = np.unique(self.component[order], return_index=True)
        return order, begins, present

    def _clip_unlabelled(self, low: Array, high: Array) -> None:
        """Give unlabelled nodes the hull of the labelled nodes of their component."""
        if len(self.problem.M) in (0, self.problem.graph.n_nodes):
            return
        order, begins, present = self._labelled_by_component
        hull_low, hull_high = np.zeros((2, self.C, low.shape[1]))
        hull_low[present] = np.minimum.reduceat(low[order], begins)
        hull_high[present] = np.maximum.reduceat(high[order], begins)
        free = np.ones(len(low), dtype=bool)
        free[self.problem.M] = False
        low[free], high[free] = hull_low[self.component[free]], hull_high[self.component[free]]


def charge_terms(rest: Array, low: Array, high: Array) -> Array:
    """min rest · w over low ≤ w ≤ high, entry by entry."""
    terms = np.empty_like(rest)
    flow.least(rest, low, high, terms)
    return terms


def _excess(q: Quadratics, level: float) -> float:
    return max(level - float(q.floor.sum()), 0.0) * (1 + MARGIN) + 1e-15 * abs(level)


def _around_own(q: Quadratics, excess: float) -> Array | None:
    """Half-width (|M|, n) of a box around each labelled node's own minimiser; infinite without full rank."""
    if q.V.shape[1] < q.V.shape[2]:
        return None
    full = np.asarray((q.h > 0).all(axis=1))
    if not full.any():
        return None
    variance = np.einsum("irk,ir->ik", q.V**2, 1.0 / np.where(q.h > 0, q.h, 1.0))
    own = np.sqrt(2 * excess * variance) * (1 + MARGIN) + MARGIN * np.abs(q.centre)
    return np.where(full[:, None], own, np.inf)
