"""Certificates of losses whose rows have duals with bounds: quantiles, outliers, counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Minorant
from coterie.engines.corrections import beyond
from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.gradients import ConjugateGradients
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.kinked_losses import KinkedLosses
from coterie.problem.losses.row_losses import RowLosses

flow, laplacian = Either("flow"), Either("laplacian")


def array_prover(problem: BoundProblem, threads: int | None = None) -> ArrayProver:
    """What proves, of arrays of this process."""
    f, rows = problem.f, problem.f.smooth_part
    known = rows is f or not isinstance(rows, KinkedLosses)
    if known and isinstance(rows, RowLosses) and rows.psi.bounded and not rows.sees_all:
        return BoundedRowsProver(problem, threads, rows)
    return ArrayProver(problem, threads)


class BoundedRowsProver(ArrayProver):
    """Repair moves the duals a of rows, too: it is all of Dᵀu + Xᵀa + b that is made small, b the duals of ridge.

    A slope that rows see may still be one that they cannot have, where some of them are at their bounds. So a row is an
    edge with bounds of its own: corrections solve (DᵀSD + XᵀGX + ridge)φ = that. The duals of what losses have besides,
    s in the contract, are a, one number for each row, and then b, and then those of the grounds, where there are some.
    """

    cg_steps = 40  # of a correction: rows are no graph, and the system is worse than that of edges alone

    def __init__(self, problem: BoundProblem, threads: int | None, f: RowLosses) -> None:
        super().__init__(problem, threads)
        self.f, self.needs_repair = f, True
        self.low, self.high = f.design.limits
        self.X, self.first = f.rows.X, f.rows.starts[:-1]
        self.ground = laplacian.NO_GROUND
        self.node: NDArray[np.int64] = np.repeat(problem.M, f.rows.m)

    def split(self, w: Array, u: Array) -> Array:
        out, M = np.empty_like(w), self.problem.M
        flow.divergence(self.problem.graph.edges, u, out)
        grounds = np.zeros((len(self.lower), w.shape[1]))  # none, or one for each node
        if len(grounds):
            grounds[M] = self.problem.f.split_dual(-out[M], w[M])
            out += grounds
        a, b = self.f.duals_near(-out[M], w[M])
        if self.f.ridge.any():  # G of ridge is what its duals are like
            self.ground = np.zeros_like(w)
            self.ground[M] = 2 * self.f.ridge * np.sqrt(np.mean(w[M] ** 2))
        return np.concatenate([np.clip(a, self.low, self.high), b.ravel(), grounds.ravel()])

    def residual(self, u: Array, s: Array | None) -> float:
        a, b, grounds = self._parts(s)
        self._add_up(lambda t, part, out: flow.divergence(self.ends[part], u[part], out), self.rest)
        self.rest[self.problem.M] += self._by_node(a[:, None] * self.X) + b
        if len(grounds):
            self.rest += grounds
        return float(np.abs(self.rest).max())

    def descent(self, s: Array | None) -> ConjugateGradients:
        a, _, grounds = self._parts(s)
        room, size = np.minimum(self.high - a, a - self.low), np.where(np.isfinite(self.high), self.high, -self.low)
        self.G = np.maximum(room, flow.LEAST_WEIGHT * size)
        weights = self.ground
        if len(grounds):
            self.room = self._room(grounds)
            weights = self.room + self.ground if len(self.ground) else self.room
        ground = [weights] + [laplacian.NO_GROUND] * (self.team.T - 1)
        self._add_up(
            lambda t, part, out: laplacian.diagonal(self.ends[part], self.S[part], ground[t], out), self.diagonal
        )
        self.diagonal[self.problem.M] += self._by_node(self.G[:, None] * self.X**2)

        room, add_rows = vector_buffer(self.X.shape[1]), laplacian.add_rows

        def product(x: Array, out: Array) -> None:
            self._add_up(
                lambda t, part, out: laplacian.apply(self.far, self.ends[part], self.S[part], ground[t], x, out),
                out,
            )
            add_rows(room, self.X, self.f.rows.starts, self.problem.M, self.G, x, out)

        return ConjugateGradients(product, self.rest, self.diagonal)

    def stretch(self, u: Array, s: Array | None, descent: ConjugateGradients) -> float:
        a, _, grounds = self._moved(s, descent)
        most = max(super().stretch(u, None, descent), beyond(a, self.low, self.high))
        return max(most, beyond(grounds, self.lower, self.upper))

    def correct(self, u: Array, s: Array | None, descent: ConjugateGradients, factor: float) -> None:
        assert s is not None
        a, b, grounds = self._moved(s, descent)
        super().correct(u, None, descent, factor)
        grounds = np.clip(grounds / factor, self.lower, self.upper)
        s[:] = np.concatenate([np.clip(a / factor, self.low, self.high), b.ravel() / factor, grounds.ravel()])

    def glance(self, w: Array, u: Array, level: float) -> float:
        return self.minorant(w, u, self.split(w, u)).value

    def minorant(self, w: Array, u: Array, s: Array | None) -> Minorant:
        if s is None or s.ndim == 2:  # of grounds alone
            return super().minorant(w, u, s)
        a, b, grounds = self._parts(s)
        support, sums = self.f.design.support(a, b, w[self.problem.labelled]), self._exact_divergence(u)
        if len(grounds):
            flow.add_exactly(grounds, *sums)
        return self._added_up(w, u, grounds if len(grounds) else None, support, sums)

    def _parts(self, s: Array | None) -> tuple[Array, Array, Array]:
        """a (R,), b (|M|, n), and the duals of grounds, (V, n) or (0, n)."""
        assert s is not None
        a, rest = s[: len(self.X)], s[len(self.X) :].reshape(-1, self.X.shape[1])
        return a, rest[: len(self.first)], rest[len(self.first) :]

    def _moved(self, s: Array | None, descent: ConjugateGradients) -> tuple[Array, Array, Array]:
        """The same after a correction, wherever that leads."""
        a, b, grounds = self._parts(s)
        if len(self.ground):
            b = b - (self.ground * descent.x)[self.problem.M]
        if len(grounds):
            grounds = grounds - self.room * descent.x
        return a - self.G * self._margins(descent.x), b, grounds

    def _margins(self, x: Array) -> Array:
        """⟨x_r, x_i⟩ of each row."""
        return np.einsum("rk,rk->r", self.X, x[self.node])

    def _by_node(self, terms: Array) -> Array:
        """Sums over the rows of each labelled node."""
        return np.add.reduceat(terms, self.first, axis=0)
