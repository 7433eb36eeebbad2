"""Certificates of losses whose rows have duals with bounds: quantiles, outliers, counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coterie.engines.arrays import ArrayProver
from coterie.engines.base import Minorant
from coterie.kernels import vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.gradients import ConjugateGradients
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.row_losses import RowLosses

flow, laplacian = Either("flow"), Either("laplacian")


def array_prover(problem: BoundProblem, threads: int | None = None) -> ArrayProver:
    """What proves, of arrays of this process."""
    f = problem.f
    if isinstance(f, RowLosses) and f.psi.bounded and not f.sees_all:
        return BoundedRowsProver(problem, threads, f)
    return ArrayProver(problem, threads)


class BoundedRowsProver(ArrayProver):
    """Repair moves the duals a of rows, too: it is all of Dᵀu + Xᵀa + b that is made small, b the duals of ridge.

    A slope that rows see may still be one that they cannot have, where some of them are at their bounds. So a row is an
    edge with bounds of its own: corrections solve (DᵀSD + XᵀGX + ridge)φ = that. The duals of what losses have besides,
    s in the contract, are a, one number for each row, and then b.
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
        a, b = self.f.duals_near(-out[M], w[M])
        if self.f.ridge.any():  # G of ridge is what its duals are like
            self.ground = np.zeros_like(w)
            self.ground[M] = 2 * self.f.ridge * np.sqrt(np.mean(w[M] ** 2))
        return np.concatenate([np.clip(a, self.low, self.high), b.ravel()])

    def residual(self, u: Array, s: Array | None) -> float:
        a, b = self._parts(s)
        self._add_up(lambda t, part, out: flow.divergence(self.ends[part], u[part], out), self.rest)
        self.rest[self.problem.M] += self._by_node(a[:, None] * self.X) + b
        return float(np.abs(self.rest).max())

    def descent(self, s: Array | None) -> ConjugateGradients:
        a, _ = self._parts(s)
        room, size = np.minimum(self.high - a, a - self.low), np.where(np.isfinite(self.high), self.high, -self.low)
        self.G = np.maximum(room, flow.LEAST_WEIGHT * size)
        ground = [self.ground] + [laplacian.NO_GROUND] * (self.team.T - 1)
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

        return ConjugateGradients(product, self.rest, self.diagonal, lambda x: None)

    def stretch(self, u: Array, s: Array | None, descent: ConjugateGradients) -> float:
        a, _ = self._moved(s, descent)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(a > 0, a / self.high, a / self.low)
        return max(super().stretch(u, None, descent), float(np.where(a == 0, 0.0, np.abs(ratio)).max(initial=0.0)))

    def correct(self, u: Array, s: Array | None, descent: ConjugateGradients, factor: float) -> None:
        assert s is not None
        a, b = self._moved(s, descent)
        super().correct(u, None, descent, factor)
        s[:] = np.concatenate([np.clip(a / factor, self.low, self.high), b.ravel() / factor])

    def glance(self, w: Array, u: Array, level: float) -> float:
        return self.minorant(w, u, self.split(w, u)).value

    def minorant(self, w: Array, u: Array, s: Array | None) -> Minorant:
        if s is None:
            return super().minorant(w, u, None)
        support = self.f.design.support(*self._parts(s), w[self.problem.labelled])
        return self._added_up(w, u, None, support, self._exact_divergence(u))

    def _parts(self, s: Array | None) -> tuple[Array, Array]:
        """a (R,) and b (|M|, n)."""
        assert s is not None
        return s[: len(self.X)], s[len(self.X) :].reshape(-1, self.X.shape[1])

    def _moved(self, s: Array | None, descent: ConjugateGradients) -> tuple[Array, Array]:
        """The same after a correction, wherever that leads."""
        a, b = self._parts(s)
        if len(self.ground):
            b = b - (self.ground * descent.x)[self.problem.M]
        return a - self.G * self._margins(descent.x), b

    def _margins(self, x: Array) -> Array:
        """⟨x_r, x_i⟩ of each row."""
        return np.einsum("rk,rk->r", self.X, x[self.node])

    def _by_node(self, terms: Array) -> Array:
        """Sums over the rows of each labelled node."""
        return np.add.reduceat(terms, self.first, axis=0)
