"""Inner solvers of primal updates and conjugates that have no closed form, all nodes at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.interruption import time_is_up
from coterie.kernels.reference.blocks import blocks, by_node
from coterie.kernels.reference.cholesky import solve
from coterie.kernels.reference.exact import quiet
from coterie.kernels.reference.few_rows import are_few, inner_products, step_by_rows

HALVINGS = 30


@quiet
def keep_signs(room, other, V, h, centre, alpha, tau, v, start, z):
    """z ← argmin q_i(z) + Σ alpha|z| + ‖v − z‖²/(2τ_i) where it has the signs of `start`, none of them zero.

    Then alpha|z| is linear, and the primal update of q_i is all there is. Return the nodes where that is not so.
    """
    x = v - tau[:, None] * alpha * np.sign(start)
    kept = tau[:, None] * h / (1 + tau[:, None] * h)
    t = x - np.einsum("irk,ir->ik", V, kept * by_node(V, x - centre))
    agrees = ((alpha == 0) | (t * start > 0)).all(axis=1)
    z[agrees] = t[agrees]
    return np.flatnonzero(~agrees)


class _Nodes(NamedTuple):
    """Nodes i with the function L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2; None: the anchor is z itself."""

    X: Any  # (V, m, n), zero where a node has fewer rows
    psi: Any
    y: Any  # (V, m)
    share: Any  # (V, m)
    p: Any  # (V, n)
    anchor: Any  # (V, n) or None
    diagonal: Any  # (V, n), 2 ridge + curvature
    curvature: Any  # (V, 1)
    K: Any  # (V, m, m) where rows are few, else None

    def among(self, which):
        return self._replace(
            **{name: part[which] for name, part in self._asdict().items() if part is not None and name != "psi"}
        )

    def arguments(self, z):
        """e of every row."""
        return self.psi.direction(self.y) * by_node(self.X, z) + self.psi.shift(self.y)

    def from_anchor(self, z):
        return np.zeros_like(z) if self.anchor is None else z - self.anchor

    def objective(self, z, d):
        """The function at z, where z is d from the anchor."""
        loss = (self.share * self.psi.psi(self.arguments(z), self.y)).sum(axis=1)
        ridge = 0.5 * (self.diagonal - self.curvature)
        return loss + (ridge * z * z - self.p * z + 0.5 * self.curvature * d * d).sum(axis=1)

    def gradient(self, z):
        """The gradient, the bend of each row, and the largest entries of the gradient and of what it is made of."""
        e = self.arguments(z)
        pull = self.share * self.psi.direction(self.y) * self.psi.slope(e, self.y)
        ridge, d = self.diagonal - self.curvature, self.from_anchor(z)
        g = ridge * z - self.p + self.curvature * d + np.einsum("imk,im->ik", self.X, pull)
        size = ridge * np.abs(z) + np.abs(self.p) + self.curvature * np.abs(d)
        size += np.einsum("imk,im->ik", np.abs(self.X), np.abs(pull))
        return g, self.share * self.psi.working_bend(e, self.y), np.abs(g).max(axis=1), size.max(axis=1)

    def newton_step(self, g, bend):
        if self.K is not None:
            return step_by_rows(self.X, self.diagonal, self.K, bend, g)
        H = (self.X * bend[:, :, None]).transpose(0, 2, 1) @ self.X
        np.einsum("ikk->ik", H)[...] += self.diagonal
        return solve(H, g)

    @property
    def self_concordant(self):
        return self.psi.self_concordant

    def way(self, step):
        """How far the margin of some row moves along a step."""
        return np.abs(by_node(self.X, step)).max(axis=1)


def length_of_step(given, z, step, slope):
    """How long a step descends: halve those that do not."""
    now, d = given.objective(z, given.from_anchor(z)), given.from_anchor(z)
    length = np.ones(len(z))
    for _ in range(HALVINGS):
        move = length[:, None] * step
        then = given.objective(z + move, d + move)
        short = ~(then <= now + 1e-4 * length * slope + 1e-15 * np.abs(now))
        if not short.any():
            break
        length[short] *= 0.5
    return length


@quiet
def newton(psi, room, X, y, share, starts, ridge, p, anchor, curvature, start, accuracy, max_steps):
    """Minimise L_i(z) − ⟨p_i, z⟩ + curvature_i ‖z − anchor_i‖²/2 for each node by Newton steps, from `start`.

    Without an anchor, every step is anchored where it begins: curvature makes steps shorter, and moves no minimiser.
    Full steps as long as each halves the gradient; from the first that does not, steps are damped by line search.
    """
    out = start.copy()
    for nodes, rows, there in blocks(starts):
        x, kappa = X[rows] * there[:, :, None], curvature[nodes, None]
        diagonal = 2 * ridge + kappa
        K = inner_products(x, diagonal) if are_few(rows.shape[1], X.shape[1]) else None
        near = None if anchor is None else anchor[nodes]
        given = _Nodes(x, psi, y[rows], there * share[rows], p[nodes], near, diagonal, kappa, K)
        out[nodes] = take_newton_steps(given, out[nodes], accuracy, max_steps)
    return out


def take_newton_steps(given, out, accuracy, max_steps):
    """All nodes take their steps side by side; those that have arrived are left out of the next."""
    nodes, z, step = np.arange(len(out)), out.copy(), np.zeros_like(out)
    before, damped = np.full(len(out), np.inf), np.zeros(len(out), dtype=bool)
    for _ in range(max_steps):
        if not len(nodes) or time_is_up():
            break
        g, bend, steepest, largest = given.gradient(z)
        arrived = steepest <= accuracy * largest
        if arrived.all():
            break
        back = ~arrived & ~damped & (steepest > 0.5 * before)  # to where the last step began, and on with care
        z, damped, fresh = np.where(back[:, None], z - step, z), damped | back, given.newton_step(g, bend)
        length = np.where(arrived | back, 0.0, 1.0)
        search = np.flatnonzero(damped & (length > 0))
        if len(search):
            slope = (g[search] * fresh[search]).sum(axis=1)
            length[search] = length_of_step(given.among(search), z[search], fresh[search], slope)
        z = np.where((length > 0)[:, None], z + length[:, None] * fresh, z)
        before = np.where(back, before, steepest)
        way = given.way(fresh)
        # curvature has changed by no larger a part than the way: what is left of the gradient is less
        arrived |= given.self_concordant & (length == 1) & (steepest * way <= accuracy * largest)
        out[nodes] = z
        if arrived.any():
            nodes, z, step, before, damped = (part[~arrived] for part in (nodes, z, fresh, before, damped))
            given = given.among(~arrived)
        else:
            step = fresh
    return out
