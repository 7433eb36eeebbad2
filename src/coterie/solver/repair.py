"""Dual repair: the feasible edge flow nearest to u that leaves nothing where nothing may be left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coterie.kernels import flow, register
from coterie.kernels.conjugate import ConjugateGradients
from coterie.problem import Problem
from coterie.problem.arrays import Array

CG_STEPS = 10
ACCURACY = 0.03  # of each correction: clipping spoils more than that anyway
LAST_STEPS = 150  # of a correction that is not clipped
CLEAN = 4e-16  # of the largest strength: a rest that small is rounding


@dataclass(frozen=True)
class Enough:
    """When to end: the part of the present rest that may be left, and by how much the domain may be stretched."""

    left: float
    stretch: float


class Repair:
    """Moves duals to where N Dᵀu is small.

    N projects each node's vector onto the directions in which its loss is flat: everything at an
    unlabelled node, null(X_i) at a node with m_i < n. Each round moves u by the least-squares
    correction −S D N φ, (N Dᵀ S D N) φ = N Dᵀ u, with more weight S on edges that have slack, found by a few
    conjugate-gradient steps, and clips the result. What is left shrinks by a steady factor, about 3, a round.
    When a correction would leave the domain by very little, it is completed, and u is scaled back into the domain
    instead of being clipped: then nothing is left.

    A term alpha|w_k| of a loss is one more edge, from the node to a *ground* of weight zero, with a dual s_k in
    [−alpha, alpha] (or another box): it takes its part in every correction.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        V, n = problem.graph.n_nodes, problem.n_features
        movable = problem.graph.n_edges > 0 or problem.f.box is not None
        self.needed = movable and (len(problem.M) < V or problem.f.seen is not None)
        self.room, self.kind, self.ends = register(n), problem.penalty.kernel, problem.graph.edges
        self.rest, self.diagonal = np.empty((V, n)), np.empty((V, n))
        self.lower, self.upper = np.zeros((2, V, n)) if problem.f.box is not None else np.empty((2, 0, n))
        if problem.f.box is not None:
            self.lower[problem.M], self.upper[problem.M] = problem.f.box
        self.scales = bool((self.lower <= 0).all() and (self.upper >= 0).all())
        place = np.full(V, -1)
        place[problem.M] = np.arange(len(problem.M))
        rows = problem.f.seen
        self._seen = place, rows is None, np.empty((0, 0, 0)) if rows is None else rows

    @cached_property
    def S(self) -> Array:
        """Weights of edges in corrections, (E, n); single precision is plenty."""
        return np.zeros((self.problem.graph.n_edges, self.problem.n_features), dtype=np.float32)

    def keep_flat(self, x: Array) -> None:
        """x ← Nx."""
        flow.keep_flat(self.room, *self._seen, x)

    def into_domain(self, u: Array) -> None:
        """Move u, in place, to where g* is finite, and to zero where no label is."""
        flow.into_domain(self.kind, self.problem.c, u)
        if len(self.problem.undetermined):
            u[np.isin(self.ends[:, 0], self.problem.undetermined)] = 0.0

    def rounds(self, u: Array, n_rounds: int, s: Array | None = None, enough: Enough | None = None) -> bool:
        """Improve u in place; return whether anything is left to do.

        With s (V, n), the duals of a loss's box, both move, and it is N(Dᵀu + s) that is made small.
        """
        for _ in range(n_rounds):
            flow.divergence(self.ends, u, self.rest)
            if s is not None:
                self.rest += s
            self.keep_flat(self.rest)
            if np.abs(self.rest).max() <= CLEAN * self.problem.c.max(initial=0.0):
                return False
            flow.slack_weights(self.kind, self.problem.c, u, self.S)
            if self._correct(u, self.keep_flat, s, enough):
                return False
        return True

    def aim(self, u: Array, w: Array, n_rounds: int) -> None:
        """Move u, in place, to where Dᵀu = −∇f(w) and u is tight on the cuts of w: there the gap is zero.

        It exists when w is optimal, and is found when w has few clusters, large and close-knit.
        """
        target = np.zeros_like(w)
        target[self.problem.M] = self.problem.f.gradient(w[self.problem.M])
        for _ in range(n_rounds):
            flow.slack_weights(self.kind, self.problem.c, u, self.S)
            flow.saturate_cuts(self.ends, self.problem.c, w, u, self.S)
            flow.divergence(self.ends, u, self.rest)
            self.rest += target
            self._correct(u, lambda x: None)

    def _correct(
        self, u: Array, keep: Callable[[Array], None], s: Array | None = None, enough: Enough | None = None
    ) -> bool:
        """u ← u − SDφ and s ← s − Gφ with N (DᵀSD + G) N φ = rest; G weighs ground edges as S does edges.

        Clipped, unless a stretch of the domain that is small enough holds the result: then scaled, and True.
        """
        G = flow.NO_GROUND
        if s is not None:
            least = 0.5 * flow.LEAST_WEIGHT * (self.upper - self.lower)
            G = np.maximum(np.minimum(self.upper - s, s - self.lower), least)
        flow.laplacian_diagonal(self.ends, self.S, G, self.diagonal)

        def laplacian(x: Array, out: Array) -> None:
            flow.laplacian(self.room, self.ends, self.S, G, x, out)
            keep(out)

        descent = ConjugateGradients(laplacian, self.rest, self.diagonal, keep)
        potential, factor = descent.run(CG_STEPS, ACCURACY), 1.0
        if enough is not None and self.scales and self._stretch(u, potential, s, G) <= enough.stretch:
            potential = descent.run(LAST_STEPS, enough.left)
            factor = self._stretch(u, potential, s, G)
            factor = factor if factor <= enough.stretch else 1.0
        flow.correct(self.kind, self.ends, self.problem.c, self.S, potential, factor, u)
        if s is not None:
            s[:] = np.clip((s - G * potential) / factor, self.lower, self.upper)
        return factor > 1

    def _stretch(self, u: Array, potential: Array, s: Array | None, G: Array) -> float:
        """By how much the domain of the duals would have to be stretched to hold them after this correction."""
        most = flow.stretch(self.kind, self.ends, self.problem.c, self.S, potential, u)
        if s is not None:
            moved = s - G * potential
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(moved > 0, moved / self.upper, moved / self.lower)
            most = max(most, float(np.where(moved == 0, 0.0, ratio).max(initial=0.0)))
        return most
