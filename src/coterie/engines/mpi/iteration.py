"""Iterations of the NumPy engine and of the compiled one, on the part of a rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coterie.engines.base import Mode, Travel
from coterie.engines.mpi.part import Part
from coterie.engines.numba import Factors, NumbaEngine
from coterie.engines.numpy import NumpyEngine
from coterie.engines.ordering import Ordering
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array


class NumpyPart(NumpyEngine):
    """Every rank tells its neighbours ŵ of its boundary; sums are over own nodes and counted edges."""

    def __init__(self, part: Part) -> None:
        self.part = part

    def restart(self) -> Travel:
        self.part.cut(self.u_hat)
        return super().restart()

    def point(self) -> tuple[Array, Array]:
        w, u = super().point()
        self.part.cut(u)
        return w, u

    def _told(self, w_hat: Array) -> Array:
        self.part.halo(w_hat)
        return w_hat

    def _over_nodes(self, terms: Array) -> float:
        return self.part.crew.sum(float(terms[: self.part.own].sum()))

    def _over_edges(self, terms: Array) -> float:
        return self.part.crew.sum(float(terms[: self.part.counted].sum()))


class NumbaPart(NumbaEngine):
    """The compiled kernels, boundary nodes first: their x is on its way while other nodes and inner edges are updated.

    Kernels find x of a halo node where they find that of any other. Its w is needed for residuals alone, and told then.
    """

    alone = False

    def __init__(self, part: Part) -> None:
        super().__init__(threads=1)
        self.part = part

    def restart(self) -> Travel:
        self.part.cut(self.u if self.u_hat is None else self.u_hat)
        return super().restart()

    def point(self) -> tuple[Array, Array]:
        w, u = super().point()
        self.part.halo(w)
        self.part.cut(u)
        return w, u

    def _ordering(self, problem: BoundProblem) -> Ordering:
        return Ordering.as_given(problem.graph)

    def _sums(self, *numbers: float) -> tuple[float, ...]:
        return self.part.crew.sums(*numbers)

    def _share_out(self, V: int, n: int) -> None:
        super()._share_out(V, n)
        self._take(0, self.part.own)

    def _take(self, first: int, last: int) -> None:
        """Let node passes be about these nodes."""
        self.ranges.node_cuts, self.ranges.node_parts = [first, last], [[(0, first, last, [])]]

    def _node_pass(self, factors: Factors, mode: Mode, move: bool = True) -> None:
        self.mode, x = mode, self.xs[0, :, 0]
        if not move:
            self.part.halo(self.w)
        if self.quadratic or mode is Mode.DUAL:
            self._take(0, self.part.boundary)
            super()._node_pass(factors, mode, move)
            self.part.halo.start(x)
            self._take(self.part.boundary, self.part.own)
            super()._node_pass(factors, mode, move)
            self._take(0, self.part.own)
        else:  # all primal updates are one call
            super()._node_pass(factors, mode, move)
            self.part.halo.start(x)

    def _each_edge_range(self, work: Callable[..., Any]) -> list[Any]:
        """Inner edges, then cut ones, when x of the halo has come; what a peer counts is left out of the results."""
        part, E = self.part, self.part.problem.graph.n_edges
        done = [work(0, 0, part.inner)] if part.inner else []
        part.halo.finish(self.xs[0, :, 0])
        if self.mode is Mode.DUAL:
            self.w[part.own :] = self.xs[0, part.own :, 0]
        if part.inner < part.counted:
            done.append(work(0, part.inner, part.counted))
        if part.counted < E:
            work(0, part.counted, E)
        return done

    def setup(self, problem: BoundProblem, w: Array, u: Array) -> None:
        self.mode = Mode.RELAXED
        super().setup(problem, w, u)
