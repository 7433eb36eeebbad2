"""Interior points on a forest: a Newton method whose linear systems are solved exactly, from the leaves to the roots.

At the optimum ∇f(w) + Dᵀu = 0 and Dw = z⁺ − z⁻ with z⁺(c − u) = z⁻(c + u) = 0; z± and the slacks s± = c ∓ u are ≥ 0.
Each step solves these equations with μ in the place of 0, linearised, after a look ahead at μ = 0 (Mehrotra). With
Θ = 1/(z⁺/s⁺ + z⁻/s⁻) that comes down to (H + DᵀΘD) dw = …, in which a leaf can be eliminated at the cost of one n × n
inverse, then the next. A path or a tree takes as many steps as a point, whatever its length.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from coterie.engines.base import LARGE
from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array

flow, steps, tree = Either("flow"), Either("conjugate"), Either("tree")

MOST_STEPS = 60
NEARLY = 0.995  # of the way to the border of what is positive
SHORT = 1e-3  # a step shorter than that leads nowhere
START = 0.1  # of what the objective allows differences to be on average, where those of the start are smaller
ENOUGH = 0.3  # of the gap that is asked for may be left to the products of z and s


def applies(problem: BoundProblem) -> bool:
    """Whether the graph is a forest, the penalty ℓ1, the loss one with a Hessian, and there is room for V inverses."""
    graph, n = problem.graph, problem.n_features
    return (
        problem.lam > 0
        and 0 < graph.n_edges < graph.n_nodes
        and graph.n_edges == graph.n_nodes - (int(graph.components.max()) + 1)
        and problem.f.smooth
        and problem.penalty.exact_clusters
        and graph.n_nodes * n * n <= LARGE
    )


@dataclass(frozen=True, eq=False)
class Rooted:
    """A forest hung up at its roots: nodes in an order with parents first, the node above each and the edge to it."""

    order: NDArray[np.int64]
    parent: NDArray[np.int64]
    via: NDArray[np.int64]

    @classmethod
    def of(cls, problem: BoundProblem) -> Rooted:
        V, (i, j) = problem.graph.n_nodes, problem.graph.edges.T
        roots = np.unique(problem.graph.components, return_index=True)[1]
        above = np.concatenate([i, np.full(len(roots), V)])  # one more node, above all roots
        below = np.concatenate([j, roots])
        links = coo_array((np.ones(len(above)), (above, below)), shape=(V + 1, V + 1))
        order, parent = breadth_first_order(links, V, directed=False)
        parent, via = parent[:V].astype(np.int64), np.full(V, -1)
        child = np.where(parent[j] == i, j, i)
        via[child] = np.arange(len(i))
        return cls(order[1:].astype(np.int64), np.where(parent == V, -1, parent), via)


class Interior:
    """Steps through the interior, from any weights."""

    def __init__(self, problem: BoundProblem, w: Array) -> None:
        self.problem = problem
        self.rooted = Rooted.of(problem)
        n = problem.n_features
        self.place = np.full(problem.graph.n_nodes, -1)
        self.place[problem.M] = np.arange(len(problem.M))
        self.room, self.S = vector_buffer(n), np.empty((problem.graph.n_nodes, n, n))
        self.c = np.maximum(problem.c, np.finfo(float).tiny)[:, None]
        self.w, (i, j) = w, problem.graph.edges.T
        d = w[i] - w[j]
        usual = max(float(np.abs(d).mean()), START * problem.objective(w) / (n * float(problem.c.sum())))
        root = np.sqrt(d**2 + 4 * usual**2 + np.finfo(float).tiny)
        self.more, self.less, self.u = 0.5 * (root + d), 0.5 * (root - d), self.c * d / root
        self.work = np.inf

    @property
    def gap(self) -> float:
        """Σ z⁺s⁺ + z⁻s⁻: the gap that is left, once ∇f(w) + Dᵀu = 0. (`work` says what that rest is still worth.)"""
        return float((self.more * (self.c - self.u) + self.less * (self.c + self.u)).sum())

    def run(self, goal: float, most: int, over: Callable[[], bool]) -> int:
        """Step until the gap is nearly the goal, at most so often, and until it is over; return how often."""
        for k in range(min(most, MOST_STEPS)):
            if max(self.gap, self.work) <= ENOUGH * goal or over():
                return k
            w, u = self.w, self.u
            with np.errstate(all="ignore"):  # a step of infinite length is none
                length = self.step()
            if not length >= SHORT or not np.isfinite(self.w).all():
                self.w, self.u = w, u
                return k
        return min(most, MOST_STEPS)

    def step(self) -> float:
        """Go one step; return its length, 1 where nothing was in the way."""
        problem, (i, j) = self.problem, self.problem.graph.edges.T
        up, down = self.c - self.u, self.c + self.u
        theta = 1 / (self.more / up + self.less / down)
        M, rest = problem.M, np.empty_like(self.w)
        flow.divergence(problem.graph.edges, self.u, rest)
        rest[M] += problem.f.gradient(self.w[M])
        r = self.rooted
        tree.eliminate(self.room, r.order, r.parent, r.via, self.place, problem.f.hessian(self.w[M]), theta, self.S)
        d = self.w[i] - self.w[j]

        def solve(plus: Array, minus: Array) -> tuple[Array, ...]:
            """Steps towards z⁺s⁺ = plus and z⁻s⁻ = minus, to first order."""
            wanted = theta * (d - plus / up + minus / down)
            b, dw = np.empty_like(rest), np.empty_like(rest)
            flow.divergence(problem.graph.edges, wanted, b)
            tree.substitute(r.order, r.parent, r.via, theta, self.S, -(b + rest), dw)
            du = wanted + theta * (dw[i] - dw[j])
            return dw, du, (plus + self.more * du) / up - self.more, (minus - self.less * du) / down - self.less

        zero, gap = np.zeros_like(d), self.gap
        _, du, more, less = solve(zero, zero)
        a = self._longest(du, more, less)
        ahead = float(((self.more + a * more) * (up - a * du) + (self.less + a * less) * (down + a * du)).sum())
        target = (ahead / gap) ** 3 * gap / (2 * d.size)
        dw, du, more, less = solve(target + more * du, target - less * du)
        a = min(1.0, NEARLY * self._longest(du, more, less))
        self.work = (1 - a) * abs(steps.inner(rest, dw))
        self.w = self.w + a * dw
        self.u, self.more, self.less = self.u + a * du, self.more + a * more, self.less + a * less
        return a

    def _longest(self, du: Array, more: Array, less: Array) -> float:
        """How many times these steps can be taken before something that is positive is not; at most 1."""
        pairs = ((self.c - self.u, -du), (self.c + self.u, du), (self.more, more), (self.less, less))
        with np.errstate(divide="ignore", invalid="ignore"):
            most = max(float((-change / value).max()) for value, change in pairs)
        return min(1.0, 1 / most) if most > 0 else 1.0
