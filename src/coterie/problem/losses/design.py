"""The rows behind a loss: L_i(w) = Σ_r s_r ψ(⟨x_r, w⟩; y_r) + Σ_k ridge_k w_k²."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.choice import Either
from coterie.kernels.interruption import check_with_grace
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import LARGEST, Array, rows_of
from coterie.problem.losses.psi import INSIDE, SQUARED, Psi

kernels = Either("rows")

CONSTANT = 1e-14  # of Σ s y²: with the floor of gaps, what rounding of labels and weights can make of an exact fit
QUICK = 300_000  # products of a pass over the rows: even a hundred of them take little time


@dataclass(frozen=True, eq=False)
class Support:
    """Affine functions below the losses: L_i(z) ≥ at_i + ⟨q_i + low_i, z − w_i⟩ for every z.

    Attributes
    ----------
    at : array of shape (|M|,)
        Lower bounds on L_i(w_i), rounding included.
    q, low : arrays of shape (|M|, n)
        Slopes in twice the precision.
    rounding_bound : array of shape (|M|, n)
        How far q + low may be from the slope that was proven.
    duals : (a, b), or None
        The duals of rows and ridge that it was proven with, where there are rows.
    """

    at: Array
    q: Array
    low: Array
    rounding_bound: Array
    duals: tuple[Array, Array] | None = None


@dataclass(frozen=True, eq=False)
class Design:
    """Rows sorted by node, with the scalar loss ψ that they have in common.

    Attributes
    ----------
    psi : Psi
    X, y, s : arrays of shape (N, n), (N,) and (N,)
        Rows, labels, and the factor > 0 that each row carries.
    starts : array of shape (|M| + 1,)
    ridge : array of shape (n,)
    """

    psi: Psi
    X: Array
    y: Array
    s: Array
    starts: NDArray[np.int64]
    ridge: Array

    @property
    def n_nodes(self) -> int:
        return len(self.starts) - 1

    @property
    def is_squared(self) -> bool:
        """Whether this is squared error, of which most is known."""
        return self.psi is SQUARED

    def tilts(self, a: Array) -> Array:
        """ψ' of each row whose dual is a."""
        return a * self.psi.direction(self.y) / self.s

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Between which numbers the duals of rows lie."""
        low, high = (np.broadcast_to(self.s * end * INSIDE, self.s.shape) for end in self.psi.domain(self.y))
        up = self.psi.direction(self.y) > 0
        return np.where(up, low, -high), np.where(up, high, -low)

    def refuse_tiny(self) -> None:
        """Refuse columns and labels whose squares are 0 in double precision."""
        for name, values in (("X", self.X), ("y", self.y))[: 2 if self.psi.scales else 1]:
            size = float(np.abs(values).max(initial=0.0))
            if 0 < size < 1 / LARGEST:
                raise ValueError(
                    f"no value of {name} is larger than {size:.3g}; squares of that are 0: change its unit"
                )

    @property
    def constant_loss(self) -> float:
        """The loss of the best constant model: labels that are all shifted alike do not change it.

        Where even that is (nearly) 0, the part of Σ s y² that rounding of the labels could make.
        """
        least = self.psi.constant_loss(self.y, self.s)
        return max(least, CONSTANT * float(self.s @ self.psi.psi(self.y, self.y))) if self.psi.scales else least

    def in_units(self, x: float, y: float) -> Design:
        """The same rows of squared error, X/x and y/y; ridge so that values are those of before, divided by y²."""
        return replace(self, X=self.X / x, y=self.y / y, ridge=self.ridge / x**2)

    def of_columns(self, used: NDArray[np.int64]) -> Design:
        """The same rows with these columns alone."""
        if len(used) == self.X.shape[1]:
            return self
        return replace(self, X=np.ascontiguousarray(self.X[:, used]), ridge=self.ridge[used])

    def values(self, w: Array) -> Array:
        """L_i(w_i), with residuals in twice the precision."""
        out = np.empty(self.n_nodes)
        kernels.values(self.psi, *self.rows, self.ridge, w, out)
        return out if self.is_squared else np.where(np.isnan(out), np.inf, out)  # sums that overflow

    def slopes(self, w: Array) -> tuple[Array, Array]:
        """The duals of rows and of ridge that are best at w: s_r ψ'(⟨x_r, w_i⟩) and 2 ridge w."""
        self.pause()
        a, b = np.empty(len(self.X)), np.empty((self.n_nodes, self.X.shape[1]))
        kernels.slopes(self.psi, *self.rows, self.ridge, w, a, b)
        return a, b

    def bend(self, w: Array) -> Array:
        """s_r ψ''(e_r) of each row, to 1e-12."""
        if self.is_squared:
            return 2 * self.s
        out = np.empty(len(self.X))
        kernels.bends(self.psi, *self.rows, w, out)
        return out

    def least_bend(self, w: Array) -> Array:
        """The same, or less: never too much, wherever margins are; as far as `steady`, if ψ is not self-concordant."""
        if self.is_squared:
            return self.bend(w)
        if self.psi.self_concordant:
            return self.bend(w) * np.maximum(1 - self.misses(w), 0.0)
        t = self.tilts(self.slopes(w)[0])
        return self.s * self.psi.steady_bend(t, self.y, self.psi.steady + self.misses(w))

    def misses(self, w: Array) -> Array:
        """How far the margin of each row may be from the truth, where it is added up in twice the precision."""
        out = np.empty(len(self.X))
        kernels.misses(self.X, self.y, self.starts, w, out)
        return out

    def ceiling(self, level: float, w: Array) -> float:
        """What an objective at w can be at most, where `level` was computed: margins that are off cost this much."""
        return self.raised(level, self.uncertainty(w))

    def uncertainty(self, w: Array) -> float:
        """What `raised` takes of w: a sum over rows."""
        return float((self.s * self.misses(w) ** 2 if self.is_squared else self.doubts(w)).sum())

    def raised(self, level: float, uncertainty: float) -> float:
        """What an objective can be at most, where `level` was computed and its rows are so uncertain."""
        return float((np.sqrt(level) + np.sqrt(uncertainty)) ** 2) if self.is_squared else level + uncertainty

    def of_nodes(self, which: NDArray[np.int64]) -> Design:
        """The rows of these nodes alone, in this order."""
        rows = rows_of(self.starts, which)
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[which])])
        return replace(self, X=self.X[rows], y=self.y[rows], s=self.s[rows], starts=starts)

    def doubts(self, w: Array) -> Array:
        """How far s_r ψ, as computed, may be off, beyond 1e-10 of it: by margins that are off, and by what cancels."""
        miss, t = self.misses(w), self.tilts(self.slopes(w)[0])
        with np.errstate(over="ignore", invalid="ignore"):
            return self.s * (self.psi.steepest(t, self.y, miss) * miss + self.psi.value_rounding(t, self.y))

    def moved(self, a: Array, b: Array, step: Array) -> None:
        """Move the duals of squared error, in place, as moving the weights by `step` would."""
        kernels.move_slopes(self.X, self.s, self.starts, self.ridge, step, a, b)

    def forces(self, a: Array, b: Array) -> tuple[Array, Array, Array]:
        """Σ_r a_r x_r + b at every node in twice the precision, and a bound on the error of that."""
        self.pause()
        q, low, size = (np.empty_like(b) for _ in range(3))
        kernels.forces(self.X, self.starts, a, b, q, low, size)
        terms = (np.diff(self.starts) + 2.0)[:, None] * EPS
        return q, low, size * terms**2

    def support(self, a: Array, b: Array, w: Array) -> Support:
        """What these duals prove."""
        at = np.empty(self.n_nodes)
        self.pause()
        kernels.lower_bounds(self.psi, *self.rows, self.ridge, w, a, b, at)
        return Support(at, *self.forces(a, b), (a, b))

    def pause(self) -> None:
        """Notice Ctrl-C, and that the time is long over, between two passes over many rows."""
        if self.takes_time:
            check_with_grace()

    @property
    def takes_time(self) -> bool:
        """Whether a hundred passes over the rows do."""
        return self.X.size * self.X.shape[1] > QUICK

    @property
    def rows(self) -> tuple[Array, Array, Array, Array]:
        """X, y, s and starts, as kernels take them."""
        return self.X, self.y, self.s, self.starts
