"""A batch of convex quadratics in spectral form, which squared error and Lasso are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coterie.kernels import vector_buffer
from coterie.kernels.blas import threads_for
from coterie.kernels.choice import Either
from coterie.kernels.interruption import FEW, aside, check, pieces
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import LocalLosses, balanced, by_node
from coterie.problem.losses.design import Design, Support
from coterie.problem.losses.pooling import pooled_minimiser
from coterie.problem.losses.psi import SQUARED

spectral = Either("spectral")

UNEVEN = 1e-6  # a part of the largest curvature: what is less is hard to tell from rounding


class Spectrum(NamedTuple):
    """Quadratics in spectral form: V (|M|, r, n), h ≥ 0 (|M|, r), centre (|M|, n), floor (|M|,)."""

    V: Array
    h: Array
    centre: Array
    floor: Array

    @classmethod
    def of(cls, design: Design) -> Spectrum:
        """That of the rows of a design, by an SVD of every node's."""
        if design.X.size > FEW:  # to copy them takes its time, too
            check()
        m, n = np.diff(design.starts), design.X.shape[1]
        ridged = np.flatnonzero(design.ridge > 0)
        extra = np.zeros((len(ridged), n))  # ridge is least squares with these rows and label 0
        extra[np.arange(len(ridged)), ridged] = np.sqrt(design.ridge[ridged])
        r = min(int(m.max(initial=0)) + len(extra), n)
        V, h = np.zeros((len(m), r, n)), np.zeros((len(m), r))
        centre, floor = np.zeros((len(m), n)), np.zeros(len(m))
        with threads_for(int(m.max(initial=0)) * n):
            for block in LabelledRows(np.arange(len(m)), m, design.X, design.y, design.s).blocks:
                k = len(block.of)
                root = np.sqrt(design.s[block.rows])
                X, y = block.X * root[:, :, None], block.y * root
                if len(extra):
                    X = np.concatenate([X, np.broadcast_to(extra, (k, *extra.shape))], axis=1)
                    y = np.concatenate([y, np.zeros((k, len(extra)))], axis=1)
                U, s, Vt = thin_svd(X)
                inverse = np.divide(1.0, s, out=np.zeros_like(s), where=s > 0)
                fit = by_node(Vt.transpose(0, 2, 1), inverse * by_node(U.transpose(0, 2, 1), y))
                width = s.shape[1]
                V[block.of, :width], h[block.of, :width] = Vt, 2 * s**2
                centre[block.of] = fit
                floor[block.of] = ((by_node(X, fit) - y) ** 2).sum(axis=1)
        return cls(V, h, centre, floor)


@dataclass(frozen=True, eq=False)
class Quadratics(LocalLosses):
    """L_i(w) = floor_i + ½ (w − ŵ_i)ᵀ H_i (w − ŵ_i),  H_i = V_iᵀ diag(h_i) V_i.

    The rows of V_i are orthonormal, r = min(largest m_i, n) of them, so that m_i ≪ n stays cheap.
    The centre ŵ_i is the least-squares fit of smallest norm. Centred like this, values near the
    minimum lose no digits, and the primal update needs no factorisation when τ changes:

        PU_i(v) = v − V_iᵀ diag(τh / (1 + τh)) V_i (v − ŵ_i).

    Attributes
    ----------
    rows : Design
        The rows themselves. What is proven is proven of them: the spectral form only finds good points.
    find : callable
        Returns the spectral form. It is called when that is needed first: an SVD of every node takes its time, and
        a time limit may end it.
    """

    smooth: ClassVar[bool] = True
    rows: Design
    find: Callable[[], Spectrum]

    @classmethod
    def from_rows(cls, rows: LabelledRows, scale: Array, ridge: Array) -> Quadratics:
        """Σ_r scale_r (y_r − ⟨x_r, w⟩)² + Σ_k ridge_k w_k² for each node i."""
        design = Design(SQUARED, rows.X, rows.y, scale, rows.starts, ridge)
        return cls(design, partial(Spectrum.of, design))

    @cached_property
    def spectrum(self) -> Spectrum:
        return self.find()

    def prepare(self) -> None:
        _ = self.spectrum

    @property
    def V(self) -> Array:
        return self.spectrum.V

    @property
    def h(self) -> Array:
        return self.spectrum.h

    @property
    def centre(self) -> Array:
        return self.spectrum.centre

    @property
    def floor(self) -> Array:
        return self.spectrum.floor

    @property
    def quadratic(self) -> Quadratics:
        return self

    @property
    def design(self) -> Design:
        return self.rows

    def in_units(self, x: float, y: float) -> tuple[Quadratics, float]:
        return Quadratics(self.rows.in_units(x, y), partial(self._spectrum_in_units, x, y)), y**2

    def _spectrum_in_units(self, x: float, y: float) -> Spectrum:
        V, h, centre, floor = self.spectrum
        return Spectrum(V, h / x**2, centre * (x / y), floor / y**2)

    def of_nodes(self, which: NDArray[np.int64]) -> Quadratics:
        return Quadratics(self.rows.of_nodes(which), partial(Spectrum, *(part[which] for part in self.spectrum)))

    def in_columns(self, t: Array) -> Quadratics:
        d, m = self.rows, np.diff(self.rows.starts)
        rows = LabelledRows(np.arange(len(m)), m, d.X / t, d.y, d.s)
        return Quadratics.from_rows(rows, d.s, d.ridge / t**2)

    @cached_property
    def H(self) -> Array:
        """Hessians, (|M|, n, n)."""
        return np.matmul(self.V.transpose(0, 2, 1) * self.h[:, None, :], self.V)

    @cached_property
    def b(self) -> Array:
        """H_i ŵ_i."""
        return self._spectral(self.h, self.centre)

    def value(self, w: Array) -> Array:
        return self.floor + 0.5 * np.einsum("ir,ir->i", self.h, by_node(self.V, w - self.centre) ** 2)

    def exact(self, w: Array) -> Array:
        return self.design.values(w)

    def gradient(self, w: Array) -> Array:
        return self._spectral(self.h, w - self.centre)

    def hessian(self, w: Array) -> Array:
        return self.H

    def minimiser(self, s: Array) -> Array:
        """argmin L_i + ⟨s_i, ·⟩ = ŵ_i − H_i⁻¹ s_i, where every H_i has full rank."""
        return self.centre - self._spectral(1.0 / self.h, s)

    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        t = tau[:, None] * self.h
        return v - self._spectral(t / (1 + t), v - self.centre)

    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """L_i*(q) = ⟨q, ŵ⟩ + ½ qᵀH⁺q − floor, with q the part of p in the range of H_i."""
        q, values = np.empty_like(p), np.empty(len(p))
        spectral.conjugate(vector_buffer(p.shape[1]), *self.spectrum, p, q, values)
        return q, values

    def support(self, p: Array, w: Array) -> Support:
        """From the duals that are best at w, corrected until their forces are p as far as the data see."""
        a, b = self.design.slopes(w)
        inverse = np.divide(1.0, self.h, out=np.zeros_like(self.h), where=self.h > 0)
        for _ in range(1 if self._is_even else 2):
            q, low, _ = self.design.forces(a, b)
            self.design.moved(a, b, self._spectral(inverse, (p - q) - low))
        return self.design.support(a, b, w)

    @cached_property
    def _is_even(self) -> bool:
        """Whether all singular values of each node are of one size, so that one correction of duals does."""
        largest = self.h.max(axis=1, initial=0.0)
        return not ((self.h > 0) & (self.h < UNEVEN * largest[:, None])).any()

    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        v = pooled_minimiser(self.design, groups, n_groups)
        alone = np.bincount(groups, minlength=n_groups)[groups] == 1
        v[groups[alone]] = self.centre[alone]
        return v, balanced(self.gradient(v[groups]), groups, n_groups)

    @cached_property
    def row_space(self) -> Array | None:
        if self.V.shape[1] == self.V.shape[2] and (self.h > 0).all():
            return None
        return self.V * (self.h > 0)[:, :, None]

    def _spectral(self, factors: Array, x: Array) -> Array:
        out = np.empty_like(x)
        spectral.multiply(vector_buffer(x.shape[1]), self.V, factors, x, out)
        return out


def thin_svd(X: Array) -> tuple[Array, Array, Array]:
    """U, s, Vᵀ of each node's matrix, with singular values that are only rounding set to zero."""
    if X.shape[2] == 1:  # one column: its length and direction
        s = np.linalg.norm(X, axis=1)
        return np.divide(X, s[:, :, None], out=np.zeros_like(X), where=s[:, :, None] > 0), s, np.ones((len(X), 1, 1))
    U, s, Vt = _svd_in_pieces(X)
    s[s <= s[:, :1] * _rounding(X)] = 0.0
    for k in np.flatnonzero(_hidden(X, s)):
        U[k], s[k], Vt[k] = _jacobi_svd(X[k])
    Vt *= (X != 0).any(axis=1)[:, None, :]  # a column of zeros is not seen: noise there would be taken for data
    return U, s, Vt


def _svd_in_pieces(X: Array) -> tuple[Array, Array, Array]:
    """NumPy's, some nodes at a time: between them it can be interrupted."""
    m, n = X.shape[1:]
    each = 2_000 + 20 * m * n * min(m, n)
    parts = [
        aside(lambda part=X[first:last]: np.linalg.svd(part, full_matrices=False), m * n)  # type: ignore[misc]
        for first, last in pieces(len(X), each)
    ]
    U, s, Vt = (np.concatenate(part) for part in zip(*parts, strict=True)) if len(parts) > 1 else parts[0]
    return U, s, Vt


def _rounding(X: Array) -> float:
    """Singular values up to this part of the largest say nothing."""
    return max(X.shape[1:]) * float(np.finfo(float).eps)


def _hidden(X: Array, s: Array) -> NDArray[np.bool_]:
    """Whether columns of equal length have a higher rank: then what was set to zero is not rounding, but data."""
    hidden = (s == 0).any(axis=1)
    if hidden.any():
        even = _evened(X[hidden])[0]
        true = np.linalg.svd(even, compute_uv=False)
        hidden[hidden] = (true > true[:, :1] * _rounding(X)).sum(axis=1) > (s[hidden] > 0).sum(axis=1)
    return np.asarray(hidden)


def _evened(X: Array) -> tuple[Array, Array]:
    """Columns in units of their own length, and the lengths."""
    size = np.linalg.norm(X, axis=-2)
    return np.divide(X, size[..., None, :], out=np.zeros_like(X), where=size[..., None, :] > 0), size


def _jacobi_svd(X: Array) -> tuple[Array, Array, Array]:
    """The thin SVD of one matrix by Jacobi's method, which is accurate however different the columns' lengths are."""
    from scipy.linalg.lapack import dgejsv

    r = min(X.shape)
    tall = X if X.shape[0] >= X.shape[1] else np.vstack([X, np.zeros((X.shape[1] - X.shape[0], X.shape[1]))])
    s, U, V, work, _, info = dgejsv(tall, joba=0)
    s = s * (work[0] / work[1])
    rank = np.linalg.matrix_rank(_evened(X)[0], tol=None)
    s[rank:] = 0.0
    return (U[: X.shape[0], :r], s[:r], V.T[:r]) if info == 0 else np.linalg.svd(X, full_matrices=False)
