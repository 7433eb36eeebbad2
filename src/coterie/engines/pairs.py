"""Dual ascent that solves every edge exactly, one matching after the other.

With one strongly convex quadratic at each node, h_i/2 (w − ŵ_i)², the best dual of an edge, given all others, is
u_e + (x_i − x_j)/(1/h_i + 1/h_j), clipped, where x = ŵ − h⁻¹Dᵀu are the weights that go with u. Edges of a matching
have no node in common and do not notice each other. A few matchings are all edges, and with x kept up to date each of
them sees what the ones before have done: steps are not divided by degrees, and iterations a third (decision 21).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Engine, Mode, Travel
from coterie.engines.ordering import Ordering
from coterie.kernels import pairs
from coterie.kernels.flow import divergence
from coterie.kernels.interruption import check
from coterie.kernels.team import Team
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class PairsEngine(Engine):
    """An engine for Mode.PAIRS alone, which needs no steps."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        graph, q = problem.graph, problem.f.quadratic
        assert q is not None
        order = Ordering.of(graph, 1)
        matching = pairs.matchings(order.ends, graph.n_nodes)
        self.order = order.regrouped(np.argsort(matching, kind="stable"))
        ends = [0, *np.cumsum(np.bincount(matching)).tolist()]
        self.team = Team(self.threads, graph.n_edges // (len(ends) - 1), 1)
        self.edge_cuts = [begin + self.team.cuts(end - begin) for begin, end in pairwise(ends)]
        self.node_cuts = self.team.cuts(graph.n_nodes)
        self.centre, self.ease = self.order.nodes_in(q.centre[:, 0]), self.order.nodes_in(1 / q.h[:, 0])
        i, j = self.order.ends.T
        sigma = 1 / (self.ease[i] + self.ease[j])
        self.strength = np.stack([self.order.edges_in(problem.c), sigma], axis=1)
        if (self.strength == self.strength[:1]).all():
            self.strength = self.strength[:1].copy()
        self.u0 = self.order.edges_in(u)[:, 0].copy()
        self.restart()

    def prover(self, problem: BoundProblem) -> ArrayProver:
        return ArrayProver(problem, self.threads)

    def for_pairs(self) -> PairsEngine:
        return self

    def set_steps(self, tau: Array, sigma: Array) -> None:
        """Steps are exact."""

    def advance(self, n_iter: int, mode: Mode) -> float:
        for _ in range(n_iter):
            momentum = self.k / (self.k + 3)
            self.k += 1
            total = self._pass(momentum)
            check()
        return float(np.sqrt(total))

    def restart(self) -> Travel:
        """Go on without momentum, and without the rounding of all updates of x so far."""
        self.u, self.k = self.u0.copy(), 0
        flow = np.empty((len(self.centre), 1))
        divergence(self.order.ends, self.u[:, None], flow)
        self.x = self.centre - self.ease * flow[:, 0]
        self.x0 = self.x.copy()
        return Travel(0.0, 0.0)

    def point(self) -> tuple[Array, Array]:
        return self.order.nodes_out(self.x0[:, None]), self.order.edges_out(self.u0[:, None].copy())

    def _pass(self, momentum: float) -> float:
        """All matchings, one after the other."""

        def in_pairs(_: int, first: int, last: int) -> float:
            part = slice(first, last)
            strength = self.strength if len(self.strength) == 1 else self.strength[part]
            edges = self.order.ends[part], strength, self.ease, self.x, self.u[part], self.u0[part]
            return pairs.pair_pass(*edges, momentum)

        def go_on(_: int, first: int, last: int) -> None:
            pairs.go_on(self.x[first:last], self.x0[first:last], momentum)

        total = sum(sum(self.team.each(cuts, in_pairs)) for cuts in self.edge_cuts)
        self.team.each(self.node_cuts, go_on)
        return float(total)
