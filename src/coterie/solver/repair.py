"""Dual repair: the feasible edge flow nearest to u that leaves nothing where nothing may be left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coterie.engines.base import LARGE
from coterie.engines.ordering import are_far
from coterie.kernels import BLOCK, static_int, vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.gradients import ConjugateGradients
from coterie.kernels.interruption import time_is_up
from coterie.kernels.team import Team
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

flow, laplacian = Either("flow"), Either("laplacian")

CG_STEPS = 10
CG_ACCURACY = 0.03  # of each correction: clipping spoils more than that anyway
LAST_STEPS = 150  # of a correction that is not clipped
MOST_THREADS = 4  # each needs node sums of its own
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

    def __init__(self, problem: BoundProblem, threads: int | None = None) -> None:
        self.problem = problem
        V, n, E = problem.graph.n_nodes, problem.n_features, problem.graph.n_edges
        movable = E > 0 or problem.f.l1_box is not None
        self.needed = movable and (len(problem.M) < V or problem.f.row_space is not None)
        self.kind = problem.penalty.kind
        self.team = Team(threads, E, n, MOST_THREADS)
        self.room = vector_buffer(n)
        self.cuts, self.copies = self.team.cuts(E), np.empty((self.team.T - 1, V, n))
        self.rest, self.diagonal = np.empty((V, n)), np.empty((V, n))
        self.lower, self.upper = np.zeros((2, V, n)) if problem.f.l1_box is not None else np.empty((2, 0, n))
        if problem.f.l1_box is not None:
            self.lower[problem.M], self.upper[problem.M] = problem.f.l1_box
        self.scales = bool((self.lower <= 0).all() and (self.upper >= 0).all())
        place = np.full(V, -1)
        place[problem.M] = np.arange(len(problem.M))
        rows = problem.f.row_space
        self._seen = place, rows is None, np.empty((0, 0, 0)) if rows is None else rows

    @cached_property
    def ends(self) -> Array:
        """The edges, in small numbers where there is room for a copy."""
        edges = self.problem.graph.edges
        return edges.astype(np.uint32) if len(edges) * self.problem.n_features <= LARGE else edges

    @cached_property
    def far(self) -> tuple[int, ...]:
        """Whether neighbours lie far apart, for kernels."""
        return static_int(are_far(self.problem.graph.edges, self.problem.graph.n_nodes, self.problem.n_features))

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
            u[np.isin(self.problem.graph.edges[:, 0], self.problem.undetermined)] = 0.0

    def rounds(self, u: Array, n_rounds: int, s: Array | None = None, enough: Enough | None = None) -> bool:
        """Improve u in place; return whether anything is left to do.

        With s (V, n), the duals of a loss's box, both move, and it is N(Dᵀu + s) that is made small.
        """
        for _ in range(n_rounds):
            if time_is_up():
                return False
            self._diverge(u)
            if s is not None:
                self.rest += s
            self.keep_flat(self.rest)
            if np.abs(self.rest).max() <= CLEAN * self.problem.c.max(initial=0.0):
                return False
            self._weigh(u)
            if self._correct(u, self.keep_flat, s, enough):
                return False
        return True

    def _correct(
        self, u: Array, keep: Callable[[Array], None], s: Array | None = None, enough: Enough | None = None
    ) -> bool:
        """u ← u − SDφ and s ← s − Gφ with N (DᵀSD + G) N φ = rest; G weighs ground edges as S does edges.

        Clipped, unless a stretch of the domain that is small enough holds the result: then scaled, and True.
        """
        G = laplacian.NO_GROUND
        if s is not None:
            least = 0.5 * flow.LEAST_WEIGHT * (self.upper - self.lower)
            G = np.maximum(np.minimum(self.upper - s, s - self.lower), least)
        descent = self._descent(keep, G)
        potential, factor, complete = descent.run(CG_STEPS, CG_ACCURACY), 1.0, False
        if enough is not None and self.scales and descent.steps_to(enough.left) <= LAST_STEPS:
            complete = self._stretch(u, potential, s, G) <= enough.stretch
        if enough is not None and complete:
            potential = descent.run(2 * LAST_STEPS, enough.left)
            factor = self._stretch(u, potential, s, G)
            if factor > enough.stretch:
                factor, complete = 1.0, False
        self._each_part(lambda t, part: flow.correct(*self._moving(part, potential), factor, u[part]))
        if s is not None:
            s[:] = np.clip((s - G * potential) / factor, self.lower, self.upper)
        return complete

    def _descent(self, keep: Callable[[Array], None], G: Array) -> ConjugateGradients:
        """Conjugate gradients for N (DᵀSD + G) N φ = rest."""
        ground = [G] + [laplacian.NO_GROUND] * (self.team.T - 1)
        self._add_up(
            lambda t, part, out: laplacian.diagonal(self.ends[part], self.S[part], ground[t], out), self.diagonal
        )

        def product(x: Array, out: Array) -> None:
            self._add_up(
                lambda t, part, out: laplacian.apply(self.far, self.ends[part], self.S[part], ground[t], x, out),
                out,
            )
            keep(out)

        return ConjugateGradients(product, self.rest, self.diagonal, keep)

    def _stretch(self, u: Array, potential: Array, s: Array | None, G: Array) -> float:
        """By how much the domain of the duals would have to be stretched to hold them after this correction."""
        most = max(self._each_part(lambda t, part: flow.stretch(*self._moving(part, potential), u[part])))
        if s is not None:
            moved = s - G * potential
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(moved > 0, moved / self.upper, moved / self.lower)
            most = max(most, float(np.where(moved == 0, 0.0, ratio).max(initial=0.0)))
        return most

    def _diverge(self, u: Array) -> None:
        """rest ← Dᵀu."""
        self._add_up(lambda t, part, out: flow.divergence(self.ends[part], u[part], out), self.rest)

    def _weigh(self, u: Array) -> None:
        """S ← the slack of u, more or less."""
        c = self.problem.c
        self._each_part(lambda t, part: flow.slack_weights(self.kind, c[part], u[part], self.S[part]))

    def _moving(self, part: slice, potential: Array) -> tuple[Any, ...]:
        c, S = self.problem.c[part], self.S[part]
        return static_int(min(potential.shape[1], BLOCK)), self.kind, self.far, self.ends[part], c, S, potential

    def _each_part(self, work: Callable[[int, slice], Any]) -> list[Any]:
        """Do work(t, edges) on one part of the edges per thread."""
        return self.team.each(self.cuts, lambda t, first, last: work(t, slice(first, last)))

    def _add_up(self, work: Callable[[int, slice, Array], None], out: Array) -> None:
        """out ← the sum of what work(t, edges, out) makes of every part of the edges."""
        outs = [out, *self.copies]
        self._each_part(lambda t, part: work(t, part, outs[t]))
        for other in self.copies:
            out += other
