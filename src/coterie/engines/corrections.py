"""The operations of dual repair on arrays: what is left of Dᵀu where nothing may be left, and flows that remove it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from coterie.engines.base import LARGE
from coterie.engines.ordering import are_far
from coterie.kernels import BLOCK, static_int, vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.gradients import ConjugateGradients
from coterie.kernels.reference import flow as plain_flow
from coterie.kernels.team import Team
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

flow, laplacian, unseen = Either("flow"), Either("laplacian"), Either("unseen")

MOST_THREADS = 4  # each needs node sums of its own


class Corrections:
    """Corrections −S D N φ of duals, (N Dᵀ S D N) φ = N Dᵀ u, with more weight S on edges that have slack.

    N projects each node's vector onto the directions in which its loss is flat: everything at an unlabelled node,
    null(X_i) at a node with m_i < n. A term alpha|w_k| of a loss is one more edge, from the node to a *ground* of
    weight zero, with a dual s_k in [−alpha, alpha] (or another box) and a weight G.
    """

    def __init__(self, problem: BoundProblem, threads: int | None = None) -> None:
        self.problem = problem
        V, n, E, box = problem.graph.n_nodes, problem.n_features, problem.graph.n_edges, problem.f.l1_box
        self.needs_repair = (E > 0 or box is not None) and not problem.sees_all
        self.largest_strength = float(problem.c.max(initial=0.0))
        self.kind = problem.penalty.kind
        self.domain = plain_flow if problem.penalty.kernel is None else flow  # what knows the domain of g*
        self.team = Team(threads, E, n, MOST_THREADS)
        self.cuts, self.copies = self.team.cuts(E), np.empty((self.team.T - 1, V, n))
        self.rest, self.diagonal = np.empty((V, n)), np.empty((V, n))
        self.lower, self.upper = np.zeros((2, V, n)) if box is not None else np.empty((2, 0, n))
        if box is not None:
            self.lower[problem.M], self.upper[problem.M] = box
        self.scales = bool((self.lower <= 0).all() and (self.upper >= 0).all())

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

    @property
    def _seen(self) -> tuple[Array, Array | None]:
        """The labelled nodes, and orthonormal rows that span what each of them sees; None: everything."""
        return self.problem.M, self.problem.f.row_space

    def keep_flat(self, x: Array) -> None:
        """x ← Nx."""
        nodes, rows = self._seen
        if rows is None:
            x[nodes] = 0.0
        else:
            unseen.leave(vector_buffer(self.problem.n_features), nodes, rows, x, x)

    def clip(self, u: Array) -> None:
        self.domain.into_domain(self.kind, self.problem.c, u)
        if len(self.problem.undetermined):
            u[np.isin(self.problem.graph.edges[:, 0], self.problem.undetermined)] = 0.0

    def residual(self, u: Array, s: Array | None) -> float:
        self._add_up(lambda t, part, out: flow.divergence(self.ends[part], u[part], out), self.rest)
        if s is not None:
            self.rest += s
        self.keep_flat(self.rest)
        return float(np.abs(self.rest).max())

    def weigh(self, u: Array) -> None:
        c = self.problem.c
        self._each_part(lambda t, part: self.domain.slack_weights(self.kind, c[part], u[part], self.S[part]))

    def descent(self, s: Array | None) -> ConjugateGradients:
        """Conjugate gradients for (DᵀSD + G) φ = rest where no data see φ; G weighs ground edges as S does edges."""
        self.G = laplacian.NO_GROUND
        if s is not None:
            self.G = self._room(s)
        ground = [self.G] + [laplacian.NO_GROUND] * (self.team.T - 1)
        self._add_up(
            lambda t, part, out: laplacian.diagonal(self.ends[part], self.S[part], ground[t], out), self.diagonal
        )

        def product(x: Array, out: Array) -> None:
            self._add_up(
                lambda t, part, out: laplacian.apply(self.far, self.ends[part], self.S[part], ground[t], x, out),
                out,
            )

        return self._gradients(product)

    def _gradients(self, product: Callable[[Array, Array], None]) -> ConjugateGradients:
        return ConjugateGradients(product, self.rest, self.diagonal, self._seen)

    def _room(self, s: Array) -> Array:
        """How far s is from the ends of its domain; from zero, where weights have bounds and it has no ends."""
        width, room = self.upper - self.lower, np.minimum(self.upper - s, s - self.lower)
        room = np.where(np.isinf(room), np.abs(s), room)
        least = 0.5 * flow.LEAST_WEIGHT * np.where(np.isinf(width), 2 * self.largest_strength, width)
        return np.maximum(room, least)

    def stretch(self, u: Array, s: Array | None, descent: ConjugateGradients) -> float:
        """How far duals leave their domain; ∞ where s crosses an end at zero, into which nothing can be scaled back."""
        most = max(self._each_part(lambda t, part: self.domain.stretch(*self._moving(part, descent.x), u[part])))
        return most if s is None else max(most, beyond(s - self.G * descent.x, self.lower, self.upper))

    def correct(self, u: Array, s: Array | None, descent: ConjugateGradients, factor: float) -> None:
        self._each_part(lambda t, part: self.domain.correct(*self._moving(part, descent.x), factor, u[part]))
        if s is not None:
            s[:] = np.clip((s - self.G * descent.x) / factor, self.lower, self.upper)

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


def beyond(s: Array, lower: Array, upper: Array) -> float:
    """How many times the largest of these duals is as far from zero as its domain reaches."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.where(s > 0, s / upper, s / lower))
    return float(np.where(s == 0, 0.0, ratio).max(initial=0.0))
