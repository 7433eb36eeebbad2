"""What a loss must know.

A :class:`Loss` is what a user writes, ``SquaredError(ridge=.1)``: parameters and nothing else.
Bound to labelled rows it becomes :class:`LocalLosses`: the functions L_i of all labelled nodes, which
solvers evaluate in one batch. Every array below has one row for each labelled node, in the order of M.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.design import Design, Support
from coterie.problem.losses.measure import ROOT_MEAN_SQUARED_ERROR, Measure

if TYPE_CHECKING:
    from coterie.problem.losses.ground import Ground
    from coterie.problem.losses.quadratic import Quadratics


class Loss(ABC):
    """A kind of loss, with its parameters: the base class of all losses.

    Examples
    --------
    >>> import coterie as ct
    >>> isinstance(ct.SquaredError(ridge=0.1), ct.Loss)
    True
    """

    measure: ClassVar[Measure] = ROOT_MEAN_SQUARED_ERROR
    """What `error` of many rows adds up to, and its name."""

    is_likelihood: ClassVar[bool] = False
    """Whether ψ of a row is −log likelihood, less `least`; squared error is a likelihood of unknown variance."""

    @abstractmethod
    def bind(self, rows: LabelledRows) -> LocalLosses:
        """Return the functions L_i of the nodes that `rows` belong to, which `validate` has not refused."""

    def n_weights(self, n: int) -> int:
        """How many weights a node has, where rows have n columns."""
        return n

    def least(self, y: Array) -> Array:
        """−log likelihood of each label where it is predicted perfectly, which losses leave out: 0 for classes."""
        return np.zeros_like(y)

    def validate(self, rows: LabelledRows) -> None:
        """Refuse parameters, or labels, that make no sense for these rows, before any work is done."""
        return

    def predict(self, X: Array, w: Array) -> Array:
        """Predict the label of each row of X (N, n) from the weights of its node, w (N, n)."""
        return linear_predictor(X, w)

    def error(self, X: Array, y: Array, w: Array) -> Array:
        """What each row of X (N, n) costs under the weights of its node, w (N, n), without ridge or alpha."""
        return (y - linear_predictor(X, w)) ** 2


class Model(NamedTuple):
    """Slopes (|M|, n) and curvatures (|M|, n, n) of quadratics that touch the L_i somewhere.

    `change` bounds the logarithm of the factor by which the curvature of L_i has changed since the last model;
    `everywhere`: some quadratic lies above L_i everywhere, so that these do no harm however large that is.
    `ground` is what weights cost besides, by themselves; None: nothing.
    """

    slope: Array
    H: Array
    change: float
    everywhere: bool = True
    ground: Ground | None = None

    def prox(self, centre: Array, v: Array, tau: Array, start: Array) -> Array:
        """The primal update of the model around `centre`, where it has a ground."""
        assert self.ground is not None
        target = by_node(self.H, centre) - self.slope + v / tau[:, None]
        return self.ground.minimiser(self.H, target, 1 / tau, start)


class ThinModel(NamedTuple):
    """The same where few rows make up the curvatures: diag(h) + Z_iᵀZ_i, h (n,) and Z (|M|, r, n) with r ≤ n/2."""

    slope: Array
    h: Array
    Z: Array
    change: float
    everywhere: bool = True


class LocalLosses(ABC):
    """L_i for each labelled node i, as one batch."""

    @abstractmethod
    def value(self, w: Array) -> Array:
        """L_i(w_i), shape (|M|,)."""

    def exact(self, w: Array) -> Array:
        """The same to the last digits, where `value` trades some for speed."""
        return self.value(w)

    @abstractmethod
    def prox(self, v: Array, tau: Array, start: Array) -> Array:
        """The primal update PU_i: argmin_z L_i(z) + ‖v_i − z‖²/(2τ_i). `start` is a guess."""

    def rough_prox(self, v: Array, tau: Array, start: Array) -> Array:
        """The same to a few digits, for iterations after which models take its place."""
        return self.prox(v, tau, start)

    @abstractmethod
    def conjugate(self, p: Array, near: Array) -> tuple[Array, Array]:
        """Return q near p with L_i*(q_i) finite, and that value (or a proven upper bound on it).

        q = p wherever p lies well inside the domain of L_i*. `near` is a guess of the w_i that attain
        the supremum in L_i*(p) = sup_w ⟨p, w⟩ − L_i(w).
        """

    def prepare(self) -> None:
        """Find what takes long and all the rest needs, an SVD of every node, say; it may raise TimeUp."""
        return

    smooth: ClassVar[bool] = False
    """Whether gradient and Hessian are there."""

    @property
    def quadratic(self) -> Quadratics | None:
        """The L_i in spectral form, where they are quadratic; None where they are not."""
        return None

    def gradient(self, w: Array) -> Array:
        """∇L_i(w_i), shape (|M|, n), for a smooth loss."""
        raise TypeError(f"{type(self).__name__} has no gradient")

    def hessian(self, w: Array) -> Array:
        """∇²L_i(w_i), shape (|M|, n, n), for a smooth loss."""
        raise TypeError(f"{type(self).__name__} has no Hessian")

    def working_hessian(self, w: Array) -> Array:
        """What Newton's method takes for it: another matrix only where that makes steps far too long."""
        return self.hessian(w)

    def model(self, w: Array, before: Array | None) -> Model | None:
        """Quadratics that touch L_i at w and lie above it around w, its ground apart.

        They do so as far from w_i as w_i is from `before`, or everywhere if that is None, and their curvature tends
        to ∇²L_i as that way becomes short. None: there are no such quadratics, or L_i is one itself.
        """
        return None

    @property
    def are_thin(self) -> bool:
        """Whether models are thin, all of them."""
        return False

    def thin_model(self, w: Array, before: Array | None) -> ThinModel | None:
        """That model with curvatures made up of few rows; None: these are not few, or there is none."""
        return None

    @abstractmethod
    def pooled(self, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, Array]:
        """Minimise Σ_{i in group} L_i(v) over one v for each group.

        Returns the minimisers, shape (n_groups, n), and subgradients p_i ∈ ∂L_i(v), shape (|M|, n),
        that add up to zero in each group.
        """

    def support(self, p: Array, w: Array) -> Support:
        """Affine functions below the L_i, with slopes near p, that are close to L_i near w_i."""
        q, value = self.conjugate(p, w)
        rounding = (16 + q.shape[1]) * EPS * (dot(np.abs(q), np.abs(w)) + np.abs(value))
        return Support(dot(q, w) - value - rounding, q, np.zeros_like(q), np.zeros_like(q))

    @property
    def design(self) -> Design | None:
        """The rows that `smooth_part` is a sum over; None where it is not."""
        return None

    @property
    def below(self) -> Design | None:
        """Rows whose losses are no more than L_i, and say where a minimiser is; without them none can be enclosed."""
        return self.design

    def ceiling(self, level: float, w: Array) -> float:
        """What an objective at w can be at most, where `level` was computed, and there are rows below."""
        return level if self.design is None else self.design.ceiling(level, w)

    def in_units(self, x: float, y: float) -> tuple[LocalLosses, float] | None:
        """The losses of rows X/x with labels y/y, and what their values are to be multiplied with; None: unknown.

        x and y are powers of two, so that nothing is rounded. Weights are then in units of y/x.
        """
        return None

    def of_nodes(self, which: NDArray[np.int64]) -> LocalLosses:
        """The losses of some of these nodes alone, in this order: for engines that share nodes out."""
        raise TypeError(
            f'{type(self).__name__} cannot be shared out (it has no of_nodes); solve it without engine="mpi"'
        )

    def in_columns(self, t: Array) -> LocalLosses | None:
        """The losses of rows with columns x_k/t_k, rounded, in weights t_k w_k; None: unknown."""
        return None

    @property
    def row_space(self) -> Array | None:
        """Orthonormal rows (|M|, r, n), zero rows among them, that span what the data of each node see of w.

        Along any other direction `smooth_part` is constant. None: all nodes see everything.
        """
        return None

    @property
    def sees_all(self) -> bool:
        """Whether all nodes see everything; that can be known without `row_space`."""
        return self.row_space is None

    @property
    def l1_box(self) -> tuple[Array, Array] | None:
        """Bounds, (n,) or (|M|, n) each, of the duals s of a term sup {⟨s, w⟩ : lower ≤ s ≤ upper} that L_i contains.

        alpha‖w‖₁ is that of ±alpha. None: L_i has no such term.
        """
        return None

    def box_cost(self, s: Array) -> Array:
        """What is taken off that supremum, of each weight and dual: 0, unless weights have bounds other than zero."""
        return np.zeros_like(s)

    @property
    def bounds(self) -> tuple[Array, Array] | None:
        """Lower and upper bounds of weights, (n,) each, outside of which L_i is infinite; None: there are none."""
        return None

    def tight_box(self, w: Array) -> tuple[Array, Array]:
        """Between which duals s that term is what ⟨s, ·⟩ less its cost is at w."""
        assert self.l1_box is not None
        lower, upper = self.l1_box
        return np.where(w > 0, upper, lower), np.where(w < 0, lower, upper)

    @property
    def smooth_part(self) -> LocalLosses:
        """The L_i without that term."""
        return self

    def split_dual(self, p: Array, near: Array) -> Array:
        """Return s inside the box for which smooth_part_i*(p − s) is close to L_i*(p), its least value.

        It is sought around the weights `near`.
        """
        raise TypeError(f"{type(self).__name__} has no box")


def linear_predictor(X: Array, w: Array) -> Array:
    """⟨x, w⟩ for each row."""
    return np.einsum("rk,rk->r", X, w)


def with_offset(X: Array, w: Array, offset: Array | None) -> tuple[Array, Array]:
    """Rows and weights in which an offset is one more column, whose weight is 1: ⟨x, w⟩ has it then."""
    return (X, w) if offset is None else (np.column_stack([X, offset]), np.column_stack([w, np.ones(len(w))]))


def by_node(matrices: Array, vectors: Array) -> Array:
    """Multiply each node's matrix (·, a, b) with its vector (·, b)."""
    return np.einsum("iab,ib->ia", matrices, vectors)


def dot(a: Array, b: Array) -> Array:
    """Inner product of each node's two vectors."""
    return np.einsum("ik,ik->i", a, b)


def sum_by_group(values: Array, groups: NDArray[np.int64], n_groups: int) -> Array:
    """Add up rows that share a group."""
    member = csr_array((np.ones(len(groups)), groups, np.arange(len(groups) + 1)), shape=(len(groups), n_groups))
    total = member.T @ values.reshape(len(groups), prod(values.shape[1:]))
    return np.asarray(total).reshape(n_groups, *values.shape[1:])


def balanced(p: Array, groups: NDArray[np.int64], n_groups: int) -> Array:
    """Slopes less their mean over each group, which is rounding: what does not add up to zero has no flow."""
    size = np.maximum(np.bincount(groups, minlength=n_groups), 1)[:, None]
    return p - (sum_by_group(p, groups, n_groups) / size)[groups]


def as_columns(unpenalised: Any) -> tuple[int, ...]:
    """Column numbers as a tuple, so that a loss can be compared and looked up."""
    if isinstance(unpenalised, Integral):
        raise TypeError(f"unpenalised is a sequence of column numbers; write ({unpenalised},)")
    return tuple(unpenalised)


def penalised_columns(n: int, unpenalised: tuple[Any, ...]) -> NDArray[np.bool_]:
    """Mask of the columns that ridge or alpha applies to."""
    mask = np.ones(n, dtype=bool)
    for column in unpenalised:
        if not isinstance(column, Integral) or not -n <= int(column) < n:
            raise ValueError(f"unpenalised names column {column}, but there are {n} columns, 0 to {n - 1}")
        mask[column] = False
    return mask


def check_strength(value: Any, name: str) -> None:
    """Refuse a strength that is not a finite number ≥ 0."""
    if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
        raise ValueError(f"{name} must be a finite number ≥ 0, got {value!r}")
