"""Poisson loss: networked regression of counts, with a log link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlogy

from coterie.kernels import kinds
from coterie.kernels.reference.exact import EPS
from coterie.problem.arrays import Array
from coterie.problem.datasets import LabelledRows
from coterie.problem.losses.base import linear_predictor
from coterie.problem.losses.measure import MEAN_DEVIANCE
from coterie.problem.losses.psi import INSIDE
from coterie.problem.losses.row_loss import RowLoss, refuse_labels

HIGHEST, LARGE = 300.0, 1e129  # a margin whose exponential, 2e130, is still far from overflow, times anything
STEEP = 8.0  # in logarithms: a rate that far above its count is none that fits
FURTHEST = 100.0  # an offset that nobody can mean


@dataclass(frozen=True)
class Poisson(RowLoss):
    """L_i(w) = (1/m_i) Σ_r [e^{z_r} − y_r z_r + y_r log y_r − y_r] + ridge ‖w‖₂²,  z_r = ⟨x_r, w⟩ + offset_r,  y_r ≥ 0.

    Half the Poisson deviance of rates e^z: zero where every rate is the count. An offset, the logarithm of an exposure,
    is given with the data (:meth:`LocalDatasets.from_rows`).

    Parameters
    ----------
    ridge : float, default=0.0
        Strength of the squared ℓ2 norm. Without it, nodes whose counts are all zero have no finite minimiser.
    unpenalised : tuple of int, default=()
        Columns, such as an intercept, that ridge leaves alone.
    reduction : {"mean", "sum"}, default="mean"
        As for :class:`SquaredError`.
    l1 : float, default=0.0
        Strength of the ℓ1 norm, which makes weights exactly zero; with ridge, an elastic net.
    lower, upper : float or sequence of float, default=None
        Bounds of the weights: one number for all columns but the unpenalised ones, or one for each column.
    positive : bool, default=False
        No weight below zero, those of unpenalised columns excepted: lower=0.

    Examples
    --------
    >>> import coterie as ct
    >>> graph = ct.EmpiricalGraph.from_edges([(0, 1), (1, 2)])
    >>> data = ct.LocalDatasets.from_rows([[1.0], [1.0]], [1.0, 3.0], nodes=[0, 2], n_nodes=3)
    >>> solution = ct.solve(ct.Problem(graph, data, loss=ct.Poisson(), lam=0.5))
    >>> ct.Poisson().predict(data.X, solution.w[data.nodes]).round(3).tolist()
    [1.5, 2.5]
    """

    is_likelihood = True
    measure = MEAN_DEVIANCE
    kernel = kinds.POISSON
    self_concordant = True  # ψ‴ = ψ″
    no_minimiser = (
        "Counts of zero can be separated from the others, so that weights grow without end; "
        "a ridge on every column prevents it."
    )

    def check_labels(self, rows: LabelledRows) -> None:
        refuse_labels(rows, rows.y < 0, "counts are numbers ≥ 0")

    def absorb(self, y: Array, s: Array, offset: Array) -> tuple[Array, Array]:
        """Exposure E = e^offset: s (e^{z + offset} − yz) is sE (e^z − (y/E) z)."""
        if (far := np.abs(offset) > FURTHEST).any():
            raise ValueError(
                f"an offset of {offset[far][0]:g} is an exposure of e^{offset[far][0]:g}: give its logarithm"
            )
        return y * np.exp(-offset), s * np.exp(offset)

    def direction(self, y: Array) -> Array:
        return np.ones_like(y)

    def shift(self, y: Array) -> Array:
        return np.zeros_like(y)

    def psi(self, e: Array, y: Array) -> Array:
        d = e - _log(y)
        return np.where(y > 0, y * _excess(d), np.exp(e))

    def slope(self, e: Array, y: Array) -> Array:
        return np.maximum(np.exp(np.minimum(e, HIGHEST)) - y, -y * INSIDE)

    def bend(self, e: Array, y: Array) -> Array:
        return np.exp(np.minimum(e, HIGHEST))

    def working_bend(self, e: Array, y: Array) -> Array:
        """Beyond STEEP above the count, a step takes a margin there at once: Newton's would go down by one."""
        above = e - np.log1p(y)
        return self.bend(e, y) / np.where(above > STEEP, above, 1.0)

    def most_bend(self, e: Array, y: Array, way: Array | float) -> Array:
        return self.bend(e + np.minimum(way, 1.0), y)  # a quadratic that is above e^z everywhere does not exist

    def conjugate(self, t: Array, y: Array) -> Array:
        v = t + y
        return np.asarray(xlogy(v, v) - v - (xlogy(y, y) - y))

    def domain(self, y: Array) -> tuple[Array, float]:
        return -y * (1 - 4 * EPS), np.inf

    def steepest(self, t: Array, y: Array, way: Array | float) -> Array:
        return np.maximum(_known(t + y) * np.exp(way) * (1 + 1e-9) - y, y)

    def value_rounding(self, t: Array, y: Array) -> Array:
        off = 8 * EPS * (1 + np.abs(_log(np.maximum(t + y, EPS * y))) + np.abs(_log(y)))  # of e − log y
        return np.abs(t) * off + y * off**2

    def slope_rounding(self, t: Array, y: Array, miss: Array) -> Array:
        v = np.maximum(_known(t + y), 16 * EPS * y)
        return 2 * v * np.expm1(miss) + EPS * ((8 + np.abs(_log(v))) * v + 16 * y)

    def conjugate_rounding(self, t: Array, y: Array) -> Array:
        """v = t + y is off by up to η, so that v log v − v is by up to η (1 + |log η| + |log(v + η)|)."""
        v = np.abs(t + y)
        eta = EPS * (np.abs(t) + v)
        terms = v * (1 + np.abs(_log(v))) + y * (1 + np.abs(_log(y)))
        return 8 * EPS * terms + eta * (1 + np.abs(_log(eta)) + np.abs(_log(v + eta)))

    def least(self, y: Array) -> Array:
        """−log(e^{−y} y^y / y!)."""
        return np.asarray(y - xlogy(y, y) + gammaln(y + 1))

    def constant(self, y: Array, s: Array) -> float:
        """The logarithm of the mean count."""
        mean = float(s @ y) / float(s.sum()) if s.sum() > 0 else 0.0
        return float(np.log(max(mean, np.finfo(float).tiny)))

    def constant_loss(self, y: Array, s: Array) -> float:
        """That of the mean count, but no less than Σ s y, of which a perfect fit is known to a part; else Σ s."""
        total = float(s @ y)
        return max(super().constant_loss(y, s), total) if total > 0 else float(s.sum())

    def error(self, X: Array, y: Array, w: Array) -> Array:
        """The deviance 2ψ of each row."""
        return 2 * super().error(X, y, w)

    def predict(self, X: Array, w: Array) -> Array:
        """The rate e^⟨x, w⟩, of an offset of zero."""
        return np.exp(linear_predictor(X, w))


def _excess(d: Array) -> Array:
    """e^d − 1 − d, by its series where that would cancel."""
    near = d * d * (1 / 2 + d * (1 / 6 + d * (1 / 24 + d * (1 / 120 + d * (1 / 720 + d / 5040)))))
    return np.where(np.abs(d) < 0.01, near, np.expm1(d) - d)


def _known(v: Array) -> Array:
    """A rate e^z; ∞ where it was cut off."""
    return np.where(v < LARGE, v, np.inf)


def _log(v: Array) -> Array:
    """log v, and zero where v is zero."""
    return np.log(np.where(v > 0, v, 1.0))
