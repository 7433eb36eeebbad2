"""Weights that move together: around a solution, weights that are equal stay equal, and zeros of the Lasso stay zero.

What is left are a few groups of weights, one unknown each: w = Bθ. On them the objective is smooth, its curvature is

    T = BᵀHB + Bᵀ(2 ridge)B + K,    H = Xᵀ diag(s ψ'') X over all rows,

with K that of the variation: zero for ℓ1, 2λDᵀAD for squared variation, λA_e (I − zzᵀ/‖z‖²)/‖z‖ of an edge with the
difference z for ℓ2. Degrees of freedom, refits and standard errors all follow from these matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design
from coterie.problem.losses.multinomial_losses import MultinomialLosses
from coterie.problem.penalties import GroupTotalVariation, SquaredVariation, TotalVariation
from coterie.problem.penalties.by_column import without_strengths
from coterie.solver import Clusters

LITTLE = 1e-10  # of a unit diagonal: directions that no row sees get this curvature, and so no step
EXACTLY = 4000  # unknowns up to which a trace is summed exactly; beyond, it is estimated with probes
PROBES, CHUNK = 64, 256


def can_fuse(problem: BoundProblem) -> bool:
    """Whether the curvature around a solution is known: a smooth loss that is a sum over rows, a penalty from here."""
    known = isinstance(
        without_strengths(problem.penalty, problem.n_features)[0],
        TotalVariation | GroupTotalVariation | SquaredVariation,
    )
    return known and problem.f.below is not None and problem.f.smooth_part.smooth


@dataclass(frozen=True, eq=False)
class Fused:
    """The groups of a solution.

    Attributes
    ----------
    problem : BoundProblem
    w : array of shape (V, n)
        The solution.
    at : array of shape (V, n)
        The group of each weight, numbered from 0; −1 where it cannot move.
    """

    problem: BoundProblem
    w: Array
    at: NDArray[np.int64]

    @classmethod
    def of(cls, problem: BoundProblem, w: Array) -> Self:
        """Find the groups of a solution w of a problem that `can_fuse`."""
        label = _labels(problem, w)
        fixed = np.zeros(w.shape, dtype=bool)
        fixed[problem.undetermined] = True
        if (box := problem.f.l1_box) is not None:
            fixed[problem.M] |= (w[problem.M] == 0) & (np.asarray(box[0]) < box[1])
        if (bounds := getattr(problem.f, "bounds", None)) is not None:
            fixed |= (w <= bounds[0]) | (w >= bounds[1])
        at = np.empty(w.shape, dtype=np.int64)
        count = 0
        for k in range(w.shape[1]):
            held = np.zeros(label[:, k].max() + 1, dtype=bool)
            held[label[fixed[:, k], k]] = True
            number = np.where(held, -1, count + np.cumsum(~held) - 1)
            at[:, k] = number[label[:, k]]
            count += int((~held).sum())
        return cls(problem, w, at)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.at.max()) + 1

    @property
    def design(self) -> Design:
        """The rows."""
        assert self.problem.f.design is not None
        return self.problem.f.design

    @cached_property
    def X(self) -> Any:
        """The rows as one sparse matrix over the groups, (N, count)."""
        at = np.repeat(self.at[self.problem.M], np.diff(self.design.starts), axis=0)
        row, k = np.nonzero(at >= 0)
        return sparse.csr_array((self.design.X[row, k], (row, at[row, k])), shape=(len(at), self.count))

    @cached_property
    def ridge(self) -> Array:
        """The curvature of the ridge, of each group."""
        at = self.at[self.problem.M]
        of_weight = np.broadcast_to(2 * self._ridge, at.shape)
        return np.bincount(at[at >= 0], of_weight[at >= 0], minlength=self.count).astype(float)

    @property
    def _ridge(self) -> Array:
        """Of each weight of a node."""
        assert self.problem.f.below is not None
        return self.problem.f.below.ridge

    def value(self, w: Array) -> float:
        """Σ of loss and ridge at w, without any variation."""
        design = self.problem.f.design
        each = self.problem.f.smooth_part.value if design is None else design.values
        return float(each(w[self.problem.M]).sum())

    def loss(self, w: Array, scale: Array | float = 1.0) -> Any:
        """Xᵀ diag(scale s ψ'') X at w; of several classes, whose rows have no such ψ, the same from their Hessians."""
        if self.problem.f.design is None:
            return self._of_nodes(w, scale)
        bend = scale * self.design.bend(w[self.problem.M])
        return (self.X.T @ sparse.diags_array(bend) @ self.X).tocsc()

    def _of_nodes(self, w: Array, scale: Array | float) -> Any:
        """BᵀHB from the Hessian of each node, less its ridge."""
        at, f = self.at[self.problem.M], self.problem.f.smooth_part
        if np.any(scale != 1):
            assert isinstance(f, MultinomialLosses)
            f = replace(f, scale=scale * f.scale)
        H = f.hessian(w[self.problem.M]) - np.diag(2 * self._ridge)
        row, column = (np.broadcast_to(part, H.shape) for part in (at[:, :, None], at[:, None, :]))
        there = (row >= 0) & (column >= 0)
        shape = self.count, self.count
        return sparse.coo_array((H[there], (row[there], column[there])), shape=shape).tocsc()

    def ridged(self, loss: Any) -> Any:
        """A matrix with the curvature of the ridge added to it."""
        return (loss + sparse.diags_array(self.ridge)).tocsc()

    def slope(self, w: Array) -> Array:
        """The gradient of loss and ridge at w, without any variation, by group."""
        at, w, rows = self.at[self.problem.M], w[self.problem.M], 0.0
        if self.problem.f.design is None:
            b = self.problem.f.smooth_part.gradient(w)
        else:
            a, b = self.design.slopes(w)
            rows = self.X.T @ a
        return rows + np.bincount(at[at >= 0], b[at >= 0], minlength=self.count)

    def largest_score_change(self, step: Array) -> float:
        """How much a step moves what is predicted, at most: of several classes, their scores beside each other."""
        f = self.problem.f
        if f.design is not None:
            return float(np.abs(self.X @ step).max(initial=0.0))
        assert isinstance(f.smooth_part, MultinomialLosses)
        rows = f.smooth_part.rows
        moved = self.moved(np.zeros_like(self.w), step)[self.problem.M].reshape(len(rows.m), -1, rows.X.shape[1])
        scores = np.einsum("rkj,rj->rk", np.repeat(moved, rows.m, axis=0), rows.X)
        return float(np.ptp(scores, axis=1).max(initial=0.0))

    @property
    def variation(self) -> Any:
        """K."""
        c, (i, j) = self.problem.c, self.problem.graph.edges.T
        penalty, strength = without_strengths(self.problem.penalty, self.problem.n_features)
        E, n = len(c), self.w.shape[1]
        if isinstance(penalty, TotalVariation) or not E:
            return sparse.csc_array((self.count, self.count))
        s = np.where(np.isinf(strength), 0.0, strength)  # neighbours do not differ in a column that is tied
        if isinstance(penalty, SquaredVariation):
            W: Any = sparse.diags_array(np.outer(2 * c, s).ravel())
        else:
            z = (self.w[i] - self.w[j]) * s
            size = np.linalg.norm(z, axis=1)
            one = np.divide(1.0, size, out=np.zeros(E), where=size > 0)
            unit = z * one[:, None]
            blocks = (c * one)[:, None, None] * np.outer(s, s) * (np.eye(n) - unit[:, :, None] * unit[:, None, :])
            W = sparse.bsr_array((blocks, np.arange(E), np.arange(E + 1)), shape=(E * n, E * n))
        D = self._picks(self.at[i]) - self._picks(self.at[j])
        return (D.T @ W @ D).tocsc()

    def _picks(self, at: NDArray[np.int64]) -> Any:
        """The matrix that picks groups, zero where there is none."""
        row = np.flatnonzero(at >= 0)
        return sparse.csr_array((np.ones(len(row)), (row, at.ravel()[row])), shape=(at.size, self.count))

    def moved(self, w: Array, step: Array) -> Array:
        """The weights after a step of each group."""
        return w + np.where(self.at >= 0, np.append(step, 0.0)[self.at], 0.0)


def _labels(problem: BoundProblem, w: Array) -> NDArray[np.int64]:
    """The cluster of each node in each coordinate: its own node where nothing is exactly equal."""
    penalty, strength = without_strengths(problem.penalty, problem.n_features)
    label = np.tile(np.arange(len(w))[:, None], w.shape[1])
    held = np.flatnonzero((strength > 0) & (strength < np.inf))
    if problem.lam > 0 and penalty.is_norm and len(held):
        clusters = Clusters.of(problem.graph, w[:, held])
        label[:, held] = clusters.joint[:, None] if penalty.couples else clusters.by_coordinate
    label[:, np.isinf(strength)] = problem.graph.components[:, None]
    return label


class Factors:
    """A factorised positive semidefinite matrix T, in units of its diagonal."""

    def __init__(self, T: Any) -> None:
        diagonal = T.diagonal()
        self.unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        self.T = self._in_units(T)
        traced = self.T + LITTLE * sparse.eye_array(len(diagonal), format="csc")
        self.lu: Any = splu(traced, permc_spec="MMD_AT_PLUS_A") if len(diagonal) else None

    def _in_units(self, matrix: Any) -> Any:
        scale = sparse.diags_array(self.unit)
        return (scale @ matrix @ scale).tocsc()

    def solve(self, b: Array) -> Array:
        """x with Tx = b, no step along directions that T does not see; b of shape (count,) or (count, k)."""
        unit = self.unit if b.ndim == 1 else self.unit[:, None]
        b = unit * b
        if self.lu is None:
            return b
        x = self.lu.solve(b)
        for _ in range(2):
            x = x + self.lu.solve(b - self.T @ x)
        return unit * x

    def trace(self, A: Any) -> float:
        """tr T⁻¹A over what T sees; beyond EXACTLY unknowns, the mean of PROBES random quadratic forms."""
        count, A = len(self.unit), self._in_units(A)
        if count > EXACTLY:
            z = np.random.default_rng(0).choice([-1.0, 1.0], size=(count, PROBES))
            return float((z * self.lu.solve(A @ z)).sum() / PROBES)
        total = 0.0
        for first in range(0, count, CHUNK):
            part = A[:, first : first + CHUNK].toarray()
            total += float(np.trace(self.lu.solve(part)[first : first + CHUNK]))
        return total
