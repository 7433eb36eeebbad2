"""All rows and all edges of a small problem as one sparse linear system.

alpha|w_k| is one more edge, to a ground of weight zero. Rows stay apart,

    [ K   Xᵀ      ] [δw]
    [ X   −1/ψ''  ] [δa] = …,

so that nothing is squared that need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.lapack import dgetrf as getrf
from scipy.linalg.lapack import dgetrs as getrs
from scipy.sparse.linalg import splu

from coterie.kernels.interruption import TimeUp, aside
from coterie.problem import BoundProblem
from coterie.problem.arrays import Array
from coterie.problem.losses.design import Design

LARGEST = 6_000  # unknowns, rows included: a factorisation then takes milliseconds, half a second where it fills up
DENSEST = 400_000  # numbers in rows and edges; group total variation couples all columns of an edge
DENSE = 300  # unknowns, rows included, up to which a full matrix takes less time
SPARSE = 40  # numbers per row, up to which an order of unknowns for symmetric patterns is found fast (decision 14)
TRACES = 1e-28, 1e-14  # added to the diagonal, for directions that nothing sees, or that only rounding hides


def is_small(problem: BoundProblem) -> bool:
    """Whether factorising the system of this problem is cheap."""
    design, duals = problem.f.design, problem.graph.n_edges * problem.n_features
    if design is None or problem.penalty.kernel is None or not len(problem.M) or not problem.f.smooth_part.smooth:
        return False
    if problem.f.bounds is not None:
        return False
    unknowns = problem.graph.n_nodes * problem.n_features + len(design.X)
    numbers = design.X.size + duals * (problem.n_features if problem.penalty.couples else 1)
    return unknowns <= LARGEST and duals <= 4 * LARGEST and numbers <= DENSEST


@dataclass(eq=False)
class Factors:
    """A factorised system, in units of the diagonal: `unit` of each free weight, `root` of each row that counts."""

    matrix: Any
    factors: Any
    free: NDArray[np.int64]
    used: NDArray[np.int64]
    unit: Array
    root: Array

    def solve(self, right: Array, n_rows: int) -> tuple[Array, Array]:
        """δw, zero where it is fixed, and bend · X δw of each row."""
        b = np.concatenate([self.unit * right[self.free], np.zeros(len(self.used))])
        z = self.factors.solve(b)
        z = z + self.factors.solve(b - self.matrix @ z)
        step, pull = np.zeros(len(right)), np.zeros(n_rows)
        step[self.free] = self.unit * z[: len(self.free)]
        pull[self.used] = self.root * z[len(self.free) :]
        return step, pull


class _FullFactors(NamedTuple):
    """Of a full matrix, by LAPACK."""

    lu: Array
    pivots: NDArray[np.int32]

    def solve(self, b: Array) -> Array:
        return np.asarray(getrs(self.lu, self.pivots, b)[0])


@dataclass(eq=False)
class JointSystem:
    """Weights of all nodes are one vector (V n,); duals of edges, then of ground edges, are another."""

    problem: BoundProblem
    design: Design

    @property
    def shape(self) -> tuple[int, int]:
        """Of weights: (V, n)."""
        return self.problem.graph.n_nodes, self.problem.n_features

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    @cached_property
    def X(self) -> Any:
        """The rows as one sparse matrix over all weights, (N, V n)."""
        N, n = self.design.X.shape
        node = np.repeat(self.problem.M, np.diff(self.design.starts))
        columns = (node[:, None] * n + np.arange(n)).ravel()
        shape = N, self.size
        return sparse.csr_array((self.design.X.ravel(), columns, np.arange(0, N * n + 1, n)), shape=shape)

    @cached_property
    def D(self) -> Any:
        """Differences across edges, and then the weights that alpha applies to, (edges, V n)."""
        n = self.problem.n_features
        edges = sparse.kron(self.problem.graph.D, sparse.eye_array(n), format="csr")
        ground = sparse.eye_array(self.size, format="csr")[self.grounded]
        return sparse.vstack([edges, ground], format="csr")

    @cached_property
    def grounded(self) -> NDArray[np.int64]:
        box, n = self.problem.f.l1_box, self.problem.n_features
        if box is None:
            return np.empty(0, dtype=np.int64)
        return (self.problem.M[:, None] * n + np.flatnonzero(box[1])).ravel()

    @cached_property
    def c(self) -> Array:
        """The strength of each row of D."""
        box = self.problem.f.l1_box
        edges = np.repeat(self.problem.c, self.problem.n_features)
        if box is None:
            return edges
        return np.concatenate([edges, np.tile(box[1][box[1] != 0], len(self.problem.M))])

    @property
    def edges(self) -> slice:
        return slice(0, self.problem.graph.n_edges * self.problem.n_features)

    @cached_property
    def ridge(self) -> Array:
        ridge = np.zeros(self.shape)
        ridge[self.problem.M] = 2 * self.design.ridge
        return ridge.ravel()

    def slack(self, u: Array, least: float) -> Array:
        """How far each dual is from the border of its domain, but at least this part of its strength."""
        size, edges, n = np.abs(u), self.edges, self.problem.n_features
        if self.problem.penalty.degree == 2:
            size[edges] = 0.0
        elif self.problem.penalty.couples:
            size[edges] = np.repeat(np.linalg.norm(u[edges].reshape(-1, n), axis=1), n)
        return np.maximum(self.c - size, least * self.c)

    def loss(self, w: Array) -> tuple[Array, Array]:
        """The gradient of the losses without alpha, and ψ'' of every row."""
        M, out = self.problem.M, np.zeros(self.shape)
        a, b = self.design.slopes(w.reshape(self.shape)[M])
        q, low, _ = self.design.forces(a, b)
        out[M] = q + low
        return out.ravel(), self.design.bend(w.reshape(self.shape)[M])

    def curvature(self, W: Any, ridge: Array | None = None) -> Any:
        """K = DᵀWD, and a ridge; W is sparse, mostly a diagonal. As one full matrix where the problem is very small."""
        if self.is_tiny and isinstance(W, sparse.dia_array):
            K = (self.full_D.T * W.diagonal()) @ self.full_D
            return K if ridge is None else K + np.diag(ridge)
        K = (self.D.T @ W @ self.D).tocsr()
        return K if ridge is None else K + sparse.diags_array(ridge)

    @cached_property
    def is_tiny(self) -> bool:
        """Whether full matrices take less time."""
        return self.size <= DENSE and len(self.c) <= 4 * DENSE

    @cached_property
    def full_D(self) -> Array:
        return np.asarray(self.D.toarray())

    def factorised(self, K: Any, bend: Array, fixed: NDArray[np.bool_]) -> Factors | None:
        """What solves (K + Xᵀ diag(bend) X) δw = …, over the weights that are not fixed; None where nothing does."""
        free, used = np.flatnonzero(~fixed), np.flatnonzero(bend > 0)
        if not (len(free) or len(used)):  # LAPACK would complain aloud
            return None
        root = np.sqrt(bend[used])
        if len(free) + len(used) <= DENSE:
            return self._factorised_densely(K, free, used, root)
        X, K = sparse.diags_array(root) @ self.X[used][:, free], sparse.csr_array(K)[free][:, free]
        diagonal = K.diagonal() + np.asarray((X * X).sum(axis=0)).ravel()
        unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scale = sparse.diags_array(unit)
        K, X = scale @ K @ scale, X @ scale
        for trace in TRACES:
            traced = K + sparse.diags_array(np.where(diagonal > 0, trace, 1.0))
            matrix = sparse.block_array([[traced, X.T], [X, -sparse.eye_array(len(used))]], format="csc")
            try:
                return Factors(matrix, aside(partial(_lu, matrix), matrix.nnz), free, used, unit, root)
            except TimeUp:
                return None
            except RuntimeError:  # a pivot that rounding has made zero
                continue
        return None

    def _factorised_densely(
        self, K: Any, free: NDArray[np.int64], used: NDArray[np.int64], root: Array
    ) -> Factors | None:
        """The same with a full matrix, which takes less time than finding out where a sparse one has its zeros."""
        X = root[:, None] * self.full_X[np.ix_(used, free)]
        K = (K if isinstance(K, np.ndarray) else K.toarray())[np.ix_(free, free)]
        diagonal = K.diagonal() + (X * X).sum(axis=0)
        unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        matrix, f = np.zeros((len(free) + len(used),) * 2), len(free)
        matrix[:f, :f], matrix[f:, :f] = unit[:, None] * K * unit, X * unit
        matrix[:f, f:], matrix[f:, f:] = matrix[f:, :f].T, -np.eye(len(used))
        for trace in TRACES:
            traced = matrix + np.diag(np.concatenate([np.where(diagonal > 0, trace, 1.0), np.zeros(len(used))]))
            lu, pivots, singular = getrf(traced)
            if not singular:
                return Factors(traced, _FullFactors(lu, pivots), free, used, unit, root)
        return None

    @cached_property
    def full_X(self) -> Array:
        """The rows as one full matrix, for problems that are very small."""
        return np.asarray(self.X.toarray())

    def inside(self, u: Array) -> Array:
        """u, moved back into the domain of the duals where it has left it."""
        edges, n = self.edges, self.problem.n_features
        inner = self.problem.penalty.into_domain(u[edges].reshape(-1, n), self.problem.c).ravel()
        return np.concatenate([inner, np.clip(u, -self.c, self.c)[edges.stop :]])

    def flat(self, u: Array, s: Array) -> Array:
        """Duals of edges (E, n) and of alpha (V, n) as one vector."""
        return np.concatenate([u.ravel(), s.ravel()[self.grounded]])

    def unflat(self, duals: Array) -> tuple[Array, Array]:
        """And back."""
        s = np.zeros(self.size)
        s[self.grounded] = duals[self.edges.stop :]
        return duals[self.edges].reshape(-1, self.shape[1]), s.reshape(self.shape)


def _lu(matrix: Any) -> Any:
    return splu(matrix, permc_spec="MMD_AT_PLUS_A" if matrix.nnz <= SPARSE * matrix.shape[0] else "COLAMD")
