"""Second-order steps for small problems that first-order steps crawl on: collinear, shifted or badly scaled columns.

Total variation is smoothed, |d| ≈ √(d² + μ²), and its optimality conditions are solved by Newton's method in w and u
together (Chan, Golub and Mulet): θu = c d with θ = √(d² + μ²), ∇f(w) + Dᵀu = 0, one `JointSystem` with K = DᵀWD + ridge
for each step. What comes out is only a better point: the certificate is computed as for any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from coterie.kernels.interruption import time_is_up
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.solver.whole.joint_system import JointSystem

STEPS = 150
LEAST_SLACK = 1e-3  # of the strength: no dual counts as closer to the border of its domain
BALANCES = 12  # corrections of the duals at the end; mostly two do
SLACK = 1e-6  # of alpha: a dual with that much of it belongs to a weight of zero
CUT = 1e-6  # of the largest weight: a difference across a cut, whose dual stays where it is
SHRINK = 0.15  # of μ, once Newton's method has settled for the last one
FURTHEST = 1e100  # a step beyond that comes from a system that is singular; its square may overflow


def newton_point(problem: BoundProblem, w: Array, accuracy: float, fixed: Array) -> tuple[Array, Array]:
    """Weights and duals close to optimal, from w; `accuracy` is the absolute gap that is asked for.

    `fixed` (V, n) marks weights that stay as they are: in directions that no row sees.
    """
    design = problem.f.design
    assert design is not None
    return _Newton(problem, design, w, fixed.ravel()).run(accuracy)


@dataclass(eq=False)
class _Newton(JointSystem):
    w: Array
    fixed: NDArray[np.bool_]

    def run(self, accuracy: float) -> tuple[Array, Array]:
        """Newton steps with ever less smoothing."""
        w = self.w.ravel().copy()
        d = self.D @ w
        mu = max(float(np.abs(d).max(initial=0.0)), float(np.abs(w).max(initial=0.0)), 1e-6)
        total = 0.0 if self._exact else float(self.c.sum())
        least = 1e-3 * accuracy / total if total > 0 else mu
        u = np.zeros_like(self.c)
        now = self._smoothed(w, mu)
        for _ in range(STEPS):
            step = self._step(w, u, mu)
            if step is None or time_is_up():
                break
            dw, du, decrement = step
            length = 1.0
            while (
                length > 1e-4 and not (then := self._smoothed(w + length * dw, mu)) <= now - 1e-4 * length * decrement
            ):
                length *= 0.5
            if length > 1e-4:
                w, now = w + length * dw, then
            u = self.inside(u + du)
            if decrement <= 0.1 * max(mu * total, accuracy) or length <= 1e-4:
                if mu <= least:
                    break
                mu = max(SHRINK * mu, 0.5 * least)
                now = self._smoothed(w, mu)
        w = self._grounded_weights(w, u)
        return w.reshape(self.w.shape), self._balanced(w, u)[self.edges].reshape(-1, self.w.shape[1])

    def _grounded_weights(self, w: Array, u: Array) -> Array:
        """w with exact zeros where the duals of alpha|w_k| have slack, unless that is worse."""
        zero, ground = w.copy(), slice(self.edges.stop, None)
        zero[self.grounded[np.abs(u[ground]) < (1 - SLACK) * self.c[ground]]] = 0.0
        before, after = (self.problem.objective(one.reshape(self.w.shape)) for one in (w, zero))
        return zero if after <= before * (1 + 1e-12) else w

    def _balanced(self, w: Array, u: Array) -> Array:
        """Duals near u with Dᵀu = −∇f(w) to the last digits, as far as their domain allows.

        Newton's method has them only to the digits that differences of weights have. What is missing flows over edges
        that have slack to the first labelled node of each component, where the loss takes what is left.
        """
        slope, _ = self.loss(w)
        component = self.problem.graph.components
        pinned = np.zeros(self.w.shape, dtype=bool)
        pinned[self.problem.M[np.unique(component[self.problem.M], return_index=True)[1]]] = True
        cut = np.abs(self.D @ w) > CUT * np.abs(w).max(initial=0.0)
        rest, least = slope + self.D.T @ u, np.inf
        for _ in range(BALANCES):
            size = np.abs(rest[~pinned.ravel()]).sum()
            if not size < 0.5 * least:
                break
            S = np.where(cut, CUT, 1.0) * self.slack(u, LEAST_SLACK)
            K = self.curvature(sparse.diags_array(S))
            potential = self._solve(K, np.zeros(len(self.design.X)), rest, pinned.ravel())
            if potential is None or not np.isfinite(potential).all():
                break
            before, u = u, self.inside(u - S * (self.D @ potential))
            rest, least = slope + self.D.T @ u, size
            if np.abs(rest[~pinned.ravel()]).sum() > size:
                return before
        return u

    @property
    def _exact(self) -> bool:
        """Whether there is nothing to smooth."""
        return self.problem.penalty.degree == 2 and not len(self.grounded)

    def _theta(self, d: Array, mu: float) -> Array:
        """√(|d|² + μ²), by row of D; for group total variation, by edge."""
        size = d * d
        if self.problem.penalty.couples:
            n = self.problem.n_features
            size[self.edges] = np.repeat(size[self.edges].reshape(-1, n).sum(axis=1), n)
        return np.sqrt(size + mu * mu)

    def _smoothed(self, w: Array, mu: float) -> float:
        """The objective with smoothed penalties."""
        d = self.D @ w
        value = float(self.design.values(w.reshape(self.w.shape)[self.problem.M]).sum())
        cost = self.c * (self._theta(d, mu) - mu)
        penalty, edges = self.problem.penalty, self.edges
        if penalty.degree == 2:
            cost[edges] = (self.c * d * d)[edges]
        elif penalty.couples:
            cost[edges] /= self.problem.n_features
        return value + float(cost.sum())

    def _step(self, w: Array, u: Array, mu: float) -> tuple[Array, Array, float] | None:
        """δw, δu and how much δw would lower a quadratic model; None where the system cannot be solved."""
        d = self.D @ w
        theta = self._theta(d, mu)
        pull, W = self.c * d / theta, self._weights(d, u, theta)
        if self.problem.penalty.degree == 2:
            pull[self.edges] = (2 * self.c * d)[self.edges]
        slope, bend = self.loss(w)
        slope = slope + self.D.T @ pull
        K = self.curvature(W, self.ridge)
        dw = self._solve(K, bend, -slope, self.fixed)
        if dw is None or not (np.abs(dw) < FURTHEST).all():
            return None
        du = W @ (self.D @ dw) + pull - u
        return (dw, du, float(-slope @ dw)) if (np.abs(du) < FURTHEST).all() else None

    def _weights(self, d: Array, u: Array, theta: Array) -> Any:
        """∂(c d/θ)/∂d, with u for c d/θ where that is better known."""
        diagonal = self.c / theta
        edges, n, penalty = self.edges, self.problem.n_features, self.problem.penalty
        if not penalty.couples:
            full = diagonal * self._slope_left(u, d, theta)
            if penalty.degree == 2:
                full[edges] = 2 * self.c[edges]
            return sparse.diags_array(full)
        ue, de = u[edges].reshape(-1, n), d[edges].reshape(-1, n)
        factor = (1 / (theta * theta)[edges])[::n][:, None, None]
        blocks = np.eye(n) * diagonal[edges].reshape(-1, n)[:, :, None]
        outer = ue[:, :, None] * de[:, None, :]
        blocks = blocks - 0.5 * factor * (outer + outer.transpose(0, 2, 1))
        ground = slice(edges.stop, None)
        rest = (diagonal * self._slope_left(u, d, theta))[ground]
        E = len(blocks)
        bsr = sparse.bsr_array((blocks, np.arange(E), np.arange(E + 1)), shape=(E * n, E * n))
        return sparse.block_diag([bsr, sparse.diags_array(rest)], format="csr") if rest.size else bsr.tocsr()

    def _solve(self, K: Any, bend: Array, right: Array, fixed: NDArray[np.bool_]) -> Array | None:
        factors = self.factorised(K, bend, fixed)
        return None if factors is None else factors.solve(right, len(bend))[0]

    def _slope_left(self, u: Array, d: Array, theta: Array) -> Array:
        """1 − ud/(cθ), between 0 and 2; 1 where there is no strength."""
        scale = self.c * theta
        return 1 - np.clip(np.divide(u * d, scale, out=np.zeros_like(d), where=scale > 0), -1.0, 1.0)
