"""Pooled models: one weight vector for all nodes of a group, and coordinates in which it is well determined.

For each group, F(v) = Σ_i L_i(v) is minimised over v by Newton steps in coordinates t with v = v₀ + Ct, in which the
Hessian is the identity, up to a small and known error. C is found by orthonormalising the rows again and again (by
Cholesky, in the coordinates found so far), which no difference of units and hardly any collinearity can spoil: where a
Gram matrix of the rows as they came would lose all digits, the next one, in better coordinates, has them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import is_wide, vector_buffer
from coterie.kernels.choice import Either
from coterie.kernels.interruption import aside, time_is_up
from coterie.kernels.kinds import LOGISTIC
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.problem.losses.base import by_node
from coterie.problem.losses.design import Design

kernels, node_solvers = Either("gram"), Either("node_solvers")

PASSES = 5  # of orthonormalising at most; two do for well-behaved columns
NEAR = 1e-6  # a Gram matrix this close to the identity is not improved further
RESOLVED = 0.1  # a Gram matrix within this of the identity proves that all directions are seen
REFINEMENTS = 3  # of least-squares fits; the later ones are for columns that are nearly dependent
NEWTON_STEPS = 60
FEW, FEWER_STEPS = 100, 15  # of many groups, those that take longer can be separated: nothing is won by more steps
HALVINGS = 30
FAR = 40.0  # a margin that costs e^−40
SETTLING, SHRINK, LITTLE, STILL = 40, 0.2, 1e-9, 1e-13  # proximal steps, with so little curvature in the end
ACCURACY = 1e-12  # of each of them
SETTLED = 1e-12  # a Newton step that promises less than this part of the loss is the last one


@dataclass(frozen=True, eq=False)
class Coordinates:
    """C of v = v₀ + Ct for each group, and what is known of it.

    Attributes
    ----------
    C : array of shape (G, n, n)
        A column of zeros where a direction is left out: of columns that the data do not see.
    error : array of shape (G,)
        A bound on ‖CᵀHC − I‖ over the directions that are there.
    longest : array of shape (G,)
        A bound on ‖Cᵀx‖ over all rows x.
    weak : array of shape (G, n)
        Directions that rounding hides, or that are left out.
    """

    C: Array
    error: Array
    longest: Array
    weak: NDArray[np.bool_]

    @property
    def resolved(self) -> NDArray[np.bool_]:
        """Groups in which every direction that is not left out is seen, provably."""
        return self.error <= RESOLVED


@dataclass(frozen=True, eq=False)
class Pool:
    """The nodes of a design, in groups; only the `columns` marked for a group are free, all other weights are zero."""

    design: Design
    groups: NDArray[np.int64]
    n_groups: int
    columns: NDArray[np.bool_]

    @classmethod
    def of(cls, design: Design, groups: NDArray[np.int64], n_groups: int, columns: Array | None = None) -> Pool:
        shape = n_groups, design.X.shape[1]
        free = np.ones(shape, dtype=bool) if columns is None else np.broadcast_to(columns, shape)
        return cls(design, groups, n_groups, free)

    def coordinates(self, h: Array, start: Array | None = None) -> Coordinates:
        """Coordinates for the Hessian Σ_r h_r x_r x_rᵀ + 2 ridge, from those of a similar one."""
        d, G, n = self.design, self.n_groups, self.design.X.shape[1]
        C = self._diagonal(h) if start is None else start.copy()
        gram, spoilt = np.empty((G, n, n)), np.empty((G, n))
        rounding_bound, longest = np.empty((2, G))
        weak = np.zeros((G, n), dtype=bool)
        error = np.full(G, np.inf)
        for left in range(PASSES, -1, -1):
            d.pause()
            kernels.gram(d.X, h, d.starts, self._ridge, self.groups, C, gram, rounding_bound, spoilt, longest)
            there = np.einsum("gkj->gj", np.abs(C)) > 0
            unit = np.where(there[:, :, None] & np.eye(n, dtype=bool), 1.0, 0.0)
            with np.errstate(over="ignore", invalid="ignore"):  # then nothing is resolved
                error, before = np.linalg.norm(gram - unit, axis=(1, 2)) * (1 + 1e-12) + rounding_bound, error
            if not left or not ((error > NEAR) & (error < 0.9 * before)).any() or self._time_is_up():
                break  # the error is that of this C
            kernels.orthonormalise(gram, spoilt, C, weak)
        weak[error <= RESOLVED] = False
        return Coordinates(C, error, longest, weak | ~there)

    def _time_is_up(self) -> bool:
        """Whether to end early; what takes no time is always done."""
        return self.design.takes_time and time_is_up()

    @property
    def _ridge(self) -> Array:
        """Curvature of the ridge; kernels add it once for each node."""
        return 2 * self.design.ridge

    def _diagonal(self, h: Array) -> Array:
        """Each free column in units of its own length; a column of zeros stays out."""
        d, n = self.design, self.design.X.shape[1]
        lengths = np.empty((self.n_groups, n))
        kernels.lengths(d.X, h, d.starts, self._ridge, self.groups, lengths)
        unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=(lengths > 0) & self.columns)
        return unit[:, :, None] * np.eye(n)

    def slope(self, v: Array, C: Array) -> tuple[Array, Array]:
        """Cᵀ∇F(v) and a bound on its error."""
        return self.tilt(v[self.groups], C)

    def tilt(self, w: Array, C: Array, duals: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Cᵀ Σ ∇L_i(w_i) of each group, less the forces of these duals, and a bound on its error."""
        d = self.design
        a, b = d.slopes(w)
        off = d.s * d.psi.slope_rounding(d.tilts(a), d.y, d.misses(w))
        if duals is None:
            return self._project(C, a, off, b)
        rounded = np.zeros(C.shape[:2])
        np.add.at(rounded, self.groups, 4 * EPS * (np.abs(b) + np.abs(duals[1])))
        a, b = a - duals[0], b - duals[1]
        out, rounding_bound = self._project(C, a, off + EPS * np.abs(a), b)
        return out, rounding_bound + (rounded * np.abs(C).sum(axis=2)).sum(axis=1) * (1 + 1e-9)

    def _project(self, C: Array, a: Array, off: Array, b: Array) -> tuple[Array, Array]:
        """Cᵀ Σ (Σ_r a_r x_r + b_i), where a_r is known within off_r, and a bound on its error."""
        out, rounding_bound = np.empty(C.shape[:2]), np.empty(self.n_groups)
        kernels.project(self.design.X, self.design.starts, self.groups, C, a, off, b, out, rounding_bound)
        return out, rounding_bound

    def value(self, v: Array) -> Array:
        """F(v) of each group."""
        return np.bincount(self.groups, self.design.values(v[self.groups]), minlength=self.n_groups)

    def least(self, v: Array) -> Array:
        """F(v) of each group, less what margins that are off can add; sums are good to 1e-10."""
        d, w = self.design, v[self.groups]
        group = np.repeat(self.groups, np.diff(d.starts))
        doubts = d.s * d.misses(w) ** 2 if d.is_squared else d.doubts(w)
        lost = np.bincount(group, doubts, minlength=self.n_groups) * (1 + 1e-9)
        F = self.value(v) * (1 - 1e-10)
        return np.maximum(np.sqrt(F) - np.sqrt(lost), 0.0) ** 2 if d.is_squared else F - lost

    def bend(self, v: Array) -> Array:
        """ψ'' of each row at v, times its factor, or less: never too much."""
        return self.design.least_bend(v[self.groups])

    def minimise(self) -> tuple[Array, Coordinates]:
        """v that minimises F, and coordinates for the Hessian there. When time is up, both are rougher, or TimeUp."""
        v = np.zeros((self.n_groups, self.design.X.shape[1]))
        at = self.coordinates(self.bend(v))
        if self.design.is_squared:
            for _ in range(REFINEMENTS):
                v = v + self._newton_step(v, at)[0]
            return v, at
        if not self.design.psi.self_concordant:
            v = settled_minimiser(self.design, self.groups, self.n_groups) * self.columns
            return v, self.coordinates(self.bend(v))
        now = self.value(v)
        for _ in range(NEWTON_STEPS if self.n_groups <= FEW else FEWER_STEPS):
            if self._time_is_up():
                break
            step, gain = self._newton_step(v, at)
            live = gain > SETTLED * now
            length, then = self._descend(v, now, step, gain, live)
            length[~live] = 1.0  # what a line search cannot see any more, Newton's method still improves
            v, now = v + length[:, None] * step, np.where(live, then, now)
            at = self.coordinates(self.bend(v), at.C)
            if not (live & (length > 0)).any():
                break
        return v, at

    def _newton_step(self, v: Array, at: Coordinates) -> tuple[Array, Array]:
        """The step, and twice the decrease that it promises."""
        C = at.C * ~at.weak[:, None, :]
        a, b = self.design.slopes(v[self.groups])
        slope, _ = self._project(C, a, np.zeros_like(a), b)
        return -by_node(C, slope), (slope**2).sum(axis=1)

    def _descend(self, v: Array, now: Array, step: Array, gain: Array, live: Array) -> tuple[Array, Array]:
        """How long a step each group can take, 0 where nothing descends, and F there."""
        length, then = np.where(live, 1.0, 0.0), now
        for _ in range(HALVINGS if live.any() else 0):
            then = self.value(v + length[:, None] * step)
            short = (then > now - 1e-4 * length * gain) & (length > 0)
            if not short.any():
                break
            length[short] *= 0.5
        else:
            length[live & (then > now)] = 0.0
        return length, np.where(length > 0, then, now)


def settled_minimiser(design: Design, groups: NDArray[np.int64], n_groups: int) -> Array:
    """One minimiser of Σ L_i for each group, (n_groups, n), by proximal steps with ever less curvature."""
    order = np.argsort(np.repeat(groups, np.diff(design.starts)), kind="stable")
    of, n = np.repeat(groups, np.diff(design.starts))[order], design.X.shape[1]
    size = np.maximum(np.bincount(groups, minlength=n_groups), 1)
    X, y, s = np.ascontiguousarray(design.X[order]), design.y[order], design.s[order] / size[of]
    data = X, y, s, np.concatenate([[0], np.cumsum(np.bincount(of, minlength=n_groups))]), design.ridge
    curvature = np.bincount(of, s * (X**2).sum(axis=1), minlength=n_groups) / n + float(np.finfo(float).tiny)
    v, zero = np.zeros((n_groups, n)), np.zeros((n_groups, n))
    for step in range(SETTLING):
        before, kappa = v, curvature * max(SHRINK**step, LITTLE)
        v = node_solvers.newton(design.psi, vector_buffer(n), *data, zero, v, kappa, v, ACCURACY, NEWTON_STEPS)
        if (np.abs(v - before).max(axis=1) <= STILL * (1 + np.abs(v).max(axis=1))).all():
            break
    return v


def one_model(design: Design) -> tuple[Array, Coordinates]:
    """What `Pool.minimise` finds for all nodes together; the design keeps it for others who ask, if time was enough."""
    kept = design.__dict__.get("one_model")
    if kept is None:
        pool = Pool.of(design, np.zeros(design.n_nodes, dtype=np.int64), 1)
        kept = pool.minimise()
        if not pool._time_is_up():
            design.__dict__["one_model"] = kept
    return kept


def separating(design: Design, groups: NDArray[np.int64], n_groups: int) -> Array | None:
    """Weights (n_groups, n) that separate the classes of each group, where rows are fewer than many columns.

    All margins are FAR then, and the loss is next to nothing. None where rows contradict each other, or have a ridge,
    or another loss: then there is a minimiser to look for.
    """
    n, group = design.X.shape[1], np.repeat(groups, np.diff(design.starts))
    most = int(np.bincount(group, minlength=n_groups).max(initial=0))
    if design.psi.kernel != LOGISTIC or design.ridge.any() or not is_wide(n) or most > n:
        return None
    out = np.zeros((n_groups, n))
    for g in range(n_groups):
        X, margin = design.X[group == g], FAR * (2 * design.y[group == g] - 1)
        out[g] = aside(lambda X=X, margin=margin: np.linalg.lstsq(X, margin, rcond=None)[0], X.size)  # type: ignore[misc]
        if not (margin * (X @ out[g]) > 0.5 * FAR**2).all():
            return None
    return out


def pooled_minimiser(design: Design, groups: NDArray[np.int64], n_groups: int) -> Array:
    """One minimiser of Σ L_i for each group, (n_groups, n).

    Where there are fewer rows than columns, it is sought among combinations of the rows: as ridge is the same for all
    columns that have one, nothing better lies elsewhere, and columns without ridge stay as they are.
    """
    if not len(design.X):
        return np.zeros((n_groups, design.X.shape[1]))
    if not (design.is_squared or design.psi.self_concordant):
        return settled_minimiser(design, groups, n_groups)
    apart = separating(design, groups, n_groups)
    if apart is not None:
        return apart
    N, n = design.X.shape
    ridged = design.ridge > 0
    among = ridged if ridged.any() else np.ones(n, dtype=bool)
    if among.sum() <= N and n_groups == 1:
        return one_model(design)[0].copy()
    if among.sum() <= N:
        return Pool.of(design, groups, n_groups).minimise()[0]
    Q, R = np.linalg.qr(design.X[:, among].T)
    X = np.column_stack([R.T, design.X[:, ~among]])
    ridge = np.concatenate([np.full(N, design.ridge.max()), np.zeros(int((~among).sum()))])
    thin, _ = Pool.of(replace(design, X=X, ridge=ridge), groups, n_groups).minimise()
    v = np.empty((n_groups, n))
    v[:, among], v[:, ~among] = thin[:, :N] @ Q.T, thin[:, N:]
    return v
